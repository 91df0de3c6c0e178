package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// progress is the line on a terminal while URIs are purged.
type progress struct {
	show func(text string)

	mu       sync.Mutex
	pending  int // URIs that were handed to the queue and have no result
	accepted int
	since    time.Time // of the last result, or of the first pending URI
}

// longWait is the longest wait that the line does not show. Normally there are two permits a second.
const longWait = 2 * time.Second

// handOver counts a URI that the queue gets.
func (p *progress) handOver() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending++; p.pending == 1 {
		p.since = time.Now()
	}
}

// ended counts the result of a URI.
func (p *progress) ended(accepted bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending--
	p.since = time.Now()
	if accepted {
		p.accepted++
	}
}

// watch shows the line every second until the context ends, while URIs are pending.
func (p *progress) watch(ctx context.Context) {
	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case now := <-ticks.C:
			p.tick(now)
		}
	}
}

func (p *progress) tick(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := fmt.Sprintf("%d URIs accepted", p.accepted)
	if wait := now.Sub(p.since); wait > longWait {
		text += fmt.Sprintf("; waiting %.0f s for a permit or a response", wait.Seconds())
	}
	if p.pending > 0 {
		p.show(text)
	}
}
