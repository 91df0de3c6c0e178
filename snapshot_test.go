package webdelivery_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// oneList is the path of every list, for faults.
const oneList = "/config/networklists/*"

// changingList answers with pages of ten entries (service document, section 2.6) of a list that somebody changes
// after the first page was read. before and after are its entries. Members of a page that are not in form are left
// out.
type changingList struct {
	before, after []string
	form          []string
	pages         atomic.Int32 // requests for pages
}

func (l *changingList) list(w http.ResponseWriter, _ *http.Request) {
	l.write(w, map[string]any{"id": fixture.ListID, "type": "IP", "name": "blocklist"})
}

func (l *changingList) entries(w http.ResponseWriter, r *http.Request) {
	index, err := strconv.Atoi(r.URL.Query().Get("page"))
	if err != nil {
		index = 1
	}
	now := l.before
	if index > 1 {
		now = l.after
	}
	const size = 10
	items, pages := []map[string]string{}, (len(now)+size-1)/size
	for _, text := range now[min((index-1)*size, len(now)):min(index*size, len(now))] {
		items = append(items, map[string]string{"id": "id of " + text, "entry": text})
	}
	page := map[string]any{"items": items}
	for _, name := range l.form {
		switch name {
		case "total":
			page[name] = len(now)
		case "page_count":
			page[name] = pages
		case "page_index":
			page[name] = index
		case "has_more":
			page[name] = index < pages
		case "next_uri":
			page[name] = nil
			if index < pages {
				page[name] = fmt.Sprintf("/config/networklists/%s/entries?count=1000&page=%d", fixture.ListID, index+1)
			}
		}
	}
	l.pages.Add(1)
	l.write(w, page)
}

func (l *changingList) write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// If the total of a list changes between two of its pages, or an entry comes twice, Plan returns an error, however the
// pages announce one another.
func TestAPlanOfAListThatChangesMeanwhile(t *testing.T) {
	t.Parallel()
	was := fixture.Addresses(25)
	changes := map[string][]string{
		"one is removed":                 was[1:],                                                 // the eleventh is missed
		"one is added":                   append([]string{"203.0.113.1"}, was...),                 // the tenth comes twice
		"the last moves to the front":    append([]string{was[24]}, was[:24]...),                  // the tenth comes twice
		"the first moves to the end":     append(append([]string(nil), was[1:]...), was[0]),       // the eleventh is missed
		"the second page is removed":     append(append([]string(nil), was[:10]...), was[20:]...), // ten are missed
		"all but the first page removed": was[:10],                                                // the others are missed
	}
	forms := map[string][]string{
		"all":                  {"total", "page_count", "page_index", "has_more", "next_uri"},
		"no page_index":        {"total", "page_count", "has_more", "next_uri"},
		"no page_count":        {"total", "page_index", "has_more", "next_uri"},
		"next_uri and total":   {"total", "next_uri", "has_more"},
		"total":                {"total"},
		"total and page_index": {"total", "page_index"},
	}
	for change, after := range changes {
		for form, members := range forms {
			t.Run(change+"/"+form, func(t *testing.T) {
				t.Parallel()
				fixture.WithList(t, fixture.Setup{}, nil, func(f *fixture.Fixture) {
					l := &changingList{before: was, after: was, form: members}
					f.AddFault(testserver.Fault{Path: oneList, Handler: l.list})
					f.AddFault(testserver.Fault{Path: oneList + "/entries", Handler: l.entries})
					plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, was, webdelivery.PlanOptions{})
					require.NoError(f, err)
					assert.True(f, plan.Empty())
					assert.GreaterOrEqual(f, l.pages.Load(), int32(3))

					l.after = after
					plan, err = f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, was, webdelivery.PlanOptions{})
					var broken *webdelivery.IncompleteError
					require.ErrorAs(f, err, &broken)
					assert.Nil(f, plan)
					assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
					assert.Contains(f, broken.Path, "/entries")
				})
			})
		}
	}
}

