package suite_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
)

// foreignBody is the body of a 200 in place of the requested one.
type foreignBody struct {
	name string
	body string
	is   string // the resource of the service document that the body is; "": none

	html     bool // the header says HTML
	cut      bool // the connection ends behind the body
	envelope int  // the code of an envelope that rejects
	json     bool // it is JSON, which Client.Do reads
}

// The resources of section 2 of the service document, one line each.
const (
	someTask        = `{"id":"t1","uri":"/tasks/t1","operation":"deploy","status":"RUNNING","complete":false,"progress":40,"begin_time":"2026-11-20T08:30:00Z","user":{"id":"u"}}`
	someList        = `{"uri":"/config/networklists/l1","id":"l1","type":"IP","list":["192.0.2.1"],"name":"block","description":"","deprecated":false,"entries_uri":"/config/networklists/l1/entries","creation_timestamp":"2026-11-20T08:30:00Z"}`
	someEntry       = `{"uri":"/config/networklists/l1/entries/e1","id":"e1","entry":"192.0.2.1","added_by":"alice","creation_timestamp":"2026-11-20T08:30:00Z"}`
	someEntryInfo   = `{"uri":"/config/networklists/l1/entries/e1","id":"e1","type":"IP","network_list_uri":"/config/networklists/l1"}`
	someTransaction = `{"code":200,"description":"ok","transaction_id":7,"transaction_response":{"begin_ts":1763627400,"end_ts":-1,"percent_received_responses":5,"transaction_status":"PENDING","transaction_status_description":"-"}}`
	someReceipt     = `{"code":201,"description":"ok","transaction_id":7,"purge_response":{"transaction_status_uri":"/transactions/7"}}`
	someResult      = `{"query":{},"columns":[{"name":"client_ip"}],"rows":[["192.0.2.1"]],"total_results":1}`
)

func pageWith(item string) string {
	return `{"uri":"/here?page=1","items":[` + item + `],"total":1,"has_more":false,"page_count":1,"page_index":1,"prev_uri":null,"next_uri":null}`
}

func foreignBodies() []foreignBody {
	long := strings.Repeat("under maintenance ", 2000)
	bodies := []foreignBody{
		{name: "nothing"},
		{name: "blanks", body: " \n"},
		{name: "a text", body: "under maintenance"},
		{name: "HTML", body: "<html>under maintenance</html>", html: true},
		{name: "HTML that says it is JSON", body: "<html>under maintenance</html>"},
		{name: "JSON that says it is HTML", body: someTask, html: true},
		{name: "cut in an item", body: `{"items":[{"id":"a"`, cut: true},
		{name: "cut in a member", body: `{"id":"a","sta`, cut: true},
		{name: "cut before its last bracket", body: `{"id":"a","items":[],"columns":[],"rows":[],"total_results":0`, cut: true},
		{name: "truncated by the service", body: `{"id":"a","items":[{"id":"a"}`},

		{name: "a short envelope", body: `{"code":503,"description":"under maintenance"}`, envelope: 503},
		{name: "a short envelope, quoted", body: `{"code":"400","description":"no"}`, envelope: 400},
		{name: "an envelope that looks like a success", body: `{"code":"400","id":"a","task_id":"a","items":[],"total":0}`, envelope: 400},
		{name: "a long envelope", body: `{"code":503,"description":"` + long + `"}`, envelope: 503},
		{name: "a long envelope, its code last", body: `{"description":"` + long + `","code":503}`, envelope: 503},
		{name: "a long envelope with an echo", body: `{"query":{"limit":1},"message":"` + long + `","code":400}`, envelope: 400},
	}
	for body, is := range map[string]string{
		`{}`: "", `{"message":"under maintenance"}`: "", `{"status":"maintenance"}`: "", `{"id":""}`: "", `{"id":null,"status":"maintenance"}`: "",
		`[]`: "empty", `[{}]`: "", `[7]`: "", `[null]`: "", `[{"message":"under maintenance"}]`: "", `[[]]`: "groupings", `["under maintenance"]`: "names",
		`"under maintenance"`: "", `7`: "", `true`: "", `null`: "",
		someTask: "task", someList: "list", someEntry: "entry", someEntryInfo: "entry info", someTransaction: "transaction", someReceipt: "receipt",
		someResult:         "result",
		pageWith(someTask): "tasks", pageWith(someList): "lists", pageWith(someEntry): "entries", pageWith(`{}`): "",
		pageWith(`{"message":"under maintenance"}`): "", pageWith(`{"name":"client_ip"}`): "names",
		`[` + someTask + `]`: "tasks", `[` + someList + `]`: "lists", `[` + someEntry + `]`: "entries",
		`{"tasks":[` + someTask + `]}`: "tasks", `{"tasks":[` + someList + `]}`: "lists", `{"tasks":[` + someEntry + `]}`: "entries", // open point 2
		`{"items":[{"id":"a","uri":"/tasks/a"},{"message":"under maintenance"}]}`: "",
	} {
		bodies = append(bodies, foreignBody{name: body, body: body, is: is, json: true})
	}
	return bodies
}

