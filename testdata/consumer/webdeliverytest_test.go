package main

import (
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// The package for users' own tests, with every public name, as a test of another module uses it.
func TestWebdeliverytest(t *testing.T) {
	var srv *webdeliverytest.Server
	srv = webdeliverytest.NewServer(t,
		webdeliverytest.InMemory(),
		webdeliverytest.WithNow(time.Now),
		webdeliverytest.WithCustomer("shop"),
		webdeliverytest.WithBasePath("/root"),
		webdeliverytest.WithUsers(webdeliverytest.User{
			Name: "carol", Password: "a-password", Domains: []string{"*.example.com"}, MayNotViewConfig: false,
		}),
		webdeliverytest.WithSessionLifetime(time.Hour),
		webdeliverytest.WithPurgeRate(2, time.Second),
		webdeliverytest.WithUnlimitedPurges(),
		webdeliverytest.WithPurgeDuration(0),
		webdeliverytest.WithDeployDuration(0),
		webdeliverytest.WithHostPatterns("*.example.com"),
		webdeliverytest.WithEvents(0.1, 1, time.Time{}),
		webdeliverytest.WithRefusedPurgesCounted(),
		webdeliverytest.WithRecordingDelay(time.Second),
		webdeliverytest.WithDialect(webdeliverytest.Dialect{
			TasksPrefix: "/ops", StartTimeParam: "startime", EntryKey: "value",
			EntryDeletePath:     "/config/networklists/{list}/entries/{entry}",
			BatchDeletionMethod: http.MethodDelete, TaskPage: "array", SessionReply: "cookie", PurgeReply: "200",
			NextURI: "absolute", Timestamps: "none", Final: "DONE", Errors: "html", EntriesReply: "empty",
			ListDeleteReply: "task", MemberOrder: "rows-first", Names: "objects", Groupings: "joined", TopKTotal: "groups",
			TooFast: "429-retry-after", TransactionDenied: "400", Vocabulary: "portal",
		}),
		webdeliverytest.WithIdleTimeout(time.Minute),
	)
	var (
		client    *webdelivery.Client    = srv.Client(t, webdelivery.WithUserAgent("consumer/1"))
		session   *webdelivery.Client    = srv.ClientAs(t, webdelivery.SessionAuth(srv.Username, srv.Password))
		reach     *http.Client           = srv.HTTPClient()
		clock     *webdeliverytest.Clock = srv.Clock
		base, who string                 = srv.URL, srv.Customer
	)
	if _, err := srv.NewClient(webdelivery.BasicAuth(srv.Username, srv.Password)); err != nil {
		t.Fatal(err)
	}
	clock.Advance(time.Second)
	t.Log(client, session, reach, base, who, clock.Now())

	srv.AddTask(webdeliverytest.TaskSpec{
		ID: "t", Operation: "o", Status: "s", Duration: time.Second, ForeignURI: "/elsewhere",
		Error: &webdeliverytest.TaskError{Message: "m", Type: "t", Details: []string{"d"}, Incomplete: true},
		User:  webdelivery.Reference{ID: "u"}, Target: webdelivery.Reference{ID: "p"},
	})
	id := srv.AddNetworkList(webdeliverytest.NetworkListSpec{
		ID: "l", Type: webdelivery.ListTypeIP, Name: "n", Description: "d", NoDescription: true, Deprecated: true,
		Entries: []string{"192.0.2.1"},
	})
	srv.ChangeEntries(id, []string{"192.0.2.2"}, []string{"192.0.2.1"})
	if got := srv.Entries(id); len(got) != 1 || got[0] != "192.0.2.2" {
		t.Error(got)
	}
	for _, kind := range []string{
		webdeliverytest.EventTypeRequest, webdeliverytest.EventTypeWAF, webdeliverytest.EventTypeCustom,
		webdeliverytest.EventTypeBlockIP, webdeliverytest.EventTypeBlockCountry, webdeliverytest.EventTypeRateLimitIP,
		webdeliverytest.EventTypeRateLimitCountry,
	} {
		srv.AddEvents(webdeliverytest.Event{
			Time: clock.Now(), Severity: "s", Type: kind, Action: "a", ConnectionRemoteIP: netip.MustParseAddr("192.0.2.1"),
			ClientIP: netip.MustParseAddr("192.0.2.2"), Browser: "b", CountryCode: "CH", ASN: 64500, RuleID: "1",
			Domain: "d", Property: "p", WAFAction: "w", RequestPath: "/",
		})
	}
	t.Log(srv.EventCount(clock.Now().Add(-time.Hour), clock.Now()))
	srv.FailTransactions(1, "FAILED", "why", 500)
	srv.ExpireSessions()

	rule := webdeliverytest.FaultRule{
		Method: http.MethodGet, Path: "/ops/tasks/**", Skip: 1, Count: 1, Probability: 0.5, Seed: 1, Delay: time.Nanosecond,
		Status: 503, Header: http.Header{"Retry-After": {"1"}}, Body: "{}", Execute: true, Cut: webdeliverytest.CutNone,
		CutAfter: 1, Stall: time.Nanosecond, Dribble: time.Nanosecond, Handler: nil,
	}
	if err := rule.Check(); err != nil {
		t.Error(err)
	}
	var remove func() = srv.Fail(rule)
	remove()
	for _, cut := range []webdeliverytest.Cut{
		webdeliverytest.CutBeforeRead, webdeliverytest.CutAfterRead, webdeliverytest.CutAfterExecute,
		webdeliverytest.CutBody, webdeliverytest.CutChunked,
	} {
		srv.Fail(webdeliverytest.FaultRule{Path: "/never", Cut: cut})
	}

	_, err := client.Purge.Submit(t.Context(), webdelivery.PurgeRequest{
		Action: webdelivery.ActionPurge, URIs: []webdelivery.PurgeURI{webdelivery.Exact("https://www.example.com/")},
	})
	if err != nil {
		t.Fatal(err)
	}
	var purges []webdeliverytest.Purge = srv.Purged()
	for _, p := range purges {
		var action webdelivery.PurgeAction = p.Action
		var uris []webdelivery.PurgeURI = p.URIs
		t.Log(p.Time, p.User, action, uris, p.TransactionID)
	}
	var requests []webdeliverytest.Request = srv.Requests()
	for _, r := range requests {
		t.Log(r.Time, r.Method, r.Path, r.RawQuery, len(r.Header), r.Body, r.User, r.Status, r.Conn)
	}
	if srv.Count(http.MethodPost, "/cache/purge") != 1 || srv.Logins() != 0 || srv.Connections() != 1 {
		t.Error(len(requests), srv.Logins(), srv.Connections())
	}
}

// A server without a test.
func TestWebdeliverytestStart(t *testing.T) {
	var options []webdeliverytest.Option
	options = append(options, webdeliverytest.WithAddress("127.0.0.1:0"), webdeliverytest.WithRequestLog(func(r webdeliverytest.Request) {
		t.Log(r.Method)
	}))
	srv, err := webdeliverytest.Start(options...)
	if err != nil {
		t.Fatal(err)
	}
	srv.Close()
}
