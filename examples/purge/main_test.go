package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/examples/internal/program/programtest"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// outcome is what a user sees of a run.
type outcome struct {
	code     int
	out, err string
}

// purger runs the program, which must end with a code, with a text as its stdin.
type purger func(ctx context.Context, code int, in string, args ...string) outcome

// inMemory lets a test run the program with a fake service in fake time.
func inMemory(t *testing.T, test func(t *testing.T, srv *webdeliverytest.Server, purge purger)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := webdeliverytest.NewServer(t, webdeliverytest.InMemory())
		client := srv.Client(t)
		test(t, srv, func(ctx context.Context, want int, in string, args ...string) outcome {
			t.Helper()
			got := finish(func(s program.Streams) error {
				s.In = strings.NewReader(in)
				j, err := parse(ctx, args, s)
				require.NoError(t, err)
				return j.run(ctx, client)
			})
			assert.Equal(t, want, got.code, got.err)
			return got
		})
	})
}

func finish(work func(s program.Streams) error) outcome {
	code, stdout, stderr := programtest.Run("purge", program.Streams{In: strings.NewReader("")}, work)
	return outcome{code, stdout, stderr}
}

// sent returns the patterns of each request that the service accepted.
func sent(srv *webdeliverytest.Server) (requests [][]string) {
	for _, p := range srv.Purged() {
		var patterns []string
		for _, u := range p.URIs {
			patterns = append(patterns, u.URIPattern)
		}
		requests = append(requests, patterns)
	}
	return requests
}

// 15,000 URIs are sent once each, 5,000 per request.
func TestFewRequestsForManyURIs(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, purge purger) {
		const all, requests = 15_000, 3
		var in strings.Builder
		for i := range all {
			fmt.Fprintf(&in, "https://www.example.com/%d\n", i)
		}
		got := purge(t.Context(), program.Done, in.String())
		assert.Empty(t, got.err)
		assert.Equal(t, requests, strings.Count(got.out, " SUBMITTED\n"))
		assert.Equal(t, requests, srv.Count(http.MethodPost, "/cache/purge"))
		patterns := slices.Concat(sent(srv)...)
		slices.Sort(patterns)
		assert.Len(t, slices.Compact(patterns), all)
		for _, request := range sent(srv) {
			assert.Len(t, request, 5000)
		}
	})
}

// The URLs of a file whose name is on a line. (RFC 3986, section 3.3, has the characters of a path.)
func TestPathsBelowABase(t *testing.T) {
	t.Parallel()
	const base = "https://www.example.com/s/"
	for name, want := range map[string][]string{
		"a.css":                      {base + "a.css"},
		"./a(1)!.css":                {base + "a(1)!.css"},
		"/img/":                      {base + "img/"},
		"a b?c#d%20[1].css":          {base + "a%20b%3Fc%23d%2520%5B1%5D.css"},
		`"\303\274\t\".css"`:         {base + "%C3%BC%09%22.css"},
		"ü*":                         {base + "%C3%BC%2A"},
		"index.html":                 {base + "index.html", base},
		"a/index.html":               {base + "a/index.html", base + "a/"},
		"aindex.html":                {base + "aindex.html"},
		`"half`:                      nil,
		"https://www.example.com/a/": nil,
	} {
		match, err := matcher(base, false, false)
		require.NoError(t, err)
		got, err := match(name)
		assert.Equal(t, want == nil, err != nil, name)
		var patterns []string
		for _, uri := range got {
			patterns = append(patterns, uri.URIPattern)
		}
		assert.ElementsMatch(t, want, patterns, name)
		match, err = matcher(base, true, false)
		require.NoError(t, err)
		if got, _ = match(name); want != nil {
			assert.Equal(t, []webdelivery.PurgeURI{webdelivery.Prefix(want[0])}, got, name)
		}
	}
}

// A URI that the service rejects, and one that the SDK refuses before sending, fail without the others.
func TestSomeURIsFail(t *testing.T) {
	t.Parallel()
	const in = "https://www.example.org/not-ours\nhttps://www.example.com/a\nwww.example.com/b\nhttps://www.example.com/d"
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, purge purger) {
		got := purge(t.Context(), program.Partly, in)
		assert.Regexp(t, `(?m)^purge: "https://www\.example\.org/not-ours": not applied: .* 400 Bad Request`, got.err)
		assert.Regexp(t, `(?m)^purge: "www\.example\.com/b": not applied: has no protocol.* set -both for both protocols, or -prefix`, got.err)
		assert.Equal(t, 2, strings.Count(got.err, "\n"))

		assert.ElementsMatch(t, []string{"https://www.example.com/a", "https://www.example.com/d"}, slices.Concat(sent(srv)...))
	})
}

// The document of -json has everything that the lines have.
func TestJSON(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, purge purger) {
		got := purge(t.Context(), program.Partly, "", "-json", "-wait", "https://www.example.com/?a&b", "https://www.example.com/c#d")
		assert.JSONEq(t, fmt.Sprintf(`{"transactions":[{"id":"%d","status":"COMPLETE","uris":1}],"failed":[{"uri":"https://www.example.com/c#d",
			"outcome":"not applied","error":"contains a fragment (#), which never reaches a cache; remove it, or write %%23"}]}`,
			srv.Purged()[0].TransactionID), got.out)

		got = purge(t.Context(), program.Failed, "", "-json", "https://www.example.com/c#d")
		assert.Contains(t, got.out, `"transactions":[]`)
	})
}

