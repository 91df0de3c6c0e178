package conformance_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/conformance"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// noon is the initial time of every fake's clock, which advances only when a rule waits.
var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

// The amount of contents of a fake: enough for nearly all rules, in a fraction of the time, or for all.
const little, everything = false, true

// fake returns a service with the contents that rules need.
func fake(dialect testserver.Dialect, much bool) (*testserver.Server, conformance.Target) {
	clock := testserver.NewClock(func() time.Time { return noon })
	perSecond, clients := 0.002, 40
	if much {
		perSecond, clients = 0.02, 1100
	}
	s := testserver.New(testserver.Config{Dialect: dialect, Clock: clock, EventsPerSecond: perSecond, Users: []testserver.User{
		{Name: "alice", Password: "correct-horse-battery"},
		{Name: "visitor", Password: "nothing-to-see", Domains: []string{"other.example.net"}, MayNotViewConfig: true},
	}})
	addTasks(s)
	addEvents(s, clients)
	target := conformance.Target{
		Customer: "acme", TasksPrefix: dialect.TasksPrefix, ExceedPurgeRate: true, Now: clock.Now,
		User:     conformance.User{Name: "alice", Password: "correct-horse-battery"},
		Visitor:  conformance.User{Name: "visitor", Password: "nothing-to-see"},
		PurgeURI: "https://www.example.com/conformance/app.css", PurgeWildcard: "*.example.com/conformance/",
		Wait: func(_ context.Context, d time.Duration) error {
			clock.Advance(d)
			return nil
		},
	}
	addLists(s, &target)
	if much {
		target.FullList = s.AddNetworkList(testserver.NetworkListSpec{Name: "full", Entries: addresses(50_000)})
	}
	return s, target
}

// addTasks adds more than a page of tasks, including a running and a failed one.
func addTasks(s *testserver.Server) {
	for i := range 12 {
		s.Clock().Advance(time.Second)
		spec := testserver.TaskSpec{
			Operation: []string{"property-update", "networklist-update"}[i%2],
			User:      testserver.Ref{ID: "alice", URI: "/users/alice"},
			Target:    testserver.Ref{ID: "www.example.com", URI: "/properties/1"},
		}
		switch i {
		case 10:
			spec.Duration = -1
		case 11:
			spec.Error = &testserver.TaskError{Message: "out of order", Type: "DEPLOYMENT", Details: []string{"one location"}}
		}
		s.AddTask(spec)
	}
}

// addEvents adds events to the generated ones: of many clients, and of a browser with a comma in its name.
func addEvents(s *testserver.Server, clients int) {
	begin := noon.Add(-25 * time.Hour)
	var events []testserver.Event
	client := netip.MustParseAddr("2001:db8::1")
	for i := range clients {
		e := testserver.Event{
			Time: begin.Add(time.Duration(i) * time.Second), Type: testserver.TypeRateLimitIP, Action: "BLOCK", ClientIP: client,
			ASN: 64496, CountryCode: "US", Domain: "www.example.com", Property: "site", Browser: "Browser, the",
		}
		events = append(events, e)
		client = client.Next()
		for range min(i+1, 5) * max(0, 30-i) / 30 { // about 30 clients, the first with the most hits
			e.Type, e.RuleID, e.Severity, e.Action = testserver.TypeWAF, fmt.Sprint("rule-", i%3), "HIGH", "WARN"
			events = append(events, e)
		}
	}
	s.AddEvents(events...)
}

// addLists adds more than a page of lists, and the lists that rules may change.
func addLists(s *testserver.Server, target *conformance.Target) {
	s.AddNetworkList(testserver.NetworkListSpec{Name: "offices", Description: "all of them", Entries: addresses(120)})
	s.AddNetworkList(testserver.NetworkListSpec{Name: "countries", Type: "GEO", Entries: []string{"CH", "SE"}})
	s.AddNetworkList(testserver.NetworkListSpec{Name: "partners", NoDescription: true, Entries: []string{"192.0.2.0/24"}})
	s.AddNetworkList(testserver.NetworkListSpec{Name: "old", Deprecated: true})
	for i := range 9 {
		s.AddNetworkList(testserver.NetworkListSpec{Name: fmt.Sprint("list ", i), Type: []string{"IP", "GEO"}[i%2]})
	}
	target.WriteList = s.AddNetworkList(testserver.NetworkListSpec{Name: "to write"})
	target.DeleteList = s.AddNetworkList(testserver.NetworkListSpec{Name: "to delete", Entries: addresses(3)})
}

func addresses(count int) []string {
	values := make([]string, count)
	for i := range values {
		values[i] = fmt.Sprintf("2001:db8:1::%x", i+1)
	}
	return values
}

// direct passes requests to a handler without a network.
type direct struct{ http.Handler }

// RoundTrip implements [http.RoundTripper].
func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	in := r.Clone(r.Context())
	in.Host = r.URL.Host
	if in.Body == nil {
		in.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, in)
	return w.Result(), nil
}

// quickRules are all rules except those that send thousands of entries or URIs.
func quickRules() []conformance.Rule {
	return slices.DeleteFunc(conformance.Rules(), func(r conformance.Rule) bool {
		return strings.Contains(r.Text, "5,000") || r.Text == "there is no limit on uri objects"
	})
}

// try checks rules on a handler. It returns the rules that differ, and all results by section and text.
func try(
	t *testing.T, target conformance.Target, handler http.Handler, rules []conformance.Rule,
) (differ []string, all map[string]conformance.Result) {
	t.Helper()
	target.BaseURL, target.Transport = "http://127.0.0.1", direct{handler}
	service, err := conformance.NewService(target)
	require.NoError(t, err)
	all = map[string]conformance.Result{}
	for _, rule := range rules {
		result := service.Try(t.Context(), rule)
		all[rule.Section+" "+rule.Text] = result
		if result.Verdict == conformance.Differs {
			differ = append(differ, rule.Section+" "+rule.Text)
		}
	}
	return differ, all
}
