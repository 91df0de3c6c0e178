package batch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/internal/batch"
	"github.com/webdelivery/webdelivery-go/internal/outcomes"
)

var (
	errRefused = errors.New("refused")
	errLost    = errors.New("lost")
)

// world is the environment of a queue. The patterns of its URIs are letters. Its limiter gives one permit per second, and a request takes half
// a second.
type world struct {
	*testing.T
	queue *batch.Queue

	mu       sync.Mutex
	requests []string // sent requests
	began    time.Time
	asked    int // calls of Acquire
	permits  int // permits that have not ended

	refused string            // letters that the service refuses
	deaf    bool              // Acquire ignores its context
	lost    int               // number of the call of Acquire that fails
	conduct map[string]func() // user code by the name of the function that runs it
	last    time.Time         // time of the last permit
	options batch.Options

	work batch.Work
}

// inWorld runs a test in a bubble of fake time. A goroutine that stays behind fails the test.
func inWorld(t *testing.T, change func(w *world), test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, began: time.Now(), conduct: map[string]func(){}, options: batch.Options{MaxURIs: 100, MaxBytes: 100, MaxPending: 1000, UnderWay: 4}}
		w.work = batch.Work{Acquire: w.acquire, Send: w.send, Left: func(ctx context.Context, _ bool) error { return fmt.Errorf("left: %w", ctx.Err()) }, Undecided: undecided}
		change(w)
		w.queue = batch.New(w.work, w.options)
		test(w)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		w.queue.Close(ctx)
		assert.Zero(t, w.permits, "permits that have not ended")
	})
}

// uris returns a URI of one byte for each letter. The hosts of lower and upper case letters are "a" and "A", that of a
// digit is the digit.
func uris(letters string) (all []batch.URI) {
	for _, letter := range letters {
		host := string(letter)
		switch {
		case letter >= 'a':
			host = "a"
		case letter >= 'A':
			host = "A"
		}
		all = append(all, batch.URI{Pattern: string(letter), Host: host, Size: 1})
	}
	return all
}

func letters(uris []batch.URI) string {
	var all strings.Builder
	for _, uri := range uris {
		all.WriteString(uri.Pattern)
	}
	return all.String()
}

// response returns NotApplied for a refusal, and Unknown for any other error.
func response(receipt int, err error) batch.Response {
	if errors.Is(err, errRefused) {
		return batch.Response{Err: err, Refused: true, Outcome: outcomes.NotApplied}
	}
	if err != nil {
		return batch.Response{Err: err}
	}
	return batch.Response{Receipt: receipt}
}

// within returns a context that ends after d.
func (w *world) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(w.Context(), d)
	w.Cleanup(cancel)
	return ctx
}

// user runs the user code that the test has set for a function.
func (w *world) user(function string) {
	w.mu.Lock()
	f := w.conduct[function]
	w.mu.Unlock()
	if f != nil {
		f()
	}
}

// does sets the user code that runs in a function; nil for none.
func (w *world) does(function string, conduct func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conduct[function] = conduct
}

type permit struct{ *world }

func (p permit) End(context.Context, time.Time) {
	p.count(-1)
	p.user("End")
}

func (w *world) count(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.permits += n
}

// pause delays the next permit by 10 s.
func (w *world) pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = time.Now().Add(10 * time.Second)
}

func (w *world) acquire(ctx context.Context) (batch.Permit, error) {
	w.mu.Lock()
	w.asked++
	lost := w.asked == w.lost
	w.mu.Unlock()
	w.user("Acquire")
	if w.deaf {
		ctx = context.WithoutCancel(ctx)
	}
	w.mu.Lock()
	at := w.last.Add(time.Second)
	if now := time.Now(); at.Before(now) {
		at = now
	}
	w.last = at
	w.mu.Unlock()
	if err := sleep(ctx, time.Until(at)); err != nil {
		return nil, err
	}
	if lost {
		return nil, errLost
	}
	w.count(1)
	return permit{w}, nil
}

func (w *world) send(ctx context.Context, _ batch.Permit, uris []batch.URI, _ func(error)) batch.Response {
	defer w.count(-1)
	sent := letters(uris)
	w.mu.Lock()
	w.requests = append(w.requests, sent)
	receipt := len(w.requests)
	w.mu.Unlock()
	w.user("Send " + sent)
	w.user("Send")
	if err := sleep(ctx, time.Second/2); err != nil {
		return response(0, err)
	}
	if strings.ContainsAny(sent, w.refused) {
		return response(0, errRefused)
	}
	return response(receipt, nil)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func undecided(host string, alone int) error {
	if alone > 0 {
		return fmt.Errorf("host %s: %d alone", host, alone)
	}
	return errors.New("together")
}

// ended is the result of a Put.
type ended struct {
	receipt int    // the last one
	failed  string // failed letters
	text    string // texts of the errors, each once
	outcome outcomes.Outcome
	after   time.Duration
}

// put calls Put in a goroutine, with a URI for each letter.
func (w *world) put(ctx context.Context, items string) <-chan ended {
	result := make(chan ended, 1)
	go func() {
		got := w.queue.Put(ctx, uris(items))
		end := ended{outcome: got.Outcome, after: time.Since(w.began).Round(100 * time.Millisecond)}
		for _, receipt := range got.Receipts {
			end.receipt = max(end.receipt, receipt.(int)) // see response
		}
		var texts []string
		for _, f := range got.Failures {
			end.failed += f.URI.Pattern
			if text := f.Err.Error(); !slices.Contains(texts, text) {
				texts = append(texts, text)
			}
		}
		if end.text = strings.Join(texts, ", "); end.text == "" {
			end.outcome = 0 // always applied, which the tests need not say
		}
		result <- end
	}()
	synctest.Wait()
	return result
}

func unchanged(*world) {}

const half = time.Second / 2

// closed is the text of ErrClosed.
const closed = "webdelivery: purge queue closed"
