package purge_test

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/clitest"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/purge"
	"github.com/webdelivery/webdelivery-go/internal/redistest"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

const page = "https://www.example.com/"

// TestMain makes the test binary the program for those who set this variable.
func TestMain(m *testing.M) {
	if os.Getenv("PURGE_TEST") == "program" {
		os.Exit(cli.Main(purge.Command))
	}
	_ = os.Unsetenv("REDIS_URL")
	os.Exit(m.Run())
}

// purges runs a command line, which must end with a code.
func purges(t *testing.T, srv *webdeliverytest.Server, code int, stdin, args string) clitest.Result {
	t.Helper()
	got := clitest.Run(t, srv, purge.Command, stdin, strings.Fields("purge "+args)...)
	assert.Equal(t, code, got.Code, got.Stderr)
	return got
}

// inMemory runs a test with a service in fake time.
func inMemory(t *testing.T, test func(t *testing.T, srv *webdeliverytest.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, webdeliverytest.NewServer(t, webdeliverytest.InMemory())) })
}

// sent returns the patterns that the service accepted, and the ids of the transactions.
func sent(srv *webdeliverytest.Server) (patterns, ids []string) {
	for _, p := range srv.Purged() {
		ids = append(ids, fmt.Sprint(p.TransactionID))
		for _, u := range p.URIs {
			patterns = append(patterns, u.URIPattern)
		}
	}
	return patterns, ids
}

// 15,000 URIs are sent once each, 5,000 per request. Each transaction is a line. A terminal shows every second what was
// accepted, or why that takes so long.
func TestFewRequestsForManyURIs(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server) {
		srv.Fail(webdeliverytest.FaultRule{Path: "/cache/purge", Count: 2, Delay: 1900 * time.Millisecond, Status: http.StatusInternalServerError})
		var in []string
		for i := range 15_000 {
			in = append(in, fmt.Sprint(page, i))
		}
		app, stdout, stderr := clitest.App(srv, strings.Join(in, "\n"))
		app.ErrTerminal = true
		assert.Equal(t, cli.Done, app.Run(t.Context(), []string{"purge"}, purge.Command))
		patterns, ids := sent(srv)
		assert.Equal(t, slices.Sorted(slices.Values(in)), slices.Sorted(slices.Values(patterns)))
		assert.Equal(t, 2+3, srv.Count("", ""))
		line := "  SUBMITTED  0\n"
		assert.Equal(t, "ID                STATUS     PROGRESS  DESCRIPTION\n"+strings.Join(ids, line)+line, stdout.String())
		assert.Regexp(t, `^\r1 s, 0 URIs accepted\x1b\[K\r2 s, retrying POST .*: 500 Internal Server Error.*\r\x1b\[K$`, stderr.String())
	})
}

// The URIs of a line. (RFC 3986, section 3.3, has the characters of a path.)
func TestURIsOfALine(t *testing.T) {
	t.Parallel()
	const base = "--base https://www.example.com/s/"
	for _, tt := range []struct{ flags, line, want string }{
		{base, "./a(1)!.css", "https://www.example.com/s/a(1)!.css"},
		{base, "a b?c#d%20[1].css", "https://www.example.com/s/a%20b%3Fc%23d%2520%5B1%5D.css"},
		{base, `"\303\274\t\".css"`, "https://www.example.com/s/%C3%BC%09%22.css"},
		{base, "index.html", "https://www.example.com/s/index.html https://www.example.com/s/"},
		{base, "aindex.html", "https://www.example.com/s/aindex.html"},
		{base, `"half`, ""},
		{base, "https://www.example.com/a", ""},
		{"--prefix " + base, "a/index.html", "https://www.example.com/s/a/index.html"},
		{"--prefix", "www.example.com/a", "www.example.com/a"},
		{"--both", "https://www.example.com/a", "https://www.example.com/a http://www.example.com/a"},
		{"--both", "www.example.com/a", "https://www.example.com/a http://www.example.com/a"},
	} {
		srv := webdeliverytest.NewServer(t)
		purges(t, srv, map[bool]int{true: cli.Failed, false: cli.Done}[tt.want == ""], tt.line, tt.flags)
		patterns, _ := sent(srv)
		assert.ElementsMatch(t, strings.Fields(tt.want), patterns, tt.line)
		for _, p := range srv.Purged() {
			assert.Equal(t, strings.HasPrefix(tt.flags, "--prefix"), p.URIs[0] == webdelivery.Prefix(p.URIs[0].URIPattern))
		}
	}
}

