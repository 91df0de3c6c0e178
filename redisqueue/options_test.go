package redisqueue_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/redisqueue"
)

// unreachable is a client of a Redis that does not run.
func unreachable(t *testing.T) *redis.Client {
	rdb := redis.NewClient(redisOptions("127.0.0.1:1"))
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func newClient(t *testing.T, options ...webdelivery.Option) *webdelivery.Client {
	client, err := webdelivery.NewClient("https://api.example.com", "acme", webdelivery.BasicAuth("alice", "secret"), options...)
	require.NoError(t, err)
	return client
}

// refusedAs requires that an error is a ValidationError for this field, and that nothing was sent.
func refusedAs(t *testing.T, field string, err error) {
	t.Helper()
	wrong := (*webdelivery.ValidationError)(nil)
	require.ErrorAs(t, err, &wrong)
	assert.Equal(t, field, wrong.Field)
	assert.Equal(t, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
}

// refuses requires that every method of a queue refuses to work.
func refuses(t *testing.T, field string, q *redisqueue.Queue) {
	t.Helper()
	_, err := q.Purge(t.Context(), object(1))
	refusedAs(t, field, err)
	_, err = q.Enqueue(t.Context(), object(1))
	refusedAs(t, field, err)
	_, err = q.Result(t.Context(), "1-1")
	refusedAs(t, field, err)
	_, err = q.Stats(t.Context())
	refusedAs(t, field, err)
	refusedAs(t, field, q.Close(t.Context()))
}

// Each wrong argument of New is named by every method.
func TestWrongArgumentsOfNew(t *testing.T) {
	t.Parallel()
	rdb := unreachable(t)
	limited := newClient(t, webdelivery.WithPurgeLimiter(shared(rdb)))
	tests := map[string]struct {
		rdb     redis.UniversalClient
		client  *webdelivery.Client
		options redisqueue.Options
	}{
		"rdb":                  {nil, limited, redisqueue.Options{Name: "acme"}},
		"client":               {rdb, nil, redisqueue.Options{Name: "acme"}},
		"Options.Name":         {rdb, limited, redisqueue.Options{}},
		"Options.Action":       {rdb, limited, redisqueue.Options{Name: "acme", Action: "purge"}},
		"Options.MaxURIs":      {rdb, limited, redisqueue.Options{Name: "acme", MaxURIs: -1}},
		"Options.MaxBodyBytes": {rdb, limited, redisqueue.Options{Name: "acme", MaxBodyBytes: -1}},
		"Options.MaxPending":   {rdb, limited, redisqueue.Options{Name: "acme", MaxPending: -1}},
		"Options.Lease":        {rdb, limited, redisqueue.Options{Name: "acme", Lease: time.Second - 1}},
		"Options.Keep":         {rdb, limited, redisqueue.Options{Name: "acme", Keep: time.Minute - 1}},
	}
	for field, tt := range tests {
		refuses(t, field, redisqueue.New(tt.rdb, tt.client, tt.options))
	}
	refuses(t, "client", redisqueue.New(rdb, &webdelivery.Client{}, redisqueue.Options{Name: "acme"}))
	unshared := redisqueue.New(rdb, newClient(t), redisqueue.Options{Name: "acme"})
	refuses(t, "client", unshared)
	_, err := unshared.Purge(t.Context(), object(1))
	require.ErrorContains(t, err, "redislimit.New")
	refuses(t, "Queue", nil)
	refuses(t, "Queue", &redisqueue.Queue{})
}

// What PurgeQueue refuses is refused before Redis gets anything.
func TestWrongArgumentsOfPurge(t *testing.T) {
	t.Parallel()
	rdb := unreachable(t)
	client := newClient(t, webdelivery.WithPurgeLimiter(shared(rdb)))
	q := redisqueue.New(rdb, client, redisqueue.Options{Name: "acme", MaxURIs: 2, MaxBodyBytes: 300})
	t.Cleanup(func() { _ = q.Close(context.Background()) })
	long := strings.Repeat("x", 300)
	tests := []struct {
		name  string
		field string
		uris  []webdelivery.PurgeURI
	}{
		{"none", "uris", nil},
		{"blank", "uris[1].uri_pattern", []webdelivery.PurgeURI{object(1), webdelivery.Exact("https://www.example.com/a b")}},
		{"mode", "uris[0].match_mode", []webdelivery.PurgeURI{{URIPattern: "https://www.example.com/"}}},
		{"too many", "uris", []webdelivery.PurgeURI{object(1), object(2), object(3)}},
		{"too long", "uris", []webdelivery.PurgeURI{object(1), webdelivery.Exact("https://www.example.com/" + long)}},
	}
	for _, tt := range tests {
		_, err := q.Purge(t.Context(), tt.uris...)
		refusedAs(t, tt.field, err)
		_, err = q.Enqueue(t.Context(), tt.uris...)
		refusedAs(t, tt.field, err)
	}
	none := context.Context(nil)
	_, err := q.Purge(none, object(1))
	refusedAs(t, "context", err)
	_, err = q.Enqueue(none, object(1))
	refusedAs(t, "context", err)
	_, err = q.Result(none, "1-1")
	refusedAs(t, "context", err)
	for _, id := range []string{"", "1", "1-", "1-1-1", "*", "+", "1-1 ", strings.Repeat("9", 30) + "-1"} {
		_, err := q.Result(t.Context(), id)
		refusedAs(t, "id", err)
	}
	for what, uris := range map[string][]webdelivery.PurgeURI{
		"twice the same": {object(1), object(1), object(2)}, "a single long one": {webdelivery.Exact("https://www.example.com/" + long)},
	} {
		_, err := q.Purge(t.Context(), uris...)
		down := (*redisqueue.UnavailableError)(nil)
		require.ErrorAs(t, err, &down, what)
		assert.Equal(t, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
	}
}