// asksFor returns the resource that the service document describes for a GET (sections 4.1 to 4.6).
func asksFor(path string) string {
	path = path[strings.Index(path, "/v1")+len("/v1"):]
	parts := strings.Split(strings.Trim(path, "/"), "/")
	last := parts[len(parts)-1]
	switch {
	case path == "/tasks":
		return "tasks"
	case parts[0] == "tasks":
		return "task"
	case parts[0] == "transactions":
		return "transaction"
	case parts[0] == "stats" && last == "data":
		return "result"
	case parts[0] == "stats":
		return "names"
	case last == "networklists":
		return "lists"
	case last == "entries":
		return "entries"
	case len(parts) == 3:
		return "list"
	case len(parts) == 5 && parts[3] == "entries":
		return "entry info"
	default:
		return ""
	}
}

// isRight reports whether a body is the requested resource after all. An object of its kind is not, if its id is another.
func (b *foreignBody) isRight(method string, r *http.Request) bool {
	want := asksFor(r.URL.Path)
	switch {
	case method == "Do":
		return b.json
	case b.is == "empty":
		return want == "tasks" || want == "lists" || want == "entries" || want == "names"
	case b.is == "groupings": // of an empty list: all groupings that match
		return strings.HasSuffix(r.URL.Path, "/groupings")
	case want == "tasks" || want == "lists": // an id is all that these need
		return b.is == "tasks" || b.is == "lists" || b.is == "entries"
	case slices.Contains([]string{"task", "list", "entry info", "transaction"}, want):
		return false
	default:
		return b.is != "" && b.is == want
	}
}

// foreignService answers honestly at first, and then with a foreign body.
type foreignService struct {
	method string // operations.Operation.Name
	honest int    // requests that it answers honestly, of those that can meet the body
	body   foreignBody

	reads, met, foreign int
	right               bool // one of the foreign bodies was the requested resource
}

func (s *foreignService) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	meets := s.body.envelope > 0 && r.Method != http.MethodHead // what a change returns is not fixed, but for a refusal
	if r.Method == http.MethodGet {
		s.reads++
		meets = true
	}
	if meets {
		s.met++
	}
	if meets && s.met > s.honest {
		s.foreign++
		s.right = s.right || s.body.isRight(s.method, r)
		resp := fixture.Response(http.StatusOK, []byte(s.body.body))
		if s.body.html {
			resp.Header.Set("Content-Type", "text/html")
		}
		if s.body.cut {
			resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(s.body.body), cutReader{}))
		}
		return resp, nil
	}
	_, address, _ := strings.Cut(r.URL.Path, "/v1")
	page := s.reads
	return fixture.Response(http.StatusOK, everyResponse{
		text: func(member string) string {
			if member == "type" {
				return "IP"
			}
			return fmt.Sprint(member, page)
		},
		address: func(member string) string {
			switch member {
			case "next_uri":
				return fmt.Sprintf("%s?page=%d", address, page+1)
			case "entries_batch_deletion_uri":
				return address + "/entries/deletions"
			case "transaction_status_uri":
				return "/transactions/1"
			default:
				return ""
			}
		},
		page: page, more: true, pending: true,
	}.to(r)), nil
}

var foreignHosts atomic.Int64

type cutReader struct{}

func (cutReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// inBubble runs a test with a client of a service, in a bubble of its own: retries and polls take no time.
func inBubble(t *testing.T, service http.RoundTripper, test func(ctx context.Context, c *webdelivery.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		// Clients of one host share the pace of their purges, and no state may pass from one bubble to another.
		host := fmt.Sprintf("https://api%d.example.com", foreignHosts.Add(1))
		client, err := webdelivery.NewClient(host, fixture.Customer, webdelivery.BasicAuth(fixture.Username, fixture.Password),
			webdelivery.WithHTTPClient(&http.Client{Transport: service}), webdelivery.WithPurgeLimiter(fixture.Unlimited{}))
		require.NoError(t, err)
		test(t.Context(), client)
	})
}

