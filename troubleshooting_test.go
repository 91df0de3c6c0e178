package webdelivery_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/filters"
	"github.com/webdelivery/webdelivery-go/internal/operations"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// trouble provokes an error that docs/troubleshooting.md explains.
type trouble struct {
	name    string
	setup   setup
	provoke func(f *fixture) error
}

func troubles() []trouble {
	return slices.Concat(settingTroubles(), connectionTroubles(), loginTroubles(), purgeTroubles(), waitTroubles(), statsTroubles(),
		listTroubles(), responseTroubles())
}

// Every text that docs/troubleshooting.md shows is one of the SDK, and every trouble here stands on the page.
func TestTroubleshootingPage(t *testing.T) { //nolint:paralleltest // the environment is the process's
	for _, name := range []string{"WEBDELIVERY_BASE_URL", "WEBDELIVERY_CUSTOMER", "WEBDELIVERY_USERNAME", "WEBDELIVERY_PASSWORD"} {
		t.Setenv(name, "")
	}
	page := readPage(t, "docs/troubleshooting.md")
	shown := map[string]*regexp.Regexp{}
	for _, row := range tableRows(page, "Text") {
		shown[row[0]] = regexp.MustCompile(`(?s)^` + strings.ReplaceAll(regexp.QuoteMeta(row[0]), "…", ".*") + `$`)
	}
	require.NotEmpty(t, shown)
	produced := map[string]bool{}
	for _, trouble := range troubles() {
		t.Run(trouble.name, func(t *testing.T) {
			text := trouble.text(t)
			found := false
			for row, pattern := range shown {
				if pattern.MatchString(text) {
					found, produced[row] = true, true
				}
			}
			assert.True(t, found, "docs/troubleshooting.md lacks %s", text)
		})
	}
	for row := range shown { //nolint:paralleltest // the environment is the process's
		assert.True(t, produced[row], "no error here has the text %s", row)
	}
}

// text provokes the error.
func (tr trouble) text(t *testing.T) (text string) {
	t.Helper()
	inFakeTime(t, tr.setup, func(f *fixture) {
		f.srv.AddTask(testserver.TaskSpec{ID: operations.FirstTask})
		entries := []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}
		f.srv.AddNetworkList(testserver.NetworkListSpec{ID: operations.FirstList, Name: "blocked", Entries: entries})
		err := tr.provoke(f)
		require.Error(f, err)
		text = err.Error()
	})
	return text
}

func settingTroubles() []trouble {
	client := func(baseURL string) func(*fixture) error {
		return func(*fixture) error {
			_, err := webdelivery.NewClient(baseURL, customer, webdelivery.BasicAuth(username, password))
			return err
		}
	}
	return []trouble{
		{name: "no environment", provoke: func(*fixture) error {
			_, err := webdelivery.NewClientFromEnv()
			return err
		}},
		{name: "plain http", provoke: client("http://api.example.com")},
		{name: "no scheme", provoke: client("api.example.com")},
		{name: "a customer with a slash", provoke: func(*fixture) error {
			_, err := webdelivery.NewClient("https://api.example.com", "acme/v1", webdelivery.BasicAuth(username, password))
			return err
		}},
		{name: "plain http in the environment", provoke: environment("http://api.example.com")},
		{name: "base URL with the version", provoke: environment("https://api.example.com/v1")},
	}
}

// environment creates a client from the environment, with this base URL.
func environment(baseURL string) func(*fixture) error {
	return func(f *fixture) error {
		f.Setenv("WEBDELIVERY_BASE_URL", baseURL)
		f.Setenv("WEBDELIVERY_CUSTOMER", customer)
		f.Setenv("WEBDELIVERY_USERNAME", username)
		f.Setenv("WEBDELIVERY_PASSWORD", password)
		_, err := webdelivery.NewClientFromEnv()
		return err
	}
}

func readTask(f *fixture) error {
	_, err := f.client.Tasks.Get(f.Context(), operations.FirstTask)
	return err
}

// dialing sends through a transport whose connections all end with this error.
func dialing(err error) setup {
	return setup{options: []webdelivery.Option{webdelivery.WithHTTPClient(&http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, err },
	}})}}
}