// A service may refuse pages of 1,000 with 400. Then whatever reads a whole list reads pages of the service's own size. If
// these fail as well, the first error is returned.
func TestPagesThatAreTooLarge(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, fixture.Addresses(150), func(f *fixture.Fixture) {
		for range 15 {
			f.Srv.AddNetworkList(testserver.NetworkListSpec{Name: "other"})
		}
		status := 0 // of pages without a count; 0: the service answers
		client := f.NewClient(f.Srv.URL(), fixture.Setup{Options: []webdelivery.Option{webdelivery.WithHTTPClient(&http.Client{
			Transport: fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
				refused := 0
				switch query := r.URL.Query(); {
				case query.Get("count") == "1000":
					refused = http.StatusBadRequest
				case strings.HasSuffix(r.URL.Path, "s") && r.Method == http.MethodGet: // a collection
					refused = status
				}
				if refused == 0 {
					return f.HTTP.Transport.RoundTrip(r)
				}
				body := io.NopCloser(strings.NewReader(`{"description":"of count ` + r.URL.Query().Get("count") + `"}`))
				return &http.Response{StatusCode: refused, Body: body, Header: http.Header{}, Request: r}, nil
			}),
		})}}).NetworkLists
		last := "198.18.0.149"
		uses := map[string]func() error{
			"GetByName": func() error {
				_, err := client.GetByName(f.Context(), "blocklist")
				return err
			},
			"Find": func() error {
				found, err := client.Find(f.Context(), netip.MustParseAddr(last))
				assert.True(f, err != nil || len(found.Matches) == 1)
				return err
			},
			"RemoveEntries and Plan": func() error {
				_, err := client.RemoveEntries(f.Context(), fixture.ListID, []string{last})
				if err != nil {
					return err
				}
				plan, err := client.Plan(f.Context(), fixture.ListID, fixture.Addresses(150), webdelivery.PlanOptions{})
				require.NoError(f, err)
				assert.Equal(f, []string{last}, plan.Add)
				_, err = client.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
				return err
			},
		}
		for name, use := range uses {
			status = 0
			require.NoError(f, use(), name)
			assert.ElementsMatch(f, fixture.Addresses(150), f.Srv.Entries(fixture.ListID))
			for _, status = range []int{http.StatusBadRequest, http.StatusForbidden} {
				err := use()
				require.ErrorIs(f, err, webdelivery.ErrBadRequest, name)
				assert.ErrorContains(f, err, "of count 1000")
			}
		}
	})
}

// An entry that a list already contains can be kept and desired, also if it violates the service document; as an
// addition it is refused. The letter case of a code does not count.
func TestEntriesThatCannotBeParsed(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		spec        testserver.NetworkListSpec
		desired     []string
		add, remove []string
		field       string // "": accepted
	}{
		"reserved codes are kept": {
			testserver.NetworkListSpec{Type: "GEO", Entries: []string{"XK", "EU", "DE"}}, []string{"xk", "EU", "AT"}, []string{"AT"}, []string{"DE"}, "",
		},
		"reserved codes are removed": {
			testserver.NetworkListSpec{Type: "GEO", Entries: []string{"XK", "EU", "DE"}}, []string{"DE"}, nil, []string{"XK", "EU"}, "",
		},
		"only reserved codes": {
			testserver.NetworkListSpec{Type: "GEO", Entries: []string{"XK", "UK"}}, []string{"UK", "XK", "UK"}, nil, nil, "",
		},
		"a new reserved code": {
			testserver.NetworkListSpec{Type: "GEO", Entries: []string{"XK", "DE"}}, []string{"XK", "DE", "EU"}, nil, nil, "desired[2]",
		},
		"odd addresses are kept": {
			testserver.NetworkListSpec{Entries: []string{"192.0.2.1-192.0.2.9", "fe80::1%eth0", "198.51.100.007"}},
			[]string{"fe80::1%eth0", "192.0.2.1-192.0.2.9", "192.0.2.0/24"},
			[]string{"192.0.2.0/24"},
			[]string{"198.51.100.007"},
			"",
		},
		"a new odd address": {
			testserver.NetworkListSpec{Entries: []string{"192.0.2.1-192.0.2.9"}}, []string{"192.0.2.1-192.0.2.9", "192.0.2.1-192.0.2.10"}, nil, nil, "desired[1]",
		},
		"a code in a list of addresses": {
			testserver.NetworkListSpec{Entries: []string{"XK"}}, []string{"XK", "DE"}, nil, nil, "desired[1]",
		},
	}
	for name, tt := range tests {
		for _, aggregate := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", aggregate ", aggregate), func(t *testing.T) {
				t.Parallel()
				fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
					id := f.Srv.AddNetworkList(tt.spec)
					options := webdelivery.PlanOptions{MaxRemove: webdelivery.RemoveAll, Aggregate: aggregate}
					plan, err := f.Client.NetworkLists.Plan(f.Context(), id, tt.desired, options)
					if tt.field != "" {
						require.ErrorContains(f, err, "plan refused: "+tt.field)
						require.ErrorIs(f, err, webdelivery.ErrPlanRefused)
						require.NotErrorIs(f, err, webdelivery.ErrInvalid)
						return
					}
					require.NoError(f, err)
					assert.ElementsMatch(f, tt.add, plan.Add)
					removed := []string{}
					for _, e := range plan.Remove {
						removed = append(removed, e.Entry)
					}
					assert.ElementsMatch(f, tt.remove, removed)
					_, err = f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{Wait: true})
					require.NoError(f, err)
					plan, err = f.Client.NetworkLists.Plan(f.Context(), id, f.Srv.Entries(id), options)
					require.NoError(f, err)
					assert.True(f, plan.Empty(), "the plan keeps the service's entries unchanged")
				})
			})
		}
	}
}
