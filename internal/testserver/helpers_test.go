package testserver_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// noon is the initial time of every test's clock, which moves only by Advance.
var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

// fake is a server that listens in memory, with a client for it.
type fake struct {
	*testserver.Server

	t      *testing.T
	client *http.Client
}

func start(t *testing.T, cfg testserver.Config) fake {
	t.Helper()
	if cfg.Clock == nil {
		cfg.Clock = testserver.NewClock(func() time.Time { return noon })
	}
	s := testserver.New(cfg)
	s.ListenMemory()
	return using(t, s)
}

// using returns a client of a server that listens, and closes both after the test.
func using(t *testing.T, s *testserver.Server) fake {
	t.Helper()
	transport := s.Transport()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		assert.NoError(t, s.Close())
	})
	return fake{Server: s, t: t, client: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

type response struct {
	status int
	header http.Header
	body   string
}

// request returns a request with valid credentials to a path relative to /acme/v1, or to a whole URL.
func (f fake) request(method, path, body string) *http.Request {
	f.t.Helper()
	address := path
	if strings.HasPrefix(path, "/") {
		address = f.URL() + "/acme/v1" + path
	}
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(f.t.Context(), method, address, content)
	require.NoError(f.t, err)
	r.SetBasicAuth("alice", "correct-horse-battery")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

func (f fake) do(method, path, body string) response {
	f.t.Helper()
	resp, err := f.client.Do(f.request(method, path, body))
	require.NoError(f.t, err)
	defer func() { _ = resp.Body.Close() }()
	content, err := io.ReadAll(resp.Body)
	require.NoError(f.t, err)
	return response{status: resp.StatusCode, header: resp.Header, body: string(content)}
}

func (f fake) get(path string) response {
	f.t.Helper()
	return f.do(http.MethodGet, path, "")
}

// onePurge is a valid purge request.
const onePurge = `{"purge_request":{"action":"PURGE","uris":[{"match_mode":"EXACT_LITERAL","uri_pattern":"www.example.com/app.css"}]}}`

func (f fake) purge(body string) response {
	f.t.Helper()
	return f.do(http.MethodPost, "/cache/purge", body)
}