func connectionTroubles() []trouble {
	address := net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:9000"))
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: address, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	unknown := &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "api.example.com", IsNotFound: true}}
	return []trouble{
		{"connection refused", dialing(refused), readTask},
		{"unknown host", dialing(unknown), readTask},
		{"certificate", dialing(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}), readTask},
		{"timed out", setup{}, func(f *fixture) error {
			f.fail(testserver.Fault{Delay: time.Hour})
			return readTask(f)
		}},
		{"connection lost", setup{}, func(f *fixture) error {
			f.fail(testserver.Fault{Cut: testserver.CutAfterRead})
			return readTask(f)
		}},
	}
}

func loginTroubles() []trouble {
	twice := func(f *fixture) error {
		_ = readTask(f)
		return readTask(f)
	}
	basic := setup{auth: webdelivery.BasicAuth(username, "wrong")}
	return []trouble{
		{"wrong password", basic, readTask},
		{"wrong password at a purge", basic, func(f *fixture) error { return purgeURIs(f, webdelivery.Exact(newObject)) }},
		{"wrong customer", setup{}, func(f *fixture) error {
			client, err := webdelivery.NewClient(f.srv.URL(), "acne", webdelivery.BasicAuth(username, password), webdelivery.WithHTTPClient(f.http))
			require.NoError(f, err)
			_, err = client.Tasks.List(f.Context(), webdelivery.TaskListOptions{})
			return err
		}},
		{"login refused", setup{auth: webdelivery.SessionAuth(username, "wrong")}, readTask},
		{"cooling down", setup{auth: webdelivery.SessionAuth(username, "wrong")}, twice},
		{"session over", setup{auth: webdelivery.SessionToken("expired")}, readTask},
		{"not allowed", setup{server: testserver.Config{Users: []testserver.User{{Name: username, Password: password, MayNotViewConfig: true}}}}, func(f *fixture) error {
			_, err := f.client.NetworkLists.Get(f.Context(), operations.FirstList)
			return err
		}},
	}
}

func purgeURIs(f *fixture, uris ...webdelivery.PurgeURI) error {
	_, err := f.client.Purge.Submit(f.Context(), webdelivery.PurgeRequest{Action: webdelivery.ActionPurge, URIs: uris})
	return err
}

func purgeTroubles() []trouble {
	object := webdelivery.Exact(newObject)
	return []trouble{
		{"a host of others", setup{}, func(f *fixture) error { return purgeURIs(f, webdelivery.Exact("https://www.example.org/")) }},
		{"modifier", setup{}, func(f *fixture) error { return purgeURIs(f, object.WithCacheKeyModifier("v1*")) }},
		{"fragment", setup{}, func(f *fixture) error { return purgeURIs(f, webdelivery.Exact("https://www.example.com/#top")) }},
		{"too fast", setup{}, func(f *fixture) error {
			f.fail(testserver.Fault{Path: "/cache/purge", Status: http.StatusServiceUnavailable})
			return purgeURIs(f, object)
		}},
		{"no permit in time", setup{}, func(f *fixture) error {
			ctx, cancel := context.WithTimeout(f.Context(), time.Second)
			defer cancel()
			for {
				_, err := f.client.Purge.Submit(ctx, purgeOf(newObject))
				if err != nil {
					return err
				}
			}
		}},
		{"purge failed", setup{}, func(f *fixture) error {
			f.srv.FailTransactions(1, "FAILED", "3 caches did not respond", 0)
			_, err := f.client.Purge.SubmitAndWait(f.Context(), purgeOf(newObject))
			return err
		}},
		{"queue", setup{}, func(f *fixture) error {
			queue := f.newQueue(webdelivery.QueueOptions{})
			defer func() { require.NoError(f, queue.Close(f.Context())) }()
			_, err := queue.Purge(f.Context(), webdelivery.Exact("https://www.example.org/"))
			return err
		}},
		{"refused together", setup{}, func(*fixture) error { return webdelivery.ErrRefusedTogether }}, // TestSplittingIsBounded
		{"queue closed", setup{}, func(f *fixture) error {
			queue := f.newQueue(webdelivery.QueueOptions{})
			require.NoError(f, queue.Close(f.Context()))
			_, err := queue.Purge(f.Context(), object)
			return err
		}},
	}
}

