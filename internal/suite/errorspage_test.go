package suite_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/filters"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// notProduced are the texts of docs/errors.md that no test of this module can produce, and why.
var notProduced = map[string]string{
	"purge of …: redisqueue: Redis does not work: …":                                 "of the module redisqueue",
	"…: redisqueue: not sent any more after waiting for longer than Options.Keep, …": "of the module redisqueue",
	"invalid client: has no limiter that the processes share; …":                     "of the module redisqueue",
}

// Every text of the page is one that is really printed.
func TestThePageOfErrorsQuotesRealTexts(t *testing.T) {
	t.Parallel()
	_, section, found := strings.Cut(readPage(t, "docs/errors.md"), "\n## By text\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	var quoted []string
	for row := range strings.SplitSeq(section, "\n") {
		if cell, isRow := strings.CutPrefix(row, "| `"); isRow {
			cell, _, _ = strings.Cut(cell, "` | ")
			quoted = append(quoted, strings.Split(cell, "`, `")...)
		}
	}
	require.Greater(t, len(quoted), 20)
	printed := printedErrors(t)
	for _, text := range quoted {
		_, excused := notProduced[text]
		parts := strings.Split(text, "…")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		pattern := regexp.MustCompile("^" + strings.Join(parts, ".*"))
		is := slices.ContainsFunc(printed, func(text string) bool { return pattern.MatchString(strings.TrimPrefix(text, "webdelivery: ")) })
		assert.NotEqual(t, excused, is, "%s", text)
	}
	for text := range notProduced {
		assert.Contains(t, quoted, text)
	}
	if t.Failed() {
		t.Log(strings.Join(printed, "\n"))
	}
}

// printedErrors returns the texts of errors from a service with each kind of trouble.
func printedErrors(t *testing.T) (texts []string) {
	t.Helper()
	note := func(err error) {
		t.Helper()
		require.Error(t, err)
		texts = append(texts, err.Error())
	}
	_, err := webdelivery.NewClientFromEnv()
	note(err)

	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	client, err := webdelivery.NewClient(secure.URL, fixture.Customer, webdelivery.BasicAuth(fixture.Username, fixture.Password))
	require.NoError(t, err)
	note(fixture.GetTask.Call(t.Context(), client))

	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	_, refused := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
	unknown := &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "api.example.com", IsNotFound: true}}
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		for _, cause := range []error{refused, unknown} {
			f.HTTP.Transport = fixture.RoundTripper(func(*http.Request) (*http.Response, error) { return nil, cause })
			note(fixture.GetTask.Call(f.Context(), f.NewClient(f.Srv.URL(), fixture.Setup{})))
		}
	})

	wrong := fixture.Setup{Auth: webdelivery.BasicAuth(fixture.Username, "wrong-password")}
	fixture.InFakeTime(t, wrong, func(f *fixture.Fixture) { note(fixture.Submit.Call(f.Context(), f.Client)) })
	wrong.Auth = webdelivery.SessionAuth(fixture.Username, "wrong-password")
	fixture.InFakeTime(t, wrong, func(f *fixture.Fixture) {
		note(fixture.GetTask.Call(f.Context(), f.Client))
		note(fixture.GetTask.Call(f.Context(), f.Client))
	})
	hanging := webdelivery.BasicAuthFunc(func(ctx context.Context) (string, string, error) {
		<-ctx.Done()
		return "", "", ctx.Err()
	})
	fixture.InFakeTime(t, fixture.Setup{Auth: hanging}, func(f *fixture.Fixture) { note(fixture.GetTask.Call(f.Context(), f.Client)) })
	for _, fault := range []testserver.Fault{
		{Delay: time.Hour},
		{Path: "/tasks/*", Status: 200, Body: "<html>", Header: http.Header{"Content-Type": {"text/html"}}},
		{Path: "/tasks/*", Status: 302, Header: http.Header{"Location": {"https://login.example.com/"}}},
		{Path: "/tasks/*", Status: 404, Count: -1},
	} {
		fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
			if fault.Count >= 0 {
				f.AddFault(fault)
			}
			_, err := f.Client.Tasks.Get(f.Context(), "no-such-task")
			note(err)
		})
	}
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		_, err := f.Client.Purge.Submit(f.Context(), fixture.PurgeOf("https://www.example.org/"))
		note(err)
		_, err = f.Client.Purge.Submit(f.Context(), webdelivery.PurgeRequest{URIs: []webdelivery.PurgeURI{webdelivery.Exact("www.example.com/a")}})
		note(err)
	})
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Path: "/cache/purge", Status: 503})
		note(fixture.Submit.Call(f.Context(), f.Client))
	})
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.TakeSlots()
		ctx, cancel := context.WithTimeout(f.Context(), 100*time.Millisecond)
		defer cancel()
		note(fixture.Submit.Call(ctx, f.Client))
	})
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Status: 503, Header: http.Header{"Retry-After": {"3600"}}})
		_, err := f.Client.Tasks.Wait(f.Context(), fixture.TaskID)
		note(err)
	})
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		id := f.Srv.AddTask(testserver.TaskSpec{Duration: -1})
		ctx, cancel := context.WithTimeout(f.Context(), time.Minute)
		defer cancel()
		_, err := f.Client.Tasks.Wait(ctx, id)
		note(err)
	})
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		end := time.Now()
		for _, names := range [][]string{{"event_timestamp_ms", "event_type", "domain"}, {"no_such_dimension"}} {
			_, err := f.Client.Stats.WAFTrends.Query(f.Context(), webdelivery.TrendsQuery{
				Dimensions: names, Start: end.Add(-time.Hour), End: end, Granularity: webdelivery.GranularityHour,
			})
			note(err)
		}
		fixture.AnswerWith(f, "/tasks", `{"items":[{"id":"a"}],"total":2,"page_index":1,"page_count":2}`, `{"items":[{"id":"b"}],"total":3,"page_index":2,"page_count":3}`)
		_, err := webdelivery.Collect(f.Client.Tasks.All(f.Context(), webdelivery.TaskListOptions{}))
		note(err)
		f.AddFault(testserver.Fault{Path: "/tasks", Count: 1, Body: `[{"id":"a"}]`})
		f.AddFault(testserver.Fault{Path: "/tasks", Status: 404, Count: 1})
		_, err = webdelivery.Collect(f.Client.Tasks.All(f.Context(), webdelivery.TaskListOptions{}))
		note(err)
		_, err = f.Client.NetworkLists.GetByName(f.Context(), "office")
		note(err)
	})
	_, err = filters.Parse("a==1;b==2,c==3")
	note(err)
	fixture.WithList(t, fixture.Setup{}, []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}, func(f *fixture.Fixture) {
		_, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"203.0.113.1"}, webdelivery.PlanOptions{})
		note(err)
		f.AddFault(testserver.Fault{Method: http.MethodPost, Path: "/config/networklists/*/entries", Skip: 1, Status: 500})
		entries := make([]string, 5001)
		for i := range entries {
			entries[i] = fmt.Sprintf("2001:db8::%x", i)
		}
		_, err = f.Client.NetworkLists.AddEntries(f.Context(), fixture.ListID, entries)
		note(err)
	})
	return texts
}
