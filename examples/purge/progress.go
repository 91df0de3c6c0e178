package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

// progress is the line on a terminal while URIs are purged. From another goroutine it shows long waits, because the
// queue reports nothing before a response.
type progress struct {
	show func(text string)

	mu       sync.Mutex
	pending  int // URIs that were handed to the queue and have no result
	accepted int
	since    time.Time // of the last response, or of the first pending URI
}

// longWait is the longest wait that the line does not show. Two permits a second are the rule.
const longWait = 2 * time.Second

// handOver counts a URI that the queue gets. Call the returned function when it has a result.
func (p *progress) handOver() (done func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending++; p.pending == 1 {
		p.since = time.Now()
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.pending--
	}
}

// report shows what the queue reports after each request.
func (p *progress) report(q webdelivery.QueueStats) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.accepted, p.since = q.Accepted, time.Now()
	p.show(fmt.Sprintf("%d URIs accepted", p.accepted))
}

// watch shows long waits until the context ends.
func (p *progress) watch(ctx context.Context) {
	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			p.showWait(time.Now())
		}
	}
}

func (p *progress) showWait(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if wait := now.Sub(p.since); p.pending > 0 && wait > longWait {
		p.show(fmt.Sprintf("%d URIs accepted; waiting %.0f s for a permit or a response", p.accepted, wait.Seconds()))
	}
}
