package batch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/internal/batch"
)

var (
	errRefused  = errors.New("refused")
	errLost     = errors.New("lost")
	errClosed   = errors.New("closed")
	errTogether = errors.New("together")
	errBoom     = errors.New("boom")
)

// world is the environment of a queue. Items are letters. Its limiter gives one permit per second, a request takes half
// a second, and its transaction 10 s.
type world struct {
	*testing.T
	queue *batch.Queue[rune, int]

	mu       sync.Mutex
	requests []string // sent requests
	began    time.Time
	asked    int // calls of Acquire
	permits  int // permits that have not ended
	waits    []int64
	stats    []batch.Stats

	refused string            // letters that the service refuses
	deaf    bool              // Acquire ignores its context
	conduct map[string]func() // user code by the name of the function that runs it
	last    time.Time         // time of the last permit
	options batch.Options
	work    batch.Work[rune, int]
}

// inWorld runs a test in a bubble of fake time. A goroutine that stays behind fails the test.
func inWorld(t *testing.T, change func(w *world), test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, began: time.Now(), conduct: map[string]func(){}, options: batch.Options{MaxItems: 100, MaxBytes: 100, MaxPending: 1000, UnderWay: 4}}
		w.work = batch.Work[rune, int]{
			Size:        func(rune) int { return 1 },
			Acquire:     w.acquire,
			Send:        w.send,
			Refused:     func(err error) bool { return errors.Is(err, errRefused) },
			Transaction: func(receipt int) int64 { return int64(receipt) },
			Judge:       judge,
			Catch: func(f func() error, done func(*batch.Failure)) {
				done(judge(f()))
			},
			Left:     func(ctx context.Context) error { return fmt.Errorf("left: %w", ctx.Err()) },
			Closed:   errClosed,
			ClosedBy: func(err error) error { return fmt.Errorf("%w: %w", errClosed, err) },
			Together: errTogether,
		}
		change(w)
		w.queue = batch.New(w.work, w.options)
		test(w)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		w.queue.Close(ctx)
		assert.Zero(t, w.permits, "permits that have not ended")
	})
}

// judge returns NotApplied for a refusal, and Unknown for any other error.
func judge(err error) *batch.Failure {
	if err == nil {
		return nil
	}
	outcome := batch.Unknown
	if errors.Is(err, errRefused) {
		outcome = batch.NotApplied
	}
	return &batch.Failure{Err: err, Text: err.Error(), Outcome: outcome}
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

func (p permit) Return(context.Context) {
	p.count(-1)
	p.user("Return")
}

func (w *world) count(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.permits += n
}

// pause delays the next permit.
func (w *world) pause(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = time.Now().Add(d)
}

func (w *world) acquire(ctx context.Context) (batch.Permit, error) {
	w.mu.Lock()
	w.asked++
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
	w.count(1)
	return permit{w}, nil
}

func (w *world) send(ctx context.Context, held batch.Permit, items []rune) (int, error) {
	if held == nil {
		if _, err := w.acquire(ctx); err != nil {
			return 0, err
		}
	}
	defer w.count(-1)
	w.mu.Lock()
	w.requests = append(w.requests, string(items))
	receipt := len(w.requests)
	w.mu.Unlock()
	w.user("Send " + string(items))
	w.user("Send")
	if err := sleep(ctx, time.Second/2); err != nil {
		return 0, err
	}
	if strings.ContainsAny(string(items), w.refused) {
		return 0, errRefused
	}
	return receipt, nil
}

func (w *world) wait(ctx context.Context, transaction int64) error {
	w.mu.Lock()
	w.waits = append(w.waits, transaction)
	w.mu.Unlock()
	w.user(fmt.Sprint("Wait ", transaction))
	return sleep(ctx, 10*time.Second)
}

func (w *world) report(now batch.Stats) {
	w.mu.Lock()
	w.stats = append(w.stats, now)
	w.mu.Unlock()
	w.user("Report")
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ended is the result of a Put.
type ended struct {
	receipt int
	items   string // failed items
	text    string // text of the error
	outcome batch.Outcome
	after   time.Duration
}

// put calls Put with letters in a goroutine.
func (w *world) put(ctx context.Context, items string) <-chan ended {
	result := make(chan ended, 1)
	go func() {
		receipt, err := w.queue.Put(ctx, []rune(items))
		end := ended{receipt: receipt, after: time.Since(w.began).Round(100 * time.Millisecond)}
		if failed := (*batch.Error[rune])(nil); errors.As(err, &failed) {
			end.items, end.outcome = string(failed.Items), failed.Outcome
		}
		if err != nil {
			end.text = err.Error()
		}
		result <- end
	}()
	synctest.Wait()
	return result
}

func unchanged(*world) {}

const half = time.Second / 2
