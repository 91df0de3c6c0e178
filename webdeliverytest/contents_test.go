package webdeliverytest_test

import (
	"net/http"
	"net/netip"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// inMemory runs a test on a server in memory, in fake time.
func inMemory(t *testing.T, test func(t *testing.T, srv *webdeliverytest.Server, client *webdelivery.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := webdeliverytest.NewServer(t, webdeliverytest.InMemory())
		test(t, srv, srv.Client(t))
	})
}

// A task shows every field of its spec (service document, section 2.1).
func TestAddTask(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, client *webdelivery.Client) {
		user, target := webdelivery.Reference{ID: "u", URI: "/users/u"}, webdelivery.Reference{ID: "p", URI: "/properties/p"}
		id := srv.AddTask(webdeliverytest.TaskSpec{
			ID: "t", Operation: "deploy", Duration: time.Minute, User: user, Target: target,
			Error: &webdeliverytest.TaskError{Message: "no origin", Type: "ConfigError", Details: []string{"a", "b"}},
		})
		began := time.Now()
		_, err := client.Tasks.Wait(t.Context(), id)
		var failed *webdelivery.TaskError
		require.ErrorAs(t, err, &failed)
		task := failed.Task
		assert.Equal(t, []any{"t", "deploy", "FAILED", true, user, target},
			[]any{task.ID, task.Operation, task.Status, task.Complete, task.User, task.Target})
		assert.WithinDuration(t, began.Add(time.Minute), task.EndTime, 0)
		assert.WithinDuration(t, began, task.BeginTime, 0)
		assert.Equal(t, &webdelivery.ErrorInfo{
			Message: "no origin", Type: "ConfigError", Details: []webdelivery.ErrorDetail{{Message: "a"}, {Message: "b"}},
		}, task.ErrorInfo)

		odd, err := client.Tasks.Get(t.Context(), srv.AddTask(webdeliverytest.TaskSpec{
			Status: "ODD", ForeignURI: "/elsewhere", Error: &webdeliverytest.TaskError{Message: "m", Incomplete: true},
		}))
		require.NoError(t, err)
		assert.Equal(t, []any{"ODD", "/elsewhere", false}, []any{odd.Status, odd.URI, odd.Complete})
		assert.NotNil(t, odd.ErrorInfo)
	})
}

// A network list shows its spec, the changes of the program and those of another user (service document, section 2.6).
func TestAddNetworkList(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, client *webdelivery.Client) {
		id := srv.AddNetworkList(webdeliverytest.NetworkListSpec{
			Type: webdelivery.ListTypeGEO, Name: "embargo", Description: "why", Entries: []string{"KP", "IR", "KP"},
		})
		srv.AddNetworkList(webdeliverytest.NetworkListSpec{ID: "old", Name: "old", Description: "x", Deprecated: true, NoDescription: true})
		list, err := client.NetworkLists.Get(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, []any{webdelivery.ListTypeGEO, "embargo", "why"}, []any{list.Type, list.Name, list.Description})
		assert.Equal(t, []string{"KP", "IR"}, list.List)

		page, err := client.NetworkLists.List(t.Context(), webdelivery.NetworkListOptions{})
		require.NoError(t, err)
		assert.Len(t, page.Items, 1)
		page, err = client.NetworkLists.List(t.Context(), webdelivery.NetworkListOptions{Deprecated: true})
		require.NoError(t, err)
		require.Len(t, page.Items, 2)
		old := page.Items[1]
		assert.Equal(t, []any{webdelivery.ListTypeIP, true, ""}, []any{old.Type, old.Deprecated, old.Description})

		_, err = client.NetworkLists.AddEntries(t.Context(), id, []string{"SY"})
		require.NoError(t, err)
		srv.ChangeEntries(id, []string{"CU"}, []string{"KP"})
		assert.Equal(t, []string{"IR", "SY", "CU"}, srv.Entries(id))
		assert.Nil(t, srv.Entries("no such list"))
		assert.Panics(t, func() { srv.ChangeEntries("no such list", nil, nil) })
		assert.Panics(t, func() { srv.AddNetworkList(webdeliverytest.NetworkListSpec{Type: "DNS"}) })
	})
}

