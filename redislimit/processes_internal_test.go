package redislimit

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// What tells a process of this program that it is a child: its name, and where its servers are.
const (
	childName    = "REDISLIMIT_TEST_CHILD"
	childRedis   = "REDISLIMIT_TEST_REDIS"
	childService = "REDISLIMIT_TEST_SERVICE"
)

const processes = 4

// runChild purges as fast as it is let until stdin ends. It prints a line for each permit, "permit <uri> <instant>",
// and for each purge that failed, "unavailable" or "failed ...".
func runChild(stdin io.Reader, stdout io.Writer) error {
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		stop()
	}()
	report := func(format string, args ...any) { fmt.Fprintf(stdout, format+"\n", args...) }
	rdb := redis.NewClient(&redis.Options{
		Addr: os.Getenv(childRedis), MaxRetries: -1, ContextTimeoutEnabled: true,
		DialTimeout: 500 * time.Millisecond, ReadTimeout: 500 * time.Millisecond,
	})
	defer rdb.Close()
	permits := &printedPermits{limiter: New(rdb, "acme"), stop: ctx, report: report}
	client, err := webdelivery.NewClient(os.Getenv(childService), "acme",
		webdelivery.BasicAuth("alice", "correct-horse-battery"), webdelivery.WithPurgeLimiter(permits))
	if err != nil {
		return err
	}
	for n := 0; ctx.Err() == nil; n++ {
		permits.uri = fmt.Sprintf("https://www.example.com/%s/%d", os.Getenv(childName), n)
		_, err := client.Purge.Submit(context.Background(), webdelivery.PurgeRequest{
			Action: webdelivery.ActionPurge, URIs: []webdelivery.PurgeURI{webdelivery.Exact(permits.uri)},
		})
		switch {
		case err == nil || ctx.Err() != nil:
		case isUnavailable(err) && webdelivery.OutcomeOf(err) == webdelivery.NotApplied:
			report("unavailable")
			time.Sleep(20 * time.Millisecond)
		default:
			report("failed %v", err)
		}
	}
	return nil
}

// printedPermits prints the permits of a limiter. Stopping ends its wait, never a purge that is under way.
type printedPermits struct {
	limiter *Limiter
	stop    context.Context
	report  func(string, ...any)
	uri     string
}

func (p *printedPermits) Wait(context.Context) error {
	r, err := p.limiter.permit(p.stop)
	if err == nil {
		p.report("permit %s %d", p.uri, r.at)
	}
	return err
}

func (p *printedPermits) Pause(ctx context.Context, d time.Duration) error {
	p.report("failed: paused for %v", d) // the service was asked too often
	return p.limiter.Pause(ctx, d)
}

// child is what a process told.
type child struct {
	permits     map[string]time.Time // by the URI that was purged with it
	unavailable int
	failed      []string
}

// startChild returns how to stop the process, and how to learn what it told.
func startChild(t *testing.T, name string, s *server, service string) (stop func() error, learn func() child) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childName+"="+name, childRedis+"="+s.addr, childService+"="+service)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	told := make(chan child)
	go func() {
		c := child{permits: map[string]time.Time{}}
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			var uri string
			var at int64
			if lines.Text() == "unavailable" {
				c.unavailable++
			} else if n, _ := fmt.Sscanf(lines.Text(), "permit %s %d", &uri, &at); n == 2 {
				c.permits[uri] = time.UnixMicro(at)
			} else {
				c.failed = append(c.failed, lines.Text())
			}
		}
		told <- c
	}()
	return stdin.Close, func() child {
		c := <-told
		assert.NoError(t, cmd.Wait())
		return c
	}
}