func waitTroubles() []trouble {
	return []trouble{
		{"no such task", setup{}, func(f *fixture) error {
			_, err := f.client.Tasks.Get(f.Context(), "no-such-task")
			return err
		}},
		{"task failed", setup{}, func(f *fixture) error {
			id := f.srv.AddTask(testserver.TaskSpec{ID: "task-9", Error: &testserver.TaskError{Type: "ConfigError", Message: "origin unknown"}})
			_, err := f.client.Tasks.Wait(f.Context(), id)
			return err
		}},
		{"wait too short", setup{}, func(f *fixture) error {
			id := f.srv.AddTask(testserver.TaskSpec{ID: "task-9", Duration: time.Hour})
			_, err := f.client.Tasks.Wait(f.Context(), id, webdelivery.WaitTimeout(time.Minute))
			return err
		}},
	}
}

func wafTrends(f *fixture, names ...string) error {
	now := time.Now()
	_, err := f.client.Stats.WAFTrends.Query(f.Context(), webdelivery.TrendsQuery{
		Dimensions: names, Metrics: []string{webdelivery.MetricHits}, Start: now.Add(-time.Hour), End: now, Granularity: webdelivery.GranularityHour,
	})
	return err
}

func statsTroubles() []trouble {
	now := func(start, end time.Duration) func(f *fixture) error {
		return func(f *fixture) error {
			now := time.Now()
			_, err := f.client.Stats.Events.Query(f.Context(), webdelivery.EventsQuery{
				Dimensions: []string{webdelivery.DimClientIP}, Start: now.Add(start), End: now.Add(end),
			})
			return err
		}
	}
	type row struct {
		IP netip.Addr `stats:"domain"`
	}
	return []trouble{
		{"end before start", setup{}, now(0, -time.Hour)},
		{"no metrics", setup{}, func(f *fixture) error {
			_, err := f.client.Stats.WAFTrends.Query(f.Context(), webdelivery.TrendsQuery{
				Dimensions: []string{webdelivery.DimRuleID}, Start: time.Now().Add(-time.Hour), End: time.Now(), Granularity: webdelivery.GranularityHour,
			})
			return err
		}},
		{"no granularity", setup{}, func(f *fixture) error {
			_, err := f.client.Stats.WAFTrends.Query(f.Context(), webdelivery.TrendsQuery{
				Dimensions: []string{webdelivery.DimRuleID}, Metrics: []string{webdelivery.MetricHits}, Start: time.Now().Add(-time.Hour), End: time.Now(),
			})
			return err
		}},
		{"grouping set", setup{}, func(f *fixture) error { return wafTrends(f, webdelivery.DimRuleID, webdelivery.DimProperty) }},
		{"category", setup{}, func(f *fixture) error {
			_, err := f.client.Stats.WAFTopK(webdelivery.WAFByRequestPath).Query(f.Context(), webdelivery.WAFTopKQuery{Start: time.Now().Add(-time.Hour), End: time.Now()})
			return err
		}},
		{"filter mix", setup{}, func(*fixture) error {
			_, err := filters.Parse("a==1,b==2;c==3")
			return err
		}},
		{"null", setup{}, func(f *fixture) error {
			f.srv.AddEvents(testserver.Event{Time: time.Now().Add(-time.Minute), RuleID: "942100"})
			query := webdelivery.EventsQuery{Dimensions: []string{"domain"}, Start: time.Now().Add(-time.Hour), End: time.Now(), Limit: 1}
			_, err := webdelivery.Collect(webdelivery.Scan[row](f.client.Stats.Events.Rows(f.Context(), query)))
			return err
		}},
		{"no column", setup{}, func(f *fixture) error {
			f.srv.AddEvents(testserver.Event{Time: time.Now().Add(-time.Minute), RuleID: "942100"})
			query := webdelivery.EventsQuery{Dimensions: []string{"rule_id"}, Start: time.Now().Add(-time.Hour), End: time.Now(), Limit: 1}
			_, err := webdelivery.Collect(webdelivery.Scan[row](f.client.Stats.Events.Rows(f.Context(), query)))
			return err
		}},
		{"rows missing", setup{}, func(f *fixture) error {
			f.fail(testserver.Fault{Body: `{"query":{},"columns":[{"name":"event_timestamp_ms"},{"name":"client_ip"}],"rows":[],"total_results":7}`})
			return now(-time.Hour, 0)(f)
		}},
	}
}

