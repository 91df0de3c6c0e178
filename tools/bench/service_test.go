package bench

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/webdelivery/webdelivery-go"
)

// The credentials of the benchmarks.
const (
	customer = "acme"
	username = "alice"
	password = "correct-horse-battery"
)

// inMemory is a service without a network.
type inMemory func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f inMemory) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// response returns a response of a service in memory.
func response(status int, body []byte) (*http.Response, error) {
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}},
		ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body)),
	}, nil
}

// inMemoryClient returns a client of such a service, without a purge limit unless the options have one.
func inMemoryClient(service inMemory, options ...webdelivery.Option) (*webdelivery.Client, error) {
	options = append([]webdelivery.Option{
		webdelivery.WithHTTPClient(&http.Client{Transport: service}), webdelivery.WithPurgeLimiter(unlimited{}),
	}, options...)
	return webdelivery.NewClient("https://api.example.com", customer, webdelivery.BasicAuth(username, password), options...)
}

// alwaysResponding returns a client of a service that returns the same body to every request.
func alwaysResponding(body []byte, options ...webdelivery.Option) (*webdelivery.Client, error) {
	return inMemoryClient(func(r *http.Request) (*http.Response, error) {
		if r.Body != nil {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				return nil, err
			}
			_ = r.Body.Close()
		}
		return response(http.StatusOK, body)
	}, options...)
}

// newClient creates a client as a user does.
func newClient(base string, options ...webdelivery.Option) (*webdelivery.Client, error) {
	return webdelivery.NewClient(base, customer, webdelivery.BasicAuth(username, password), options...)
}

// taskBody is the small response: a task with every member except error_info (service document, section 2.1).
const taskBody = `{"id":"task-1","uri":"/tasks/task-1","operation":"deploy-property","status":"COMPLETE","complete":true,` +
	`"progress":100,"begin_time":"2026-11-20T08:30:00.000Z","end_time":"2026-11-20T08:31:00.000Z",` +
	`"last_updated":"2026-11-20T08:31:00.000Z","user":{"id":"user-1","uri":"/users/user-1"},` +
	`"target":{"id":"property-1","uri":"/properties/property-1"}}`

// object returns the i-th URI to purge. In a request, each is 77 bytes of JSON with its comma.
func object(i int) webdelivery.PurgeURI {
	return webdelivery.Exact(fmt.Sprintf("https://www.example.com/%05d", i))
}

func purgeOf(n int) webdelivery.PurgeRequest {
	request := webdelivery.PurgeRequest{Action: webdelivery.ActionPurge}
	for i := range n {
		request.URIs = append(request.URIs, object(i))
	}
	return request
}

const receiptBody = `{"code":201,"description":"Request submitted","purge_response":` +
	`{"transaction_status_uri":"/transactions/17"},"transaction_id":17}`

// addresses returns distinct addresses of the range reserved for benchmarks.
func addresses(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("198.%d.%d.%d", 18+i>>16, i>>8&255, i&255)
	}
	return all
}

const (
	listID    = "5e1f0d2c-0000-4000-9000-000000000000"
	pageCount = 1000
)

// listInMemory returns a service with one list, with prepared pages of a thousand entries (service document, section
// 2.6).
func listInMemory(entries []string) inMemory {
	list := fmt.Sprintf(`{"uri":"/config/networklists/%[1]s","id":"%[1]s","type":"IP","name":"blocked","description":"",`+
		`"deprecated":false,"entries_uri":"/config/networklists/%[1]s/entries",`+
		`"entries_batch_deletion_uri":"/config/networklists/%[1]s/entries/deletions",`+
		`"creation_timestamp":"2026-11-20T08:30:00.000Z"}`, listID)
	ready := prepared(len(entries), func(page, last int) []byte {
		cut := entries[(page-1)*pageCount : min(len(entries), page*pageCount)]
		return entryPage(cut, (page-1)*pageCount, len(entries), page, last)
	})
	return func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == "/"+customer+"/v1/config/networklists/"+listID {
			return response(http.StatusOK, []byte(list))
		}
		return ready(r)
	}
}

// prepared returns a service whose pages with n items exist before the first request.
func prepared(n int, page func(index, last int) []byte) inMemory {
	last := (n + pageCount - 1) / pageCount
	pages := map[string][]byte{}
	for i := range last {
		pages[fmt.Sprint(i+1)] = page(i+1, last)
	}
	pages[""] = pages["1"]
	return func(r *http.Request) (*http.Response, error) {
		query, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil {
			return nil, err
		}
		return response(http.StatusOK, pages[query.Get("page")])
	}
}

// entryPage returns a page of the entries collection. first is the number of its first entry.
func entryPage(entries []string, first, total, index, last int) []byte {
	items := make([]string, len(entries))
	for i, entry := range entries {
		id := fmt.Sprintf("5e1f0d2c-0000-4000-8000-%012d", first+i)
		items[i] = fmt.Sprintf(`{"uri":"/config/networklists/%s/entries/%s","id":"%s","entry":"%s","added_by":"operator",`+
			`"creation_timestamp":"2026-11-20T08:30:00.000Z"}`, listID, id, id, entry)
	}
	return page(fmt.Sprintf("/config/networklists/%s/entries?count=%d", listID, pageCount), items, total, index, last)
}

// page returns a page of a collection with this address (service document, section 2.6).
func page(address string, items []string, total, index, last int) []byte {
	at := func(page int) string { return fmt.Sprintf(`"%s&page=%d"`, address, page) }
	prev, next := "null", "null"
	if index > 1 {
		prev = at(index - 1)
	}
	if index < last {
		next = at(index + 1)
	}
	return fmt.Appendf(nil, `{"uri":%s,"items":[%s],"total":%d,"has_more":%t,"page_count":%d,"page_index":%d,"prev_uri":%s,"next_uri":%s}`,
		at(index), strings.Join(items, ","), total, index < last, last, index, prev, next)
}