// 4 processes, one Redis, one service, for 8 seconds or the time in REDISLIMIT_TEST_DURATION; Redis is killed in
// between. All share the clock of this machine, so instants of all of them compare.
func TestProcessesShareOneBudget(t *testing.T) {
	t.Parallel()
	duration := 8 * time.Second
	if d := os.Getenv("REDISLIMIT_TEST_DURATION"); d != "" {
		var err error
		duration, err = time.ParseDuration(d)
		require.NoError(t, err)
	}
	onServers(t, func(t *testing.T, s *server) {
		service := testserver.New(testserver.Config{PurgeDuration: -1}) // with its limit of 2 a second
		defer service.Close()
		url, err := service.ListenTCP()
		require.NoError(t, err)
		stop, learn := make([]func() error, processes), make([]func() child, processes)
		for i := range processes {
			stop[i], learn[i] = startChild(t, fmt.Sprint(i), s, url)
		}

		time.Sleep(duration * 4 / 10)
		s.kill()
		killed := time.Now()
		time.Sleep(duration * 2 / 10)
		restarted := time.Now()
		require.NoError(t, s.start())
		time.Sleep(duration * 4 / 10)
		stopped := time.Now()
		for i := range processes {
			require.NoError(t, stop[i]())
		}

		permits := map[string]time.Time{}
		var each []int
		refused := 0
		for i := range processes {
			c := learn[i]()
			assert.Empty(t, c.failed)
			refused += c.unavailable
			each = append(each, len(c.permits))
			for uri, at := range c.permits {
				permits[uri] = at
			}
		}
		assert.Positive(t, refused, "typed errors while Redis is away")
		arrivals := judgeArrivals(t, service, permits)
		first, second := judgePermits(t, permits, killed, restarted, stopped)
		for i, n := range each {
			assert.GreaterOrEqual(t, 2*processes*n, len(permits), "process %d has less than half its share", i)
		}
		t.Logf("%d arrivals; permits: %v by process, %d of %.1f before the kill, %d refusals, %d of %.1f after the restart",
			arrivals, each, first.got, first.possible, refused, second.got, second.possible)
	})
}

// judgeArrivals: each purge has its permit, and a permit brings one purge. No three within a second: as permits are
// 550 ms apart, that follows unless one took 100 ms longer on its way than another. A machine so busy that this happens
// shows nothing about the limiter, so then it is not judged; the permits themselves always are.
func judgeArrivals(t *testing.T, service *testserver.Server, permits map[string]time.Time) int {
	var arrivals []time.Time
	var delays []time.Duration
	for _, purge := range service.Purged() {
		require.Len(t, purge.URIs, 1)
		at, ok := permits[purge.URIs[0].URIPattern]
		require.True(t, ok, "%v was purged without a permit", purge.URIs)
		arrivals = append(arrivals, purge.Time)
		delays = append(delays, purge.Time.Sub(at))
	}
	require.Len(t, arrivals, len(permits))
	require.NotEmpty(t, arrivals)
	assert.GreaterOrEqual(t, slices.Min(delays), time.Duration(0), "nobody is early")
	jitter := slices.Max(delays) - slices.Min(delays)
	slices.SortFunc(arrivals, time.Time.Compare)
	shortest := time.Hour
	for i := 2; i < len(arrivals); i++ {
		shortest = min(shortest, arrivals[i].Sub(arrivals[i-2]))
	}
	t.Logf("from permit to arrival: %v to %v; shortest span of three arrivals: %v", slices.Min(delays), slices.Max(delays), shortest)
	if jitter < 100*time.Millisecond {
		assert.Greater(t, shortest, time.Second)
		assert.Equal(t, len(arrivals), service.Count("POST", "/cache/purge"), "none was refused")
	}
	return len(arrivals)
}

// used is how many permits of a span were used.
type used struct {
	got      int
	possible float64
}

// judgePermits: none while Redis was away, never two closer than the interval, and 90 % used while it was there. What
// the machine loses at the ends of a span is not judged: it begins with its first permit, and its last place is left
// out, as it may have been reserved but not yet used.
func judgePermits(t *testing.T, permits map[string]time.Time, killed, restarted, stopped time.Time) (before, after used) {
	var times, early, late []time.Time
	for _, at := range permits {
		times = append(times, at)
	}
	slices.SortFunc(times, time.Time.Compare)
	for i, at := range times {
		if i > 0 {
			assert.GreaterOrEqual(t, at.Sub(times[i-1]), defaultInterval)
		}
		switch {
		case at.Before(killed):
			early = append(early, at)
		case at.Before(restarted):
			assert.Fail(t, "a permit without Redis", "%v after it was killed", at.Sub(killed))
		default:
			late = append(late, at)
		}
	}
	require.NotEmpty(t, early)
	require.NotEmpty(t, late, "it goes on")
	before = used{len(early), float64(killed.Sub(early[0])) / float64(defaultInterval)}
	after = used{len(late), float64(stopped.Sub(late[0])) / float64(defaultInterval)}
	for _, span := range []used{before, after} {
		assert.GreaterOrEqual(t, float64(span.got), 0.9*float64(int(span.possible)))
	}
	return before, after
}
