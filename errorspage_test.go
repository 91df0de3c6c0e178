package webdelivery_test

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
	client, err := webdelivery.NewClient(secure.URL, customer, webdelivery.BasicAuth(username, password))
	require.NoError(t, err)
	note(getTask.call(t.Context(), client))

	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	_, refused := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
	unknown := &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "api.example.com", IsNotFound: true}}
	inFakeTime(t, setup{}, func(f *fixture) {
		for _, cause := range []error{refused, unknown} {
			f.http.Transport = roundTripper(func(*http.Request) (*http.Response, error) { return nil, cause })
			note(getTask.call(f.Context(), f.newClient(f.srv.URL(), setup{})))
		}
	})

	wrong := setup{auth: webdelivery.BasicAuth(username, "wrong-password")}
	inFakeTime(t, wrong, func(f *fixture) { note(submit.call(f.Context(), f.client)) })
	wrong.auth = webdelivery.SessionAuth(username, "wrong-password")
	inFakeTime(t, wrong, func(f *fixture) {
		note(getTask.call(f.Context(), f.client))
		note(getTask.call(f.Context(), f.client))
	})
	hanging := webdelivery.BasicAuthFunc(func(ctx context.Context) (string, string, error) {
		<-ctx.Done()
		return "", "", ctx.Err()
	})
	inFakeTime(t, setup{auth: hanging}, func(f *fixture) { note(getTask.call(f.Context(), f.client)) })
	for _, fault := range []testserver.Fault{
		{Delay: time.Hour},
		{Path: "/tasks/*", Status: 200, Body: "<html>", Header: http.Header{"Content-Type": {"text/html"}}},
		{Path: "/tasks/*", Status: 302, Header: http.Header{"Location": {"https://login.example.com/"}}},
		{Path: "/tasks/*", Status: 404, Count: -1},
	} {
		inFakeTime(t, setup{}, func(f *fixture) {
			if fault.Count >= 0 {
				f.fail(fault)
			}
			_, err := f.client.Tasks.Get(f.Context(), "no-such-task")
			note(err)
		})
	}
	inFakeTime(t, setup{}, func(f *fixture) {
		_, err := f.client.Purge.Submit(f.Context(), purgeOf("https://www.example.org/"))
		note(err)
		_, err = f.client.Purge.Submit(f.Context(), webdelivery.PurgeRequest{URIs: webdelivery.ExactAll("www.example.com/a")})
		note(err)
	})
	inFakeTime(t, setup{}, func(f *fixture) {
		f.fail(testserver.Fault{Path: "/cache/purge", Status: 503})
		note(submit.call(f.Context(), f.client))
	})
	inFakeTime(t, setup{}, func(f *fixture) {
		f.takeSlots()
		ctx, cancel := context.WithTimeout(f.Context(), 100*time.Millisecond)
		defer cancel()
		note(submit.call(ctx, f.client))
	})
	inFakeTime(t, setup{}, func(f *fixture) {
		f.fail(testserver.Fault{Status: 503, Header: http.Header{"Retry-After": {"3600"}}})
		_, err := f.client.Tasks.Wait(f.Context(), taskID)
		note(err)
	})
	inFakeTime(t, setup{}, func(f *fixture) {
		id := f.srv.AddTask(testserver.TaskSpec{Duration: -1})
		ctx, cancel := context.WithTimeout(f.Context(), time.Minute)
		defer cancel()
		_, err := f.client.Tasks.Wait(ctx, id)
		note(err)
	})
	inFakeTime(t, setup{}, func(f *fixture) {
		end := time.Now()
		for _, names := range [][]string{{"event_timestamp_ms", "event_type", "domain"}, {"no_such_dimension"}} {
			_, err := f.client.Stats.WAFTrends.Query(f.Context(), webdelivery.TrendsQuery{
				Dimensions: names, Start: end.Add(-time.Hour), End: end, Granularity: webdelivery.GranularityHour,
			})
			note(err)
		}
		answerWith(f, "/tasks", `{"items":[{"id":"a"}],"total":2,"page_index":1,"page_count":2}`, `{"items":[{"id":"b"}],"total":3,"page_index":2,"page_count":3}`)
		_, err := webdelivery.Collect(f.client.Tasks.All(f.Context(), webdelivery.TaskListOptions{}))
		note(err)
		f.fail(testserver.Fault{Path: "/tasks", Count: 1, Body: `[{"id":"a"}]`})
		f.fail(testserver.Fault{Path: "/tasks", Status: 404, Count: 1})
		_, err = webdelivery.Collect(f.client.Tasks.All(f.Context(), webdelivery.TaskListOptions{}))
		note(err)
		_, err = f.client.NetworkLists.GetByName(f.Context(), "office")
		note(err)
	})
	_, err = filters.Parse("a==1;b==2,c==3")
	note(err)
	withList(t, setup{}, []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}, func(f *fixture) {
		_, err := f.client.NetworkLists.Plan(f.Context(), listID, []string{"203.0.113.1"}, webdelivery.PlanOptions{})
		note(err)
		f.fail(testserver.Fault{Method: http.MethodPost, Path: "/config/networklists/*/entries", Skip: 1, Status: 500})
		entries := make([]string, 5001)
		for i := range entries {
			entries[i] = fmt.Sprintf("2001:db8::%x", i)
		}
		_, err = f.client.NetworkLists.AddEntries(f.Context(), listID, entries)
		note(err)
	})
	return texts
}
