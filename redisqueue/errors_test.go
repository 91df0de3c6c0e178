package redisqueue_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/redistest"
	"github.com/webdelivery/webdelivery-go/redisqueue"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// A user that lacks any one of the documented permissions learns soon which, with the command, unless its purge works
// without. The other processes of the fleet do not suffer.
func TestOnePermissionIsMissing(t *testing.T) {
	t.Parallel()
	needless := []string{"+hello", "+ping"} // go-redis does without
	inWorld(t, func(w *world) {
		all := redistest.Rights(w.T)
		for i, right := range all {
			w.Run(right, func(t *testing.T) {
				t.Parallel()
				w := &world{T: t, redis: w.redis, service: webdeliverytest.NewServer(t, webdeliverytest.WithUnlimitedPurges())}
				options := func(o *redisqueue.Options) { o.Prefix, o.Lease = fmt.Sprint("webdelivery:queue:", i), time.Hour }
				args := []any{"ACL", "SETUSER", fmt.Sprint("poor", i), "on", ">secret"}
				for _, r := range all {
					if r != right {
						args = append(args, r)
					}
				}
				require.NoError(w, w.admin().Do(w.Context(), args...).Err())
				o := redisOptions(w.redis.Addr)
				o.Username = fmt.Sprint("poor", i)
				rdb := redis.NewClient(o)
				defer rdb.Close()
				name, isCommand := strings.CutPrefix(right, "+")
				if !isCommand {
					name = "key"
				}
				limit := webdelivery.WithPurgeLimiter(unlimited{})
				poor, good := w.queue(rdb, w.client(nil, limit), options), w.queue(w.rdb(), w.client(nil, limit), options)
				for i := range 3 { // the second call meets a process that rests
					_, err := poor.Purge(w.soon(), object(i)) // a lease is longer
					assert.Equal(w, slices.Contains(needless, right), err == nil)
					if err != nil {
						assert.ErrorIs(w, err, redisqueue.ErrRedis)
						assert.ErrorContains(w, err, "NOPERM")
						assert.ErrorContains(w, err, name)
						assert.Equal(w, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
					}
					w.purge(good, object(20+i))
				}
			})
		}
	})
}

// A wrong password of Redis is a refusal, too, and does not pass.
func TestRedisRefuses(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		o := redisOptions(w.redis.Addr)
		o.Password = "wrong"
		rdb := redis.NewClient(o)
		defer rdb.Close()
		q := w.queue(rdb, w.client(rdb), func(o *redisqueue.Options) { o.Lease = time.Hour })
		_, err := q.Purge(w.soon(), object(1))
		require.ErrorIs(w, err, redisqueue.ErrRedis)
		require.ErrorContains(w, err, "WRONGPASS")
	})
}
