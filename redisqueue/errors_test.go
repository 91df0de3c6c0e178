package redisqueue_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/redistest"
	"github.com/webdelivery/webdelivery-go/redislimit"
	"github.com/webdelivery/webdelivery-go/redisqueue"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// rights returns the permissions of both package pages.
func rights(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../redislimit/doc.go")
	require.NoError(t, err)
	return append(redistest.Rights(t), strings.Fields(string(regexp.MustCompile(`~webdelivery:purge.*`).Find(page)))...)
}

// of returns a process of a user with these rights, with the limiter of package redislimit. Processes with the same name
// are a fleet.
func (w *world) of(user, fleet string, rights []string) *redisqueue.Queue {
	args := []any{"ACL", "SETUSER", user, "on", ">secret"}
	for _, r := range rights {
		args = append(args, r)
	}
	require.NoError(w, w.admin().Do(w.Context(), args...).Err())
	o := redisOptions(w.redis.Addr)
	o.Username = user
	rdb := redis.NewClient(o)
	w.Cleanup(func() { _ = rdb.Close() })
	limiter, err := redislimit.New(rdb, redislimit.WithKeyPrefix("webdelivery:purge:"+fleet))
	require.NoError(w, err)
	return w.queue(rdb, w.client(rdb, webdelivery.WithSharedLimiter(limiter)), func(o *redisqueue.Options) { o.Prefix = "webdelivery:queue:" + fleet })
}

// A user that lacks any one of the documented permissions learns soon which, with the command, unless its purge works
// without. The other processes of the fleet do not suffer.
func TestOnePermissionIsMissing(t *testing.T) {
	t.Parallel()
	needless := []string{"+hello", "+ping"} // go-redis does without
	inWorld(t, func(w *world) {
		all := rights(w.T)
		for i, right := range all {
			w.Run(right, func(t *testing.T) {
				t.Parallel()
				w := &world{T: t, redis: w.redis, service: webdeliverytest.NewServer(t)}
				fleet := fmt.Sprint("fleet", i)
				name, isCommand := strings.CutPrefix(right, "+")
				if !isCommand {
					name = "key"
				}
				poor := w.of("poor"+fleet, fleet, slices.DeleteFunc(slices.Clone(all), func(r string) bool { return r == right }))
				purge := func(uri webdelivery.PurgeURI) error {
					_, err := poor.Purge(w.within(15*time.Second), uri)
					if err != nil {
						assert.ErrorIs(w, err, redisqueue.ErrRedis)
						assert.ErrorContains(w, err, "NOPERM")
						assert.ErrorContains(w, err, name)
						assert.Equal(w, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
					}
					return err
				}
				for i := range 2 { // the second call meets a process that rests
					assert.Equal(w, slices.Contains(needless, right), purge(object(i)) == nil)
				}
				good := w.of("good"+fleet, fleet, all)
				var calls sync.WaitGroup
				for i := range 4 {
					calls.Go(func() { _ = purge(object(10 + i)) })
					_, err := good.Purge(w.within(15*time.Second), object(20+i))
					require.NoError(w, err)
					assert.NotZero(w, w.purged()[pattern(20+i)])
				}
				calls.Wait()
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