// If a body is not the requested one, a method that reads returns an error. It never returns nil without a result, it
// never runs for ever, and its error never matches ErrInvalid. The methods are those of internal/suite/operations, whose
// tests name any that is missing. Each method meets every body in its first response and, if it reads more than once, a
// third of them in its second. An envelope that rejects is an error like the same status, to any request up to the
// fourth and however long it is, and reads are retried as they are after the status.
func TestForeignBodies(t *testing.T) {
	t.Parallel()
	bodies := foreignBodies()
	for i, op := range everyStep() {
		t.Run(fmt.Sprint(i, " ", op), func(t *testing.T) {
			t.Parallel()
			service, met := &foreignService{}, false
			transport := fixture.RoundTripper(func(r *http.Request) (*http.Response, error) { return service.RoundTrip(r) })
			inBubble(t, transport, func(ctx context.Context, c *webdelivery.Client) {
				for honest := range fixture.Cases(4, 2) {
					for b, body := range bodies {
						if honest > 0 && (i+b)%3 > 0 || honest > 1 && body.envelope == 0 {
							continue
						}
						service = &foreignService{method: op.Name, honest: honest, body: body}
						meetForeign(ctx, t, c, op, service)
						met = met || service.foreign > 0
					}
				}
			})
			if op.Method == http.MethodGet || op.Before > 0 {
				assert.True(t, met, "the method never read a foreign body")
			}
		})
	}
}

func meetForeign(ctx context.Context, t *testing.T, c *webdelivery.Client, op step, service *foreignService) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	err := op.run(ctx, c, func(...any) {})
	where := fmt.Sprintf("%.300s after %d honest responses", service.body.name, service.honest)
	assert.NotErrorIs(t, err, webdelivery.ErrInvalid, where)
	late := errors.Is(err, context.DeadlineExceeded)
	assert.True(t, op.Polls || !late, where)
	if service.foreign > 0 && (!late || !op.Shared) { // a caller who leaves a queue gets no error of its polls
		checkForeign(t, where, op, service, err)
	}
}

func checkForeign(t *testing.T, where string, op step, s *foreignService, err error) {
	t.Helper()
	var refused *webdelivery.Error
	switch {
	case s.right:
		return
	case !assert.Error(t, err, where):
	case s.body.envelope > 0:
		if assert.ErrorAs(t, err, &refused, where) {
			assert.Equal(t, s.body.envelope, refused.Code, where)
			assert.Equal(t, s.body.envelope == 503, errors.Is(err, webdelivery.ErrServer), where)
			assert.LessOrEqual(t, len(refused.Body), 64<<10)
			if s.reads > 0 && s.honest == 0 && !op.Polls && op.Name != "NetworkLists.Apply" {
				assert.Equal(t, map[int]int{503: 4, 400: 1}[s.body.envelope], refused.Attempts, where)
			}
		}
	case s.body.cut:
		assert.ErrorIs(t, err, io.ErrUnexpectedEOF, where)
	default:
		assert.ErrorIs(t, err, webdelivery.ErrBadResponse, where)
	}
}

// The client refuses what encoding/json would repair: a member that comes twice, and half of a surrogate pair. Do reads
// as encoding/json does, and refuses what is no JSON, also for types that decode themselves.
func TestObjectsThatWouldBeMended(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"id":"l1","list":["192.0.2.1"],"list":[]}`, `{"id":"l1","name":"n","n\u0061me":"m"}`,
		`{"id":"l1","complete":true,"error_info":{"message":"m"},"error_info":null}`, `{"id":"l1","name":"a\ud800b"}`,
	} {
		client := fixture.Always(t, []byte(body))
		_, err := client.NetworkLists.Get(t.Context(), "l1")
		require.ErrorIs(t, err, webdelivery.ErrBadResponse, body)
		ctx, once := onePoll(t.Context())
		_, err = client.Tasks.Wait(ctx, "l1", once)
		require.ErrorIs(t, err, webdelivery.ErrBadResponse, body)
		require.NoError(t, client.Do(t.Context(), http.MethodGet, "/x", nil, &map[string]any{}))
	}
	task, err := fixture.Always(t, []byte(`{"task_id":"a","task_id":"b"}`)).NetworkLists.Delete(t.Context(), "l1")
	require.NoError(t, err, "the change was accepted")
	assert.Equal(t, &webdelivery.Task{Complete: true}, task)
	err = fixture.Always(t, []byte("null\n")).Do(t.Context(), http.MethodGet, "/x", nil, new(webdelivery.Task))
	require.ErrorIs(t, err, webdelivery.ErrBadResponse, "it would leave the struct as it is")
	for _, body := range []string{`maintenance`, `{"a":`, `{"a":1} trailing`, `<html>maintenance</html>`} {
		for _, out := range []any{new(jsontext.Value), &struct{ json.RawMessage }{}, new(any), &map[string]any{}} {
			err := fixture.Always(t, []byte(body)).Do(t.Context(), http.MethodGet, "/x", nil, out)
			require.ErrorIs(t, err, webdelivery.ErrBadResponse, "%T %s", out, body)
		}
	}
}
