package redisqueue_test

import (
	"context"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/redislimit"
	"github.com/webdelivery/webdelivery-go/redisqueue"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// hanging is a limiter that gives no permit.
type hanging struct{}

func (hanging) Wait(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// transport is a transport of a user.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func hang(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// A process that makes no progress, or fails in its own way, does not keep others from their purges.
func TestAProcessThatIsStuck(t *testing.T) {
	t.Parallel()
	sharedBy := func(w *world, rdb redis.UniversalClient) webdelivery.Option {
		return webdelivery.WithPurgeLimiter(shared(rdb))
	}
	through := func(f transport) webdelivery.Option { return webdelivery.WithHTTPClient(&http.Client{Transport: f}) }
	tests := map[string]struct {
		auth    func(user, password string) webdelivery.Auth
		options func(w *world, rdb redis.UniversalClient) []webdelivery.Option
	}{
		"limiter hangs": {webdelivery.BasicAuth, func(*world, redis.UniversalClient) []webdelivery.Option {
			return []webdelivery.Option{webdelivery.WithPurgeLimiter(hanging{})}
		}},
		"login hangs": {webdelivery.SessionAuth, func(w *world, rdb redis.UniversalClient) []webdelivery.Option {
			return []webdelivery.Option{sharedBy(w, rdb), through(hang)}
		}},
		"transport hangs": {webdelivery.BasicAuth, func(w *world, rdb redis.UniversalClient) []webdelivery.Option {
			return []webdelivery.Option{sharedBy(w, rdb), through(hang)}
		}},
		"garbage": {webdelivery.BasicAuth, func(w *world, rdb redis.UniversalClient) []webdelivery.Option {
			return []webdelivery.Option{sharedBy(w, rdb), through(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 200, Request: r, Body: http.NoBody, Header: http.Header{}}, nil
			})}
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				w.pause(time.Second)
				rdb := w.rdb()
				client, err := w.service.NewClient(tt.auth(w.service.Username, w.service.Password), tt.options(w, rdb)...)
				require.NoError(w, err)
				stuck, good := w.queue(rdb, client, short), w.process(short)
				stuck.HoldFor(2 * time.Second)
				ctx, cancel := context.WithCancel(w.Context())
				first := w.purges(ctx, stuck, object(1)) // this process gets the turn
				w.stored(1)
				end := w.purges(w.Context(), good, object(2))
				require.NoError(w, (<-end).err)
				cancel()
				<-first
			})
		})
	}
}

// A Redis that takes no writes counts as one that is down, also if it still answers reads.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pause(time.Hour)
		q := w.process(short)
		end := w.purges(w.Context(), q, object(1))
		w.stored(1)
		require.NoError(w, w.rdb().Do(w.Context(), "REPLICAOF", "127.0.0.1", "1").Err())
		e := <-end
		down := (*redisqueue.UnavailableError)(nil)
		require.ErrorAs(w, e.err, &down)
		assert.Equal(w, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(e.err))
		_, err := q.Purge(w.Context(), object(2))
		require.ErrorAs(w, err, &down)
		assert.Equal(w, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
	})
}

// Whatever another program does to the keys, later calls are sent, and the statistics recover.
func TestDamagedKeys(t *testing.T) {
	t.Parallel()
	tests := map[string][][]any{
		"size":            {{"HSET", "state", "size", "abc"}},
		"huge size":       {{"HSET", "state", "size", "9e17"}},
		"failures":        {{"HSET", "state", "failures", "9e99"}},
		"turn":            {{"HSET", "state", "turn", "DEAD", "turnEnds", "9e19"}},
		"turn for long":   {{"HSET", "state", "turn", "DEAD", "turnEnds", "99999999999999999"}},
		"no state":        {{"DEL", "state"}},
		"no leases":       {{"DEL", "leases"}},
		"no calls":        {{"DEL", "calls"}},
		"no group":        {{"XGROUP", "DESTROY", "calls", "g"}},
		"no fields":       {{"XADD", "calls", "*", "foo", "bar"}},
		"odd numbers":     {{"XADD", "calls", "*", "v", "1", "n", "1.5", "b", "-7", "u", "[]", "k", "keep"}},
		"huge numbers":    {{"XADD", "calls", "*", "v", "1", "n", "1e300", "b", "1e300", "u", "[]"}},
		"newer version":   {{"XADD", "calls", "*", "v", "99", "p", "NEWER", "c", "1"}},
		"huge version":    {{"XADD", "calls", "*", "v", "1e300", "p", "NEWER", "c", "1"}},
		"dead consumer":   {{"XADD", "calls", "1-1", "v", "1", "u", "[]"}, {"XCLAIM", "calls", "g", "DEAD", 0, "1-1", "FORCE"}},
		"lease without":   {{"ZADD", "leases", "0", "GONE"}},
		"lease for ever":  {{"ZADD", "leases", "inf", "GONE"}},
		"foreign message": {{"XADD", "to:X", "*", "m", "{}"}},
	}
	for name, commands := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				a, b := w.process(short), w.process(short)
				_, err := a.Purge(w.Context(), object(1))
				require.NoError(w, err)
				rdb, base := w.rdb(), w.base()
				if name == "dead consumer" {
					require.NoError(w, rdb.Do(w.Context(), "DEL", base+"calls").Err())
					require.NoError(w, rdb.Do(w.Context(), "XGROUP", "CREATE", base+"calls", "g", "0", "MKSTREAM").Err())
				}
				for _, command := range commands {
					at := 1
					if command[0] == "XGROUP" {
						at = 2
					}
					command[at] = base + command[at].(string)
					require.NoError(w, rdb.Do(w.Context(), command...).Err(), command)
				}
				ctx, cancel := context.WithTimeout(w.Context(), 15*time.Second)
				defer cancel()
				for i, q := range []*redisqueue.Queue{a, b} {
					_, err := q.Purge(ctx, object(2+i))
					require.NoError(w, err)
				}
				require.Eventually(w, func() bool {
					stats, err := b.Stats(w.Context())
					return err == nil && stats.Pending == 0 && stats.Failures >= 0
				}, 15*time.Second, 20*time.Millisecond)
			})
		})
	}
}

// A request that is split takes long, and holds its calls until it has ended.
func TestSplittingTakesLong(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		const calls, every = 100, 8
		w.pause(time.Second)
		var queues []*redisqueue.Queue
		for range 3 {
			rdb := w.rdb()
			q := w.queue(rdb, w.client(rdb, redislimit.WithInterval(50*time.Millisecond)), short)
			q.HoldFor(time.Second)
			queues = append(queues, q)
		}
		var ends []<-chan ended
		for i := range calls {
			uri := object(i)
			if i%every == 0 {
				uri = webdelivery.Exact(foreign.URIPattern + strconv.Itoa(i))
			}
			ends = append(ends, w.purges(w.Context(), queues[i%len(queues)], uri))
		}
		for i, end := range ends {
			if e := <-end; i%every == 0 {
				require.ErrorIs(w, e.err, webdelivery.ErrBadRequest)
			} else {
				require.NoError(w, e.err)
			}
		}
		for uri, times := range w.purgedURIs() {
			assert.Equal(w, 1, times, uri)
		}
	}, webdeliverytest.WithUnlimitedPurges())
}
