package redisqueue_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fleet is a number of processes, and what they have reported.
type fleet struct {
	*world

	setUp setUp

	children []*child      // those that live; only the test uses them
	news     chan struct{} // there is a new event

	mu      sync.Mutex
	results map[string]event // of calls, by their URIs
}

// child is one process of a fleet, see runChild.
type child struct {
	fleet  *fleet
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	ready  chan struct{}
	ended  chan struct{} // closed when its output has ended
	killed bool
	sends  int // requests to the service under way; the lock of the fleet guards it
}

// startFleet starts n processes, and waits until all of them are ready.
func (w *world) startFleet(n int, change func(*setUp)) *fleet {
	f := &fleet{world: w, results: map[string]event{}, news: make(chan struct{}, 1), setUp: setUp{
		Redis: w.redis.Addr, Service: w.service.URL, Customer: w.service.Customer,
		Username: w.service.Username, Password: w.service.Password,
		Lease: 10 * time.Second,
	}}
	if change != nil {
		change(&f.setUp)
	}
	w.Cleanup(f.end)
	for range n {
		f.children = append(f.children, f.start())
	}
	for _, c := range f.children {
		c.waitUntilReady()
	}
	return f
}

// start starts one more process.
func (f *fleet) start() *child {
	text, err := json.Marshal(f.setUp)
	require.NoError(f, err)
	c := &child{fleet: f, cmd: exec.Command(os.Args[0]), ready: make(chan struct{}), ended: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), roleOf+"=child", setUpOf+"="+string(text))
	c.cmd.Stderr = os.Stderr
	c.stdin, err = c.cmd.StdinPipe()
	require.NoError(f, err)
	stdout, err := c.cmd.StdoutPipe()
	require.NoError(f, err)
	require.NoError(f, c.cmd.Start())
	go func() {
		defer close(c.ended)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			var e event
			if json.Unmarshal(lines.Bytes(), &e) == nil { // a killed process may write half a line
				c.receive(e)
			}
		}
	}()
	return c
}

func (c *child) waitUntilReady() {
	select {
	case <-c.ready:
	case <-c.ended:
		require.FailNow(c.fleet, "a process has ended")
	case <-time.After(60 * time.Second):
		require.FailNow(c.fleet, "a process does not start")
	}
}

func (c *child) receive(e event) {
	f := c.fleet
	f.mu.Lock()
	switch e.Kind {
	case isReady:
		close(c.ready)
	case requests:
		c.sends++
	case answered:
		c.sends--
	case hasResult:
		f.results[e.URI] = e
	}
	f.mu.Unlock()
	select {
	case f.news <- struct{}{}:
	default:
	}
}

// give gives a process an order.
func (c *child) give(o order) {
	text, err := json.Marshal(o)
	require.NoError(c.fleet, err)
	_, err = c.stdin.Write(append(text, '\n'))
	require.NoError(c.fleet, err)
}

// kill ends a process as kill -9 does.
func (c *child) kill() {
	c.killed = true
	assert.NoError(c.fleet, c.cmd.Process.Kill())
	<-c.ended
	_ = c.cmd.Wait()
}

// end closes the queues of all processes and waits for the processes.
func (f *fleet) end() {
	living := slices.DeleteFunc(f.children, func(c *child) bool { return c.killed })
	f.children = nil
	for _, c := range living {
		_ = c.stdin.Close()
	}
	for _, c := range living {
		stop := time.AfterFunc(30*time.Second, func() { _ = c.cmd.Process.Kill() })
		<-c.ended
		stop.Stop()
		assert.NoError(f, c.cmd.Wait(), "a process did not close its queue")
	}
}

// wait waits until done returns true. The lock is held while done runs. If the time is over, it fails the test.
func (f *fleet) wait(within time.Duration, what string, done func() bool) {
	f.Helper()
	over := time.NewTimer(within)
	defer over.Stop()
	for {
		f.mu.Lock()
		ok := done()
		f.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-f.news:
		case <-over.C:
			require.FailNow(f, fmt.Sprintf("after %v: %s", within, what))
		}
	}
}

// waitFor waits until the calls with these URIs have returned, and returns their results.
func (f *fleet) waitFor(within time.Duration, uris []string) map[string]event {
	f.Helper()
	open := slices.Clone(uris)
	results := map[string]event{}
	f.wait(within, "calls have not returned", func() bool {
		open = slices.DeleteFunc(open, func(uri string) bool {
			e, known := f.results[uri]
			if known {
				results[uri] = e
			}
			return known
		})
		return len(open) == 0
	})
	return results
}
