package webdelivery_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
)

// pagingService is a random service with pages. It says what its members say, and has at most one fault.
type pagingService struct {
	pages       [][]string // ids
	size        int        // of a full page
	first       int        // page that the read begins with
	count       int        // that the read asks for; 0: none
	bare        bool       // arrays alone
	index, numb bool       // page_index, page_count
	total, more bool       // total, has_more
	next        string     // spelling of next_uri; "": never
	end         string     // next_uri of the last page; "": left out
	cursor      bool       // next_uri has a cursor, and page is ignored
	past        int        // status behind the last page; 0: an empty page
	fault       string     // "" or one of pagingFaults
	at          int        // page of the fault
}

var pagingFaults = []string{"the total changes", "page_count changes", "next_uri leads back", "page is ignored", "ends early"}

func newPagingService(seed uint64) *pagingService {
	r := rand.New(rand.NewPCG(seed, 47))
	half := func() bool { return r.IntN(2) == 0 }
	s := &pagingService{size: 1 + r.IntN(5), first: 1, bare: r.IntN(8) == 0}
	pages := r.IntN(7)
	for page := range pages {
		n := s.size
		if page == pages-1 {
			n = 1 + r.IntN(s.size)
		}
		ids := make([]string, n)
		for i := range ids {
			ids[i] = fmt.Sprintf("%d-%d", page+1, i)
		}
		s.pages = append(s.pages, ids)
	}
	if pages > 1 && r.IntN(4) == 0 {
		s.first = 1 + r.IntN(pages)
	}
	s.count = []int{0, s.size, s.size + 3}[r.IntN(3)]
	s.past = []int{0, 404, 400}[r.IntN(3)]
	if !s.bare {
		s.index, s.numb, s.total, s.more = half(), half(), half(), half()
		if r.IntN(4) > 0 {
			s.next = nextSpellings[r.IntN(len(nextSpellings))]
			if address, _, _ := strings.Cut(s.next, "#"); !s.numbered() && !strings.Contains(address, "?page=") {
				s.next = "{path}?page={n}" // without numbers, the other leads nowhere
			}
			s.end = []string{"", `null`, `""`}[r.IntN(3)]
			s.cursor = !s.numbered() && r.IntN(4) == 0
		}
	}
	if s.says() && pages > 2 && r.IntN(8) == 0 { // an empty page in the middle
		s.pages[1+r.IntN(pages-2)] = nil
	}
	if pages > 1 && r.IntN(3) == 0 {
		s.fault, s.at = pagingFaults[r.IntN(len(pagingFaults))], 1+r.IntN(pages)
	}
	return s
}

// says reports whether the pages say whether others follow.
func (s *pagingService) says() bool { return s.more || s.numb || s.next != "" }

func (s *pagingService) numbered() bool { return s.index && s.numb }

// follows reports whether next_uri leads on.
func (s *pagingService) follows() bool { return s.next != "" && !s.numbered() }

func (s *pagingService) answer(r *http.Request) *http.Response {
	number, query := 1, r.URL.Query()
	if n, err := strconv.Atoi(query.Get("page")); err == nil && (!s.cursor || n == s.first) {
		number = n
	}
	if n, err := strconv.Atoi(query.Get("cursor")); err == nil && s.cursor {
		number = n
	}
	if s.fault == "page is ignored" {
		number = s.first
	}
	if number > len(s.pages) && s.past != 0 && number > 1 {
		return fixture.Response(s.past, nil)
	}
	items := []json.RawMessage{}
	if number <= len(s.pages) {
		for _, id := range s.pages[number-1] {
			items = append(items, json.RawMessage(anyItem(id)))
		}
	}
	if s.bare {
		body, _ := json.Marshal(items)
		return fixture.Response(http.StatusOK, body)
	}
	body, total, pages := map[string]any{"items": items}, 0, len(s.pages)
	for _, ids := range s.pages {
		total += len(ids)
	}
	last := number >= pages || s.fault == "ends early" && number == s.at
	if s.fault == "the total changes" && number >= s.at {
		total++
	}
	if s.fault == "page_count changes" && number >= s.at {
		pages++
	}
	for name, member := range map[string]struct {
		has   bool
		value any
	}{"page_index": {s.index, number}, "page_count": {s.numb, pages}, "total": {s.total, total}, "has_more": {s.more, !last}} {
		if member.has {
			body[name] = member.value
		}
	}
	following := number + 1
	if s.fault == "next_uri leads back" && number >= s.at {
		following, last = max(s.first, number-1), false
	}
	switch {
	case s.next != "" && !last:
		next := strings.NewReplacer("{path}", "/tasks", "{n}", strconv.Itoa(following)).Replace(s.next)
		if s.cursor {
			next = strings.Replace(next, "?page=", "?cursor=", 1)
		}
		body["next_uri"] = next
	case s.next != "" && s.end != "":
		body["next_uri"] = json.RawMessage(s.end)
	}
	text, _ := json.Marshal(body)
	return fixture.Response(http.StatusOK, text)
}