func listTroubles() []trouble {
	plan := func(f *fixture, options webdelivery.PlanOptions, feed ...string) (*webdelivery.Plan, error) {
		return f.client.NetworkLists.Plan(f.Context(), operations.FirstList, feed, options)
	}
	return []trouble{
		{"not an address", setup{}, func(f *fixture) error {
			_, err := f.client.NetworkLists.AddEntries(f.Context(), operations.FirstList, []string{"192.0.2.300"})
			return err
		}},
		{"not an address of a plan", setup{}, func(f *fixture) error {
			_, err := plan(f, webdelivery.PlanOptions{}, "192.0.2.300")
			return err
		}},
		{"a country in a list of addresses", setup{}, func(f *fixture) error {
			_, err := plan(f, webdelivery.PlanOptions{}, "DE")
			return err
		}},
		{"a name as an id", setup{}, func(f *fixture) error {
			_, err := f.client.NetworkLists.Get(f.Context(), "office")
			return err
		}},
		{"too many removals", setup{}, func(f *fixture) error {
			_, err := plan(f, webdelivery.PlanOptions{}, "203.0.113.9")
			return err
		}},
		{"too wide", setup{}, func(f *fixture) error {
			_, err := plan(f, webdelivery.PlanOptions{MaxRemove: webdelivery.RemoveAll}, "198.51.100.0/2")
			return err
		}},
		{"stale", setup{}, func(f *fixture) error {
			p, err := plan(f, webdelivery.PlanOptions{MaxRemove: webdelivery.RemoveAll}, "203.0.113.9")
			require.NoError(f, err)
			f.srv.ChangeEntries(operations.FirstList, []string{"198.51.100.7"}, nil)
			_, err = f.client.NetworkLists.Apply(f.Context(), p, webdelivery.ApplyOptions{})
			return err
		}},
		{"two of one name", setup{}, func(f *fixture) error {
			for range 2 {
				f.srv.AddNetworkList(testserver.NetworkListSpec{Name: "office"})
			}
			_, err := f.client.NetworkLists.GetByName(f.Context(), "office")
			return err
		}},
		{"no list of the name", setup{}, func(f *fixture) error {
			_, err := f.client.NetworkLists.GetByName(f.Context(), "office")
			return err
		}},
		{"partial", setup{}, func(f *fixture) error {
			f.fail(testserver.Fault{Method: http.MethodPost, Skip: 1, Status: http.StatusInternalServerError})
			var entries []string
			for i := range 5001 {
				entries = append(entries, netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}).String())
			}
			_, err := f.client.NetworkLists.AddEntries(f.Context(), operations.FirstList, entries)
			return err
		}},
		{"entries left", setup{}, func(f *fixture) error {
			f.fail(testserver.Fault{Method: http.MethodPost, Status: http.StatusOK, Body: "{}"})
			_, err := f.client.NetworkLists.ClearEntries(f.Context(), operations.FirstList)
			return err
		}},
	}
}

func responseTroubles() []trouble {
	answering := func(fault testserver.Fault) func(f *fixture) error {
		return func(f *fixture) error {
			f.fail(fault)
			return readTask(f)
		}
	}
	return []trouble{
		{"a page of a proxy", setup{}, answering(testserver.Fault{Status: http.StatusOK, Body: "<html>Sign in</html>", Header: http.Header{"Content-Type": {"text/html"}}})},
		{"redirect", setup{}, answering(testserver.Fault{Status: http.StatusFound, Header: http.Header{"Location": {"https://login.example.com/"}}})},
		{"server fault", setup{}, answering(testserver.Fault{Status: http.StatusBadGateway})},
		{"rate limited", setup{}, answering(testserver.Fault{Status: http.StatusTooManyRequests})},
		{"too large", setup{options: []webdelivery.Option{webdelivery.WithMaxResponseBytes(10)}}, readTask},
		{"pages", setup{}, func(f *fixture) error {
			f.fail(testserver.Fault{Path: "/tasks", Body: `{"items":[{"id":"task-1"}],"total":2,"has_more":true,"page_index":1,"page_count":2,"next_uri":null}`})
			for _, err := range f.client.Tasks.All(f.Context(), webdelivery.TaskListOptions{}) {
				if err != nil {
					return err
				}
			}
			return nil
		}},
	}
}
