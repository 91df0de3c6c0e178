package redisqueue_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/redisqueue"
)

// A call older than Keep is not sent, also if it is a retry, which has a new ID. Its result says so. A younger one, even
// of an older release, is sent.
func TestOldCalls(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pause(time.Hour)
		q := w.process(brief)
		_, err := q.Enqueue(w.soon(), object(0)) // creates the stream
		require.NoError(w, err)
		key := w.stream()
		base := strings.TrimSuffix(key, "calls")
		require.NoError(w, w.admin().Del(w.Context(), key).Err())
		at := func(age time.Duration) string { return fmt.Sprintf("%d-0", time.Now().Add(-age).UnixMilli()) }
		add := func(reply, id string, i int, more ...string) {
			require.NoError(w, w.admin().Set(w.Context(), base+"result:"+reply, "", 0).Err())
			uris, err := json.Marshal([]webdelivery.PurgeURI{object(i)})
			require.NoError(w, err)
			values := append([]string{"r", "/" + reply, "u", string(uris)}, more...)
			require.NoError(w, w.admin().XAdd(w.Context(), &redis.XAddArgs{Stream: key, ID: id, Values: values}).Err())
		}
		add("old", at(61*time.Minute), 1)
		add("of an older release", at(59*time.Minute), 2)
		add("retry", at(time.Minute), 3, "t", "1", "a", at(61*time.Minute))
		add("young retry", at(0), 4, "t", "1", "a", at(59*time.Minute))
		w.goOn()
		for _, reply := range []string{"old", "retry"} {
			_, err = w.result(q, reply)
			require.ErrorContains(w, err, "redisqueue: not sent any more after waiting for longer than Options.Keep, 1h0m0s; purge again")
			_, remote := errors.AsType[*redisqueue.RemoteError](err)
			assert.True(w, remote)
			assert.Equal(w, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
		}
		for _, reply := range []string{"of an older release", "young retry"} {
			_, err = w.result(q, reply)
			require.NoError(w, err, reply)
		}
		assert.Equal(w, map[string]int{pattern(2): 1, pattern(4): 1}, w.purged())
		w.until("nothing is left", func() bool { return w.pending(q) == 0 })
	})
}

// The age of a call is that of the clock of Redis, which the process reads before it takes calls.
func TestTheClockOfRedis(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		q := w.process()
		w.purge(q, object(1))
		require.NoError(w, q.Close(w.soon()))
		keys := strings.TrimSuffix(w.stream(), "calls")
		admin := w.admin()
		nextTurn := func() { // whoever has a turn reads the clock before it
			w.until("the turn has ended", func() bool { return admin.Exists(w.Context(), keys+"turn").Val() == 0 })
		}
		nextTurn()
		ahead := &redis.XAddArgs{Stream: keys + "clock", ID: fmt.Sprintf("%d-0", time.Now().Add(2*time.Hour).UnixMilli()), Values: []string{"", ""}}
		require.NoError(w, w.admin().XAdd(w.Context(), ahead).Err())
		q = w.process()
		_, err := q.Purge(w.soon(), object(2))
		require.ErrorContains(w, err, "Options.Keep")
		nextTurn()
		w.purge(q, object(3))
		assert.Equal(w, map[string]int{pattern(1): 1, pattern(3): 1}, w.purged())
	})
}

// What still fits goes along, and in every eighth request that leaves calls behind, the shortest come first, even if they
// were added last. The others go by age.
func TestShortCalls(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pause(time.Hour)
		q := w.process(func(o *redisqueue.Options) { o.MaxURIs = 3 })
		enqueue := func(calls ...string) { // a URI for each letter
			for _, call := range calls {
				var uris []webdelivery.PurgeURI
				for _, letter := range call {
					uris = append(uris, object(int(letter)))
				}
				w.enqueue(q, uris...)
			}
		}
		enqueue("ab", "cd", "e", "fgh", "ijk", "lmn", "opq", "rst", "uvw", "xyz")
		w.goOn()
		w.until("the first request is sent", func() bool { return len(w.service.Purged()) > 0 })
		enqueue("12")
		w.until("all are sent", func() bool { return len(w.service.Purged()) == 10 })
		var requests []string
		for _, p := range w.service.Purged() {
			var request strings.Builder
			for _, uri := range p.URIs {
				letter, _ := strconv.Atoi(path.Base(uri.URIPattern))
				request.WriteByte(byte(letter))
			}
			requests = append(requests, request.String())
		}
		assert.Equal(w, []string{"eab", "cd", "fgh", "ijk", "lmn", "opq", "rst", "12", "uvw", "xyz"}, requests)
	})
}
