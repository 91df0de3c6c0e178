package redisqueue_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/redislimit"
	"github.com/webdelivery/webdelivery-go/redisqueue"
)

// A child is one process of a fleet: this program, started again with a setUp as JSON in this variable. It purges each
// line of stdin by itself, at the same time, and writes events to stdout. When stdin ends, it closes its queue.
const setUpOf = "REDISQUEUE_TEST_SETUP"

// setUp is what a child must know.
type setUp struct {
	Redis, Service, Customer, Username, Password string

	Lease time.Duration
	Fair  bool          // with the limiter of package redislimit
	Hold  time.Duration // of each response of the service, after it was reported
}

// event is what a child reports: a response of the service if it has no URI, or else the end of a call.
type event struct {
	URI      string
	Error    string
	Outcome  webdelivery.Outcome
	Took     time.Duration
	Commands int64 // that the queue has sent to Redis so far
}

// counter counts commands.
type counter struct{ atomic.Int64 }

func (c *counter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { c.Add(1); return next(ctx, cmd) }
}

func (c *counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { c.Add(int64(len(cmds))); return next(ctx, cmds) }
}

func runChild(stdin io.Reader, stdout io.Writer) error {
	var s setUp
	if err := json.Unmarshal([]byte(os.Getenv(setUpOf)), &s); err != nil { //nolint:musttag // the parent is the same program
		return err
	}
	var mu sync.Mutex
	report := func(e event) {
		mu.Lock()
		defer mu.Unlock()
		_ = json.NewEncoder(stdout).Encode(e) //nolint:musttag // it fails if the test has ended
	}
	rdb := redis.NewClient(redisOptions(s.Redis))
	defer rdb.Close()
	var limiter webdelivery.Limiter = interval{rdb}
	if s.Fair {
		all := redis.NewUniversalClient(redislimit.ClientOptions(s.Redis)) // the user may not run its scripts
		defer all.Close()
		var err error
		if limiter, err = redislimit.New(all); err != nil {
			return err
		}
	}
	client, err := webdelivery.NewClient(s.Service, s.Customer, webdelivery.BasicAuth(s.Username, s.Password),
		webdelivery.WithHTTPClient(&http.Client{Transport: announcer{report, s.Hold}}), webdelivery.WithPurgeLimiter(limiter))
	if err != nil {
		return err
	}
	commands := &counter{}
	counted := redis.NewClient(redisOptions(s.Redis))
	defer counted.Close()
	counted.AddHook(commands)
	q, err := redisqueue.New(counted, client, redisqueue.Options{Lease: s.Lease})
	if err != nil {
		return err
	}
	report(event{})
	var calls sync.WaitGroup
	for lines := bufio.NewScanner(stdin); lines.Scan(); {
		uri := lines.Text()
		calls.Go(func() {
			began := time.Now()
			e := event{URI: uri}
			_, err := q.Purge(context.Background(), webdelivery.Exact(uri))
			if e.Took = time.Since(began); err != nil {
				e.Error, e.Outcome = err.Error(), webdelivery.OutcomeOf(err)
			}
			e.Commands = commands.Load()
			report(e)
		})
	}
	calls.Wait()
	return q.Close(context.Background())
}

// announcer reports each response before the SDK gets it, so that a test can kill the process then.
type announcer struct {
	report func(event)
	hold   time.Duration
}

func (a announcer) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(r)
	a.report(event{})
	time.Sleep(a.hold)
	return response, err
}

// child is a process that a test has started.
type child struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	events chan event // closed when its output has ended
}

// start starts a process, and waits until it has a queue.
func (w *world) start(change func(*setUp)) *child {
	s := setUp{
		Redis: w.redis.Addr, Service: w.service.URL, Customer: w.service.Customer,
		Username: w.service.Username, Password: w.service.Password, Lease: 2 * time.Second,
	}
	if change != nil {
		change(&s)
	}
	text, err := json.Marshal(s) //nolint:musttag // as above
	require.NoError(w, err)
	c := &child{cmd: exec.Command(os.Args[0]), events: make(chan event, 10_000)}
	c.cmd.Env = append(os.Environ(), setUpOf+"="+string(text), "GORACE=atexit_sleep_ms=0") // it would sleep for a second
	c.cmd.Stderr = os.Stderr
	c.stdin, err = c.cmd.StdinPipe()
	require.NoError(w, err)
	stdout, err := c.cmd.StdoutPipe()
	require.NoError(w, err)
	require.NoError(w, c.cmd.Start())
	go func() {
		defer close(c.events)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			var e event
			if json.Unmarshal(lines.Bytes(), &e) == nil { //nolint:musttag // a killed process may write half a line
				c.events <- e
			}
		}
	}()
	w.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	})
	<-c.events
	return c
}

// purge gives a process URIs.
func (w *world) give(c *child, uris ...string) {
	for _, uri := range uris {
		_, err := io.WriteString(c.stdin, uri+"\n")
		require.NoError(w, err)
	}
}

// ends waits until so many calls of a process have ended.
func (w *world) ends(c *child, calls int) (ended []event) {
	w.Helper()
	over := time.After(2 * time.Minute)
	for len(ended) < calls {
		select {
		case e, ok := <-c.events:
			require.True(w, ok, "the process has ended")
			if e.URI != "" {
				ended = append(ended, e)
			}
		case <-over:
			require.FailNow(w, "calls have not ended")
		}
	}
	return ended
}

// finish ends a process, which closes its queue.
func (w *world) finish(c *child) {
	assert.NoError(w, c.stdin.Close())
	for range c.events {
	}
	assert.NoError(w, c.cmd.Wait())
}
