package waiting_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/waiting"
)

var (
	errOutage  = errors.New("503")
	errGone    = errors.New("404")
	errRefused = errors.New("401")
	errPanic   = errors.New("panic")
)

// judge knows these errors. An unknown host is an outage only if the item was read before.
func judge(err error, known bool) waiting.Verdict {
	switch {
	case errors.Is(err, errGone):
		return waiting.EndsOne
	case errors.Is(err, errRefused), errors.Is(err, errPanic), !known && !errors.Is(err, errOutage):
		return waiting.EndsAll
	default:
		return waiting.GoesOn
	}
}

func everySecond() time.Duration { return time.Second }

// What a loop does after each result of a poll.
func TestALoopEndsWithWhatIsPermanent(t *testing.T) {
	t.Parallel()
	errHost := errors.New("no such host")
	for name, tt := range map[string]struct {
		polls []error // nil: goes on
		known bool
		end   waiting.Ended
	}{
		"at once":                  {polls: []error{errGone}, end: waiting.Ended{Polls: 1, Err: errGone}},
		"after an outage":          {polls: []error{errOutage, errOutage, errRefused}, end: waiting.Ended{Polls: 3, Err: errRefused}},
		"unknown at first":         {polls: []error{errHost}, end: waiting.Ended{Polls: 1, Err: errHost}},
		"unknown after an outage":  {polls: []error{errOutage, errHost}, end: waiting.Ended{Polls: 2, Err: errHost}},
		"unknown later":            {polls: []error{nil, errHost, errGone}, end: waiting.Ended{Polls: 3, Err: errGone}},
		"unknown, known to exist":  {polls: []error{errHost, errGone}, known: true, end: waiting.Ended{Polls: 2, Err: errGone}},
		"the timeout":              {polls: []error{nil, nil, nil, nil}, end: waiting.Ended{Polls: 4, Err: context.DeadlineExceeded, Early: true}},
		"the timeout, one failed":  {polls: []error{nil, errOutage, nil, errOutage}, end: waiting.Ended{Polls: 4, Err: context.DeadlineExceeded, Early: true, Failed: 1, Last: errOutage}},
		"the timeout, some failed": {polls: []error{nil, nil, errHost, errOutage}, end: waiting.Ended{Polls: 4, Err: context.DeadlineExceeded, Early: true, Failed: 2, Last: errOutage}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				loop := waiting.Loop{Interval: everySecond, Timeout: 3500 * time.Millisecond, Known: tt.known, Judge: judge}
				polls := 0
				err := loop.Run(t.Context(), func(context.Context) (bool, error) {
					polls++
					return false, tt.polls[polls-1]
				})
				end, ok := errors.AsType[*waiting.Ended](err)
				require.True(t, ok)
				assert.Equal(t, tt.end, *end)
				require.ErrorIs(t, err, tt.end.Err)
				if tt.end.Last != nil {
					require.ErrorIs(t, err, tt.end.Last)
					assert.ErrorContains(t, err, tt.end.Last.Error())
				}
			})
		})
	}
}

// A failure that comes at the moment at which the context ends is a failed poll, and not the end of the context.
func TestAFailureAtTheEndOfTheContext(t *testing.T) {
	t.Parallel()
	for _, failed := range []error{errOutage, errGone} {
		ctx, cancel := context.WithCancel(t.Context())
		loop := waiting.Loop{Interval: everySecond, Judge: judge}
		err := loop.Run(ctx, func(context.Context) (bool, error) {
			cancel()
			return false, failed
		})
		require.ErrorIs(t, err, failed)
		assert.Equal(t, errors.Is(failed, errOutage), errors.Is(err, context.Canceled))
	}
}

// items returns a group whose items end one per round, from the first round on.
type items struct {
	mu    sync.Mutex
	reads map[int]int
	fails map[int]error
}

func (s *items) group(n int) *waiting.Group[int] {
	s.reads = map[int]int{}
	return &waiting.Group[int]{
		Loop: waiting.Loop{Interval: everySecond, Timeout: time.Minute, Judge: judge}, Items: n, AtOnce: 2,
		Read: func(_ context.Context, i int) (int, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.reads[i]++
			if err := s.fails[i]; errors.Is(err, errPanic) {
				panic(err)
			}
			return s.reads[i], s.fails[i]
		},
		Done:   func(reads int) (bool, error) { return reads > 2, nil },
		Report: func(int, int, int, error) {},
		Guard: func(read func() error, done func(error)) {
			err := errPanic
			defer func() {
				_ = recover()
				done(err)
			}()
			err = read()
		},
	}
}

