package testserver_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// A rule selects requests by method and path. The path is compared by element, as received.
func TestFaultsMatch(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		method, path string
		hits         []string
	}{
		{"", "", []string{"GET /tasks", "GET /tasks/a%2Fb", "GET /tasks/1", "POST /sessions", "GET /x/y/z", "outside"}},
		{"POST", "", []string{"POST /sessions"}},
		{"", "/tasks/*", []string{"GET /tasks/a%2Fb", "GET /tasks/1"}},
		{"", "/tasks/a%2Fb", []string{"GET /tasks/a%2Fb"}},
		{"", "/tasks/**", []string{"GET /tasks", "GET /tasks/a%2Fb", "GET /tasks/1"}},
		{"", "/**", []string{"GET /tasks", "GET /tasks/a%2Fb", "GET /tasks/1", "POST /sessions", "GET /x/y/z"}},
		{"", "/*/y/**", []string{"GET /x/y/z"}},
	} {
		f := start(t, testserver.Config{})
		f.Fail(testserver.Fault{Method: tc.method, Path: tc.path, Status: 418})
		var hits []string
		for _, request := range []string{"GET /tasks", "GET /tasks/a%2Fb", "GET /tasks/1", "POST /sessions", "GET /x/y/z"} {
			method, path, _ := strings.Cut(request, " ")
			if f.do(method, path, "").status == 418 {
				hits = append(hits, request)
			}
		}
		if f.get(f.URL()+"/other/v1/tasks").status == 418 {
			hits = append(hits, "outside")
		}
		assert.Equal(t, tc.hits, hits, "%s %s", tc.method, tc.path)
		assert.Equal(t, len(tc.hits), f.Count(tc.method, tc.path), "Count takes the same patterns")
	}
	for _, path := range []string{"/acme/v1/tasks", "/tasks/", "/tasks?count=5"} { // no request has it
		assert.ErrorContains(t, testserver.Fault{Path: path}.Check(), "Path is "+path+": ")
	}
}

// The place of a cut decides whether the request is executed, in memory and on TCP.
func TestCuts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20) // more than all buffers on the way can hold
	big := uris(exact("www.example.com/"+long), exact("www.example.com/b"))
	for name, tc := range map[string]struct {
		fault    testserver.Fault
		status   int // 0: no response
		got      string
		executed bool
		read     bool
	}{
		"before read":      {testserver.Fault{Cut: testserver.CutBeforeRead}, 0, "", false, false},
		"after read":       {testserver.Fault{Cut: testserver.CutAfterRead}, 0, "", false, true},
		"after execute":    {testserver.Fault{Cut: testserver.CutAfterExecute}, 0, "", true, true},
		"in the body":      {testserver.Fault{Cut: testserver.CutBody, Body: "12345678"}, 201, "1234", true, true},
		"in chunks":        {testserver.Fault{Cut: testserver.CutChunked, Body: "12345678"}, 201, "1234", true, true},
		"of an empty body": {testserver.Fault{Cut: testserver.CutBody, Status: 200}, 200, "", false, true},
	} {
		for _, body := range []string{onePurge, big} {
			for _, wire := range []string{"memory", "tcp"} {
				t.Run(fmt.Sprintf("%s/%d/%s", name, len(body), wire), func(t *testing.T) {
					t.Parallel()
					s := testserver.New(testserver.Config{})
					if wire == "memory" {
						s.ListenMemory()
					} else {
						_, err := s.ListenTCP()
						require.NoError(t, err)
					}
					f := using(t, s)
					f.Fail(tc.fault)
					resp, err := f.client.Do(f.request(http.MethodPost, "/cache/purge", body))
					if tc.status == 0 {
						require.Error(t, err)
					} else {
						require.NoError(t, err)
						got, err := io.ReadAll(resp.Body)
						require.ErrorIs(t, err, io.ErrUnexpectedEOF)
						require.NoError(t, resp.Body.Close())
						assert.Equal(t, tc.got, string(got))
						assert.Equal(t, tc.status, resp.StatusCode)
					}
					assert.Equal(t, tc.executed, len(f.Purged()) == 1)
					require.NoError(t, f.Close()) // the handler has returned then
					seen := f.Requests()
					require.Len(t, seen, 1)
					assert.Equal(t, tc.status, seen[0].Status)
					assert.Equal(t, tc.read, len(seen[0].Body) == len(body))
				})
			}
		}
	}
}