// verdict says what reading the service must come to: all of the items, an *IncompleteError, or either of them. It
// knows only what the pages say, not how they are read.
func (s *pagingService) verdict() string {
	left := len(s.pages) - s.first + 1 // pages to read
	totals := s.total && s.first == 1
	switch s.fault {
	case "the total changes", "page_count changes":
		if said := s.total && s.fault == "the total changes" || s.numb && s.fault == "page_count changes"; said {
			if s.at > s.first {
				return "incomplete"
			}
			return "either" // all pages have the same wrong number
		}
	case "page is ignored":
		switch {
		case left > 1 && (s.says() || s.index || totals || s.count == s.size):
			return "incomplete"
		case left > 1:
			return "unnoticed" // it looks like a service that has everything in one page
		case left == 1 && !s.more && !s.numb:
			return "either" // the page behind the last has a wrong number
		}
	case "next_uri leads back":
		switch {
		case s.follows() && (max(s.at, s.first) < len(s.pages) || !s.more || !s.total):
			return "incomplete"
		case s.follows() && !totals:
			return "either" // the last page has has_more false and a next_uri: the total decides
		}
	case "ends early":
		early := s.at >= s.first && s.at < len(s.pages) && !s.numbered() && (s.more || s.next != "" && !s.numb)
		switch {
		case early && !s.more && s.at == s.first && (s.end == "" || s.total) && len(s.pages[s.at-1]) > 0 && !s.cursor:
			return "either" // the first page does not say that it is the last
		case !early && s.cursor:
			return "either" // page_count leads on without an address
		case early && (totals || s.numb):
			return "incomplete"
		case early:
			return "unnoticed"
		}
	}
	switch {
	case len(s.pages) == 0, s.more, s.numb, s.next != "" && s.end != "" && !s.total, s.next != "" && left > 1, totals:
		return "all"
	case s.cursor:
		return "either" // a page behind the last cannot be asked for
	case s.past == 0:
		return "all" // an empty page shows the end
	case len(s.pages[len(s.pages)-1]) < s.count && s.count > 0:
		return "all" // a page shorter than requested does
	default:
		return "either"
	}
}

func (s *pagingService) wanted() []string {
	ids := []string{}
	for _, page := range s.pages[min(s.first-1, len(s.pages)):] {
		ids = append(ids, page...)
	}
	return ids
}

// A read of a service with pages comes to all of its items, or to an *IncompleteError where its pages contradict each
// other. It never ends without an error and without an item that the pages announced, ReadAhead changes nothing, and no
// request goes elsewhere.
func TestPagingServices(t *testing.T) {
	t.Parallel()
	const services = 1_500
	counts := map[string]int{}
	for seed := range uint64(services) {
		s := newPagingService(seed)
		verdict := s.verdict()
		counts[verdict]++
		results := map[string]string{}
		for name, reader := range readers() {
			if name == "NetworkLists.All" {
				continue
			}
			var requests atomic.Int64
			client := fixture.Answered(t, func(r *http.Request) *http.Response {
				if requests.Add(1) > 40 {
					return fixture.Response(http.StatusTeapot, nil)
				}
				assert.Equal(t, "/acme/v1"+reader.path, r.URL.Path)
				return s.answer(r)
			})
			ask := paging{count: s.count}
			if s.first > 1 {
				ask.page = s.first
			}
			ids, err := fixture.Gather(reader.read(t.Context(), client, ask))
			results[fmt.Sprint(ids, err != nil)] = name
			context := fmt.Sprintf("seed %d, %s: %+v: %v", seed, name, *s, err)
			if err != nil {
				require.NotEqual(t, "all", verdict, context)
				if broken := (*webdelivery.IncompleteError)(nil); verdict == "incomplete" {
					require.ErrorAs(t, err, &broken, context)
				}
				continue
			}
			require.NotEqual(t, "incomplete", verdict, context)
			if verdict != "unnoticed" {
				require.Equal(t, s.wanted(), ids, context)
			}
		}
		require.Len(t, results, 1, "seed %d: %+v", seed, *s)
	}
	t.Log(counts)
	for _, verdict := range []string{"all", "incomplete", "either", "unnoticed"} {
		assert.NotZero(t, counts[verdict], verdict)
	}
}