// The exit code is 1 if the only transaction fails, and 3 if another one succeeds.
func TestTransactionsThatEndBadly(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, purge purger) {
		srv.FailTransactions(1, "FAILED", "two caches are down", 500)
		got := purge(t.Context(), program.Failed, "", "-wait", "https://www.example.com/a")
		bad := srv.Purged()[0].TransactionID
		assert.Equal(t, outcome{
			program.Failed, fmt.Sprintf("%d FAILED\n", bad),
			fmt.Sprintf("purge: webdelivery: transaction %d ended as FAILED (code 500): two caches are down: transaction status\n", bad),
		}, got)

		purge(t.Context(), program.Done, "", "-wait", "https://www.example.com/b")
		good := srv.Purged()[1].TransactionID
		got = purge(t.Context(), program.Partly, "", "-resume", fmt.Sprint(bad), "-resume", fmt.Sprint(good))
		assert.Equal(t, fmt.Sprintf("%d FAILED\n%d COMPLETE\n", bad, good), got.out)
		assert.Len(t, srv.Purged(), 2, "-resume purges nothing")
	})
}

// The outcome of a URI whose connection broke is unknown.
func TestWhatBecameOfAURI(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, purge purger) {
		srv.Fail(webdeliverytest.FaultRule{Path: "/cache/purge", Cut: webdeliverytest.CutAfterExecute})
		got := purge(t.Context(), program.Failed, "", "https://www.example.com/a")
		assert.Contains(t, got.err, `purge: "https://www.example.com/a": unknown: webdelivery: POST `)
	})
}

// ^C during a wait prints how to continue, and that command works.
func TestInterruptedWait(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, purge purger) {
		ctx, interrupt := context.WithCancel(t.Context())
		srv.Fail(webdeliverytest.FaultRule{Path: "/transactions/*", Skip: 1, Count: 1, Handler: func(_ http.ResponseWriter, r *http.Request) {
			interrupt()
			<-r.Context().Done()
		}})
		got := purge(ctx, program.Failed, "", "-wait", "https://www.example.com/a")
		id := srv.Purged()[0].TransactionID
		assert.Equal(t, fmt.Sprintf("%d PENDING\n", id), got.out)
		assert.Contains(t, got.err, fmt.Sprintf("context canceled; to wait again: purge -resume %d\n", id))

		got = purge(t.Context(), program.Done, "", "-resume", fmt.Sprint(id))
		assert.Equal(t, outcome{program.Done, fmt.Sprintf("%d COMPLETE\n", id), ""}, got)
	})
}

// -timeout bounds the wait for all transactions together. The error says how to wait again.
func TestTimeout(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, purge purger) {
		purge(t.Context(), program.Done, "", "https://www.example.com/a")
		purge(t.Context(), program.Done, "", "https://www.example.com/b")
		srv.Fail(webdeliverytest.FaultRule{Path: "/transactions/*", Status: http.StatusServiceUnavailable})
		began := time.Now()
		var flags []string
		for _, p := range srv.Purged() {
			flags = append(flags, "-resume", fmt.Sprint(p.TransactionID))
		}
		got := purge(t.Context(), program.Failed, "", append(flags, "-timeout", "10s")...)
		assert.Equal(t, 10*time.Second, time.Since(began))
		for _, p := range srv.Purged() {
			assert.Contains(t, got.err, fmt.Sprintf("purge: transaction %d has not ended after -timeout 10s: ", p.TransactionID))
			assert.Contains(t, got.err, fmt.Sprintf("; to wait again: purge -resume %d\n", p.TransactionID))
		}
	})
}

// A wait says once why its polls fail, and that it goes on. A terminal shows each.
func TestPollsThatFail(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, purge purger) {
		fault := webdeliverytest.FaultRule{Path: "/transactions/*", Count: 16, Status: http.StatusServiceUnavailable} // 4 polls
		srv.Fail(fault)
		got := purge(t.Context(), program.Done, "", "-wait", "https://www.example.com/a")
		assert.Regexp(t, `^purge: transaction \d+: a poll failed again; polling continues: webdelivery: GET .*503 Service Unavailable.*\n$`, got.err)
		srv.Fail(fault)
		got = finish(func(s program.Streams) error {
			s.ErrTerminal = true
			j, err := parse(t.Context(), []string{"-wait", "https://www.example.com/a"}, s)
			require.NoError(t, err)
			return j.run(t.Context(), srv.Client(t))
		})
		assert.Equal(t, program.Done, got.code)
		assert.Contains(t, got.err, "  0 % of the caches; polling again after: webdelivery: GET ")
		assert.NotContains(t, got.err, "polls fail")
	})
}

// The program works over a real connection, with the settings of the environment.
func TestRun(t *testing.T) {
	srv := webdeliverytest.NewServer(t, webdeliverytest.WithPurgeDuration(0))
	programtest.UseService(t, srv)
	t.Setenv("REDIS_URL", "")
	got := finish(func(s program.Streams) error {
		return run(t.Context(), []string{"-wait", "https://www.example.com/a"}, s)
	})
	require.Len(t, srv.Purged(), 1)
	assert.Equal(t, outcome{program.Done, fmt.Sprintf("%d COMPLETE\n", srv.Purged()[0].TransactionID), ""}, got)
}
