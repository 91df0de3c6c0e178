package main

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/filters"
	"github.com/webdelivery/webdelivery-go/redisqueue"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// What compiles works as well, against a service that has something in each area.
func TestRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := webdeliverytest.NewServer(t, webdeliverytest.InMemory())
		srv.AddTask(webdeliverytest.TaskSpec{ID: "t", Operation: "o"})
		srv.AddNetworkList(webdeliverytest.NetworkListSpec{
			ID: "l", Type: webdelivery.ListTypeIP, Name: "n", Entries: []string{"192.0.2.1", "192.0.2.2"},
		})
		srv.AddEvents(webdeliverytest.Event{
			Time: srv.Clock.Now().Add(-time.Hour), Severity: "CRITICAL", Type: webdeliverytest.EventTypeWAF, Action: "BLOCK",
			ConnectionRemoteIP: netip.MustParseAddr("192.0.2.1"), ClientIP: netip.MustParseAddr("192.0.2.1"), CountryCode: "CN",
			ASN: 64500, RuleID: "1", Domain: "www.example.com", Property: "p", WAFAction: "BLOCK", RequestPath: "/",
		})
		require.NoError(t, run(t.Context(), srv.Client(t)))
		assert.Len(t, srv.Purged(), 4)
		assert.Positive(t, srv.Count("DELETE", "/config/networklists/l"))
	})
}

func TestClients(t *testing.T) {
	t.Parallel()
	_, err := clients()
	require.NoError(t, err)
}

// errNobody is why there is no connection to Redis.
var errNobody = errors.New("nobody is there")

// noRedis returns a client without a server.
func noRedis(t *testing.T) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{MaxRetries: -1, DialerRetries: 1, Dialer: func(context.Context, string, string) (net.Conn, error) {
		return nil, errNobody
	}})
	t.Cleanup(func() { assert.NoError(t, rdb.Close()) })
	return rdb
}

func TestSharing(t *testing.T) {
	t.Parallel()
	rdb := noRedis(t)
	client, err := sharing(rdb)
	require.NoError(t, err)
	assert.NotNil(t, client)
	err = permitted(t.Context(), rdb)
	require.ErrorIs(t, err, errNobody)
	assert.Contains(t, explain(err), "nobody is there")

	_, err = sharing(nil)
	assert.Contains(t, explain(err), "rdb")
}

func TestFleet(t *testing.T) {
	t.Parallel()
	rdb := noRedis(t)
	client, err := sharing(rdb)
	require.NoError(t, err)
	queue, err := fleet(rdb, client)
	require.NoError(t, err)
	err = purgeTogether(t.Context(), queue)
	require.ErrorContains(t, err, "nobody is there")
	assert.Contains(t, explain(err), "redisqueue: Redis does not work")

	_, err = fleet(nil, client)
	assert.Contains(t, explain(err), "rdb")
}

func TestExpressions(t *testing.T) {
	t.Parallel()
	parts, err := expressions("a==1,b!=2")
	require.NoError(t, err)
	assert.Equal(t, []string{"a==1,b!=2", "a == 1", "b != 2", "a==1", "1"}, parts[:5])

	_, err = expressions("a")
	assert.Contains(t, explain(err), "0")
	assert.Contains(t, explain(filters.Eq("", "1").Validate()), "dimension")
}

func TestExplain(t *testing.T) {
	t.Parallel()
	cause := errors.New("the cause")
	for want, err := range map[string]error{
		"the cause": cause,
		"/tasks":    &webdelivery.Error{Method: "GET", Host: "api.example.com", Path: "/tasks", StatusCode: 404},
		"Page":      &webdelivery.ValidationError{Field: "Page", Reason: "is below 0"},
		"poisoned":  &webdelivery.PlanError{Field: "WidestIPv4", Reason: "poisoned"},
		"MaxRemove": &webdelivery.PlanError{Field: "MaxRemove"},
		"refused":   &webdelivery.PartialError{NotAccepted: []string{"refused"}, Err: cause},
		"www":       &webdelivery.QueueError{URIs: []webdelivery.PurgeURI{webdelivery.Exact("www.example.com/")}, Err: cause, Outcome: webdelivery.OutcomeUnknown},
		"task-1":    &webdelivery.TaskError{Task: &webdelivery.Task{ID: "task-1", ErrorInfo: &webdelivery.ErrorInfo{}}},
		"FAILED":    &webdelivery.TransactionError{Transaction: &webdelivery.Transaction{TransactionStatus: "FAILED"}},
		"a circle":  &webdelivery.PaginationError{Path: "/tasks", Page: 2, Reason: "a circle"},
		"12":        &webdelivery.IncompleteError{Got: 7, Total: 12},
		"column":    &webdelivery.ScanError{Column: "column", Err: cause},
		"full":      &webdelivery.QueueError{Err: redisqueue.ErrFull},
		"not ended": redisqueue.ErrPending,
		"this id":   redisqueue.ErrUnknownID,
		"elsewhere": &webdelivery.QueueError{Err: &redisqueue.RemoteError{Message: "elsewhere"}},
	} {
		assert.Contains(t, explain(err), want)
	}
}