// What the service or the SDK refuses fails without the others, each with a line. If all fail, the exit code is 1. After
// a failure that is no fault of a URI, such as a broken connection, no more are read.
func TestSomeURIsFail(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server) {
		const bad = "https://www.example.org/not-ours\nstauts\n"
		got := purges(t, srv, cli.Partly, bad+strings.Repeat(page+"a\n", 6000), "")
		assert.Regexp(t, `(?m)^webdelivery: "https://www\.example\.org/not-ours": not applied: POST .* 400 Bad Request`, got.Stderr)
		assert.Regexp(t, `(?m)^webdelivery: "stauts": not applied: has no protocol.* add --both for both protocols, or --prefix`, got.Stderr)
		assert.Equal(t, 2, strings.Count(got.Stderr, "\n"))
		assert.Empty(t, purges(t, srv, cli.Failed, bad, "").Stdout)

		got = purges(t, srv, cli.Partly, "", "-o json --expire --wait https://www.example.com/?a&b https://www.example.com/c#d")
		patterns, ids := sent(srv)
		assert.Equal(t, []string{page + "a", page + "a", page + "?a&b"}, patterns)
		assert.Equal(t, webdelivery.ActionExpire, srv.Purged()[2].Action)
		assert.JSONEq(t, `{"transactions":[{"id":"`+ids[2]+`","status":"COMPLETE","progress":100,"description":"all caches have answered",
			"uris":1}],"failed":[{"uri":"https://www.example.com/c#d","outcome":"not applied",
			"error":"contains a fragment (#), which never reaches a cache; remove it, or write %23"}]}`, got.Stdout)

		srv.Fail(webdeliverytest.FaultRule{Path: "/cache/purge", Cut: webdeliverytest.CutAfterExecute})
		got = purges(t, srv, cli.Failed, strings.Repeat(page+"a\n", 6000), "-o json")
		assert.Regexp(t, `(?s)^webdelivery: "https://www.example.com/a": unknown: POST .*\nwebdelivery: not all was read: POST `, got.Stderr)
		assert.Regexp(t, `(?s)^\{\n  "transactions": \[\],.*"stopped": "not all was read: POST `, got.Stdout)
		assert.Less(t, strings.Count(got.Stdout, `"outcome"`), 5100)
	})
}

// Wrong usage sends nothing. An empty input is no success.
func TestWrongUsage(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"":                                      "nothing to purge; put one URI on each line",
		"--base www.example.com a":              "want a URL such as https://www.example.com/",
		"--base https:/www.example.com a":       "want a URL such as https://www.example.com/",
		"--base https://www.example.com status": "unknown flag: --base; see webdelivery purge status --help",
		"status 12 0":                           `"0" is not the id of a transaction`,
	} {
		srv := webdeliverytest.NewServer(t)
		assert.Contains(t, purges(t, srv, cli.Misuse, "# none\n\n", args).Stderr, want)
		assert.Empty(t, srv.Requests())
	}
}

// The exit code is 1 if the only transaction fails, and 3 if another one succeeds. Their status can be read again. If
// --timeout ends a wait, the error says how to wait again, and that works.
func TestTransactions(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server) {
		srv.FailTransactions(1, "FAILED", "two caches are down", 500)
		purges(t, srv, cli.Failed, "", "--wait https://www.example.com/a")
		purges(t, srv, cli.Done, "", "https://www.example.com/b")
		_, ids := sent(srv)
		got := purges(t, srv, cli.Partly, "", "status --wait -o csv "+strings.Join(ids, " "))
		assert.Equal(t, "id,status,progress,description\n"+ids[0]+",FAILED,100,two caches are down\n"+ids[1]+",COMPLETE,100,all caches have answered\n", got.Stdout)
		assert.Equal(t, "webdelivery: transaction "+ids[0]+" ended as FAILED (code 500): two caches are down: transaction status\n", got.Stderr)
		got = purges(t, srv, cli.Partly, "", "status -o ndjson 7 "+ids[0])
		assert.Equal(t, `{"id":"`+ids[0]+`","status":"FAILED","progress":100,"description":"two caches are down"}`+"\n", got.Stdout)
		assert.Contains(t, got.Stderr, "transaction 7 does not exist")

		got = purges(t, srv, cli.Failed, "", "--wait --timeout 1s "+page)
		_, ids = sent(srv)
		assert.Contains(t, got.Stdout, "\n"+ids[2]+"  SUBMITTED")
		assert.Contains(t, got.Stderr, " --timeout 1s is over; to wait again: webdelivery purge status "+ids[2]+" --wait\n")
		purges(t, srv, cli.Done, "", "status --wait "+ids[2])
	})
}

// Processes with the same Redis share requests. What Redis refuses is not the service's fault, and shows no password.
func TestOneQueueForManyProcesses(t *testing.T) {
	t.Parallel()
	redistest.OnServers(t, func(t *testing.T, server *redistest.Server) {
		rdb := redis.NewClient(&redis.Options{Addr: server.Addr})
		require.NoError(t, rdb.ConfigSet(t.Context(), "requirepass", "secret").Err())
		require.NoError(t, rdb.Close())
		srv := webdeliverytest.NewServer(t)
		const processes = 20
		var running sync.WaitGroup
		for i := range processes {
			running.Go(func() {
				purges(t, srv, cli.Done, "", fmt.Sprint("--redis redis://:secret@", server.Addr, " ", page, i))
			})
		}
		running.Wait()
		for url, want := range map[string]string{
			"redis://:wrong@" + server.Addr: "WRONGPASS",
			"redis://:wrong@127.0.0.1:1":    "refused",
		} {
			got := purges(t, srv, cli.Failed, "", "--redis "+url+" "+page)
			assert.Regexp(t, "^webdelivery: the Redis at "+url[len("redis://:wrong@"):]+": .*"+want+".*\nwebdelivery: check that Redis or Valkey works there,", got.Stderr)
		}
		patterns, _ := sent(srv)
		assert.Len(t, patterns, processes)
		assert.Less(t, srv.Count("", ""), processes/2)
	})
}
