package usercode_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/usercode"
)

var errBoom = errors.New("boom")

// cursed panics when it is printed.
type cursed struct{}

func (*cursed) Error() string { panic("cursed") }

// accursed panics when it is printed, with a value that does the same.
type accursed struct{}

func (a *accursed) Error() string { panic(a) }

// final ends the goroutine when it is printed.
type final struct{}

func (*final) Error() string { runtime.Goexit(); return "" }

// endOf runs f in its own goroutine, because f may end it.
func endOf(t *testing.T, f func() error) (err error) {
	t.Helper()
	calls := 0
	over := make(chan struct{})
	go func() {
		defer close(over)
		usercode.Run(f, func(e error) { calls, err = calls+1, e })
	}()
	<-over
	require.Equal(t, 1, calls, "calls of done")
	return err
}

func TestRun(t *testing.T) {
	t.Parallel()
	var none []int
	n := len(none)
	for _, c := range []struct {
		name string
		f    func() error
		text []string // parts of the error text; none: no error
		is   error
	}{
		{"ends well", func() error { return nil }, nil, nil},
		{"fails", func() error { return errBoom }, []string{"boom"}, errBoom},
		{"panics with an error", func() error { panic(fmt.Errorf("bang: %w", errBoom)) }, []string{"panic in ", "TestRun", "usercode_test.go:", "bang: boom"}, errBoom},
		{"panics with a text", func() error { panic("text") }, []string{"panic in ", "usercode_test.go:", ": text"}, nil},
		{"reads behind the end of a slice", func() error { _ = none[n]; return nil }, []string{"usercode_test.go:", "out of range"}, nil},
		{"panics with a value that panics when it is printed", func() error { panic(&cursed{}) }, []string{"panic"}, nil},
		{"panics with a value that panics with itself when it is printed", func() error { panic(&accursed{}) }, []string{"cannot be printed"}, nil},
		{"panics with a value that ends the goroutine when it is printed", func() error { panic(&final{}) }, []string{"cannot be printed"}, nil},
		{"ends its goroutine", func() error { runtime.Goexit(); return nil }, []string{"runtime.Goexit"}, usercode.ErrGoexit},
		{"panics, and ends its goroutine", func() error {
			defer runtime.Goexit()
			panic("text")
		}, []string{"runtime.Goexit"}, usercode.ErrGoexit},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := endOf(t, c.f)
			if c.text == nil {
				require.NoError(t, err)
				return
			}
			for _, part := range c.text {
				require.ErrorContains(t, err, part)
			}
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			}
			assert.NotErrorIs(t, err, errors.ErrUnsupported)
		})
	}
}

// A panic with another text still matches its cause.
func TestWithText(t *testing.T) {
	t.Parallel()
	var panicked *usercode.Panic
	require.ErrorAs(t, endOf(t, func() error { panic(errBoom) }), &panicked)
	shown := panicked.WithText("shown")
	require.EqualError(t, shown, "shown")
	require.ErrorIs(t, shown, errBoom)
	assert.Contains(t, panicked.Error(), "boom")
}

// A Turn excludes others, and in a synctest bubble time passes while they wait.
func TestTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turn := usercode.NewTurn()
		began := time.Now()
		done := make(chan time.Duration)
		for range 3 {
			go func() {
				turn.Lock()
				time.Sleep(time.Hour)
				turn.Unlock()
				done <- time.Since(began)
			}()
		}
		assert.Equal(t, []time.Duration{time.Hour, 2 * time.Hour, 3 * time.Hour}, []time.Duration{<-done, <-done, <-done})
	})
}