func TestAGroupWaitsForTheOthers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fails   error
		fast    bool
		rounds  int // of the others
		pending int
		end     error
	}{
		"all end":                {rounds: 3},
		"one is gone":            {fails: errGone, rounds: 3},
		"one is gone, fail fast": {fails: errGone, fast: true, rounds: 1, pending: 5},
		"the login is refused":   {fails: errRefused, rounds: 0, pending: 6, end: errRefused},
		"a read panics":          {fails: errPanic, rounds: 0, pending: 6, end: errPanic},
		"one cannot be read":     {fails: errOutage, rounds: 3, pending: 1, end: errOutage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &items{fails: map[int]error{0: tt.fails}}
				g := s.group(6)
				g.FailFast, g.AtOnce = tt.fast, 1 // or what another reader has begun would be read
				read, errs, err := g.Wait(t.Context())
				if tt.end == nil {
					require.NoError(t, err)
				}
				require.ErrorIs(t, err, tt.end)
				assert.Len(t, g.Pending(), tt.pending)
				assert.Equal(t, errors.Is(tt.fails, errGone), errs[0] != nil)
				assert.Equal(t, tt.rounds, read[5])
			})
		})
	}
}

// Items that cannot be read come last, so that the others are read in every round.
func TestWhatFailsComesLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &items{fails: map[int]error{0: errOutage, 1: errOutage, 3: errOutage}}
		g := s.group(8)
		g.AtOnce = 1
		read, _, err := g.Wait(t.Context())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, []int{0, 1, 3}, g.Pending())
		assert.Equal(t, []int{0, 0, 3, 0, 3, 3, 3, 3}, read)
	})
}

// An item that a list shows as ended is read individually: only that shows how it ended.
func TestAListDoesNotSayHowAnItemEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &items{}
		g := s.group(10)
		g.List = func(_ context.Context, _ []int, pending []int, _ int) (map[int]int, int) {
			shown := map[int]int{}
			for _, i := range pending {
				shown[i] = 99
			}
			return shown, 1
		}
		read, _, err := g.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []int{3, 3, 3, 3, 3, 3, 3, 3, 3, 3}, read)
	})
}

// The items that are read in turn show that a list is outdated.
func TestAListThatIsBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, lists := &items{}, 0
		g := s.group(10)
		g.List = func(_ context.Context, last []int, pending []int, most int) (map[int]int, int) {
			lists++
			assert.Equal(t, len(pending)/2, most)
			shown := map[int]int{}
			for _, i := range pending {
				assert.Positive(t, last[i])
				shown[i] = 1
			}
			return shown, 1
		}
		_, _, err := g.Wait(t.Context())
		require.NoError(t, err)
		assert.Less(t, lists, 15)
		for i, reads := range s.reads {
			assert.Equal(t, 3, reads, "item %d", i)
		}
	})
}

func TestGrowingIntervals(t *testing.T) {
	t.Parallel()
	next, nominal := waiting.Growing(), 500*time.Millisecond
	for range 20 {
		assert.InDelta(t, nominal, next(), float64(nominal)/5)
		nominal = min(nominal*3/2, 5*time.Second)
	}
}

// Unfinished gives the number of pending items and the names of the first five.
func TestUnfinishedItemsAreNamed(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{
		1: "1: a; 3 polls",
		5: "5: a, b, c, d, e; 3 polls",
		6: "6: a, b, c, d, e and 1 more; 3 polls",
		8: "8: a, b, c, d, e and 3 more; 3 polls",
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &items{}
			g := s.group(n)
			g.Timeout, g.Done = time.Second, func(int) (bool, error) { return false, nil }
			_, _, err := g.Wait(t.Context())
			require.ErrorIs(t, err, context.DeadlineExceeded)
			assert.Equal(t, want, g.Unfinished(3, func(i int) string { return string(rune('a' + i)) }))
		})
	}
}