// Every field of an event is a dimension (service document, section 2.5). An event in the future appears at its time.
func TestAddEvents(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, client *webdelivery.Client) {
		now := srv.Clock.Now()
		srv.AddEvents(
			webdeliverytest.Event{
				Time: now.Add(-time.Minute), Severity: "CRITICAL", Type: webdeliverytest.EventTypeWAF, Action: "BLOCK",
				ConnectionRemoteIP: netip.MustParseAddr("192.0.2.1"), ClientIP: netip.MustParseAddr("2001:db8::1"),
				Browser: "Firefox", CountryCode: "CH", ASN: 64500, RuleID: "942100", Domain: "www.example.com",
				Property: "shop", WAFAction: "DENY", RequestPath: "/login",
			},
			webdeliverytest.Event{Time: now.Add(-time.Second), Type: webdeliverytest.EventTypeBlockCountry, CountryCode: "DE"},
			webdeliverytest.Event{Time: now.Add(time.Hour), Type: webdeliverytest.EventTypeCustom, RuleID: "1"},
		)
		start, end := now.Add(-time.Hour), now.Add(time.Minute)
		result, err := client.Stats.Events.Query(t.Context(), webdelivery.EventsQuery{
			Dimensions: []string{
				webdelivery.DimEventSeverity, webdelivery.DimEventType, webdelivery.DimEventAction,
				webdelivery.DimClientConnectionRemoteIP, webdelivery.DimClientIP, webdelivery.DimClientBrowser,
				webdelivery.DimClientCountryCode, webdelivery.DimClientASN, webdelivery.DimRuleID, webdelivery.DimDomain,
				webdelivery.DimProperty, webdelivery.DimWAFAction,
			},
			Start: start, End: end,
		})
		require.NoError(t, err)
		require.Len(t, result.Rows, 2)
		var got []string
		for i := 1; i < len(result.Rows[0].Columns()); i++ { // the first is the time
			got = append(got, result.Rows[0].At(i).String())
		}
		assert.Equal(t, []string{
			"CRITICAL", "WAF", "BLOCK", "192.0.2.1", "2001:db8::1", "Firefox", "CH", "64500", "942100", "www.example.com", "shop", "DENY",
		}, got)
		assert.Equal(t, 2, srv.EventCount(start, end))
		srv.Clock.Advance(2 * time.Hour)
		assert.Equal(t, 3, srv.EventCount(start, now.Add(2*time.Hour)))
	})
}

// The task of a change ends as FailDeploys says.
func TestFailDeploys(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, client *webdelivery.Client) {
		list := srv.AddNetworkList(webdeliverytest.NetworkListSpec{})
		srv.FailDeploys(1, webdeliverytest.TaskError{Message: "no origin"})
		deployed := func() error {
			task, err := client.NetworkLists.ClearEntries(t.Context(), list)
			require.NoError(t, err)
			_, err = client.Tasks.Wait(t.Context(), task.ID)
			return err
		}
		require.ErrorContains(t, deployed(), "no origin")
		require.NoError(t, deployed())
	})
}

// Purged returns values equal to the submitted ones, and a transaction ends as FailTransactions says.
func TestPurgedAndFailTransactions(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, client *webdelivery.Client) {
		srv.FailTransactions(1, "FAILED", "two caches are down", 500)
		began := srv.Clock.Now()
		request := webdelivery.PurgeRequest{Action: webdelivery.ActionExpire, URIs: []webdelivery.PurgeURI{
			webdelivery.Exact("https://www.example.com/a"), {MatchMode: "PREFIX_LITERAL", URIPattern: "www.example.com/b/", CacheKeyModifierRegex: "v1*"},
		}}
		receipt, err := client.Purge.Submit(t.Context(), request)
		require.NoError(t, err)
		assert.Equal(t, []webdeliverytest.Purge{{
			Time: began, User: "alice", Action: request.Action, URIs: request.URIs, TransactionID: receipt.TransactionID,
		}}, srv.Purged())

		_, err = client.Purge.Wait(t.Context(), receipt.TransactionID)
		var failed *webdelivery.TransactionError
		require.ErrorAs(t, err, &failed)
		tx := failed.Transaction
		assert.Equal(t, []any{"FAILED", "two caches are down", 500}, []any{tx.Status, tx.StatusDescription, tx.Code})
		assert.NoError(t, deploy(t.Context(), client, "https://www.example.com/a"), "only one was to fail")
	})
}

// Requests returns everything that a request carried, and each caller gets its own copy.
func TestRequests(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, client *webdelivery.Client) {
		began := srv.Clock.Now()
		err := client.Do(t.Context(), http.MethodPost, "/config/things?a=b", map[string]int{"n": 1}, nil)
		require.ErrorIs(t, err, webdelivery.ErrNotFound)
		srv.Requests()[0].Body[0] = 'X'
		seen := srv.Requests()
		require.Len(t, seen, 1)
		assert.NotEmpty(t, seen[0].Header.Get("Authorization"))
		seen[0].Header = nil
		assert.Equal(t, webdeliverytest.Request{
			Time: began, Method: "POST", Path: "/acme/v1/config/things", RawQuery: "a=b", Body: []byte(`{"n":1}`),
			User: "alice", Status: 404, Conn: 1,
		}, seen[0])
	})
}

// A server belongs to the bubble in which it was started. Its cleanup runs there and leaves no goroutine, even if
// requests are still in flight.
func TestInABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var srv *webdeliverytest.Server
		t.Cleanup(func() { // runs after that of the server
			_, err := srv.HTTPClient().Get(srv.URL)
			assert.ErrorIs(t, err, syscall.ECONNREFUSED)
		})
		srv = webdeliverytest.NewServer(t, webdeliverytest.InMemory())
		client := srv.Client(t)
		srv.Fail(webdeliverytest.FaultRule{Path: "/tasks/slow", Delay: time.Hour})
		go func() {
			_, err := client.Tasks.Get(t.Context(), "slow")
			assert.Error(t, err)
		}()
		_, err := client.Tasks.List(t.Context(), webdelivery.TaskListOptions{})
		require.NoError(t, err)
		synctest.Wait()
		assert.Equal(t, 2, srv.Count(http.MethodGet, "/tasks/**"))
	})
}
