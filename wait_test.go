package webdelivery_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// waitable is something with a Wait, so that one test runs for tasks and transactions alike.
type waitable struct {
	kind, id, path string
	pending, done  string // the fake's words
	began          time.Time
	wait           func(context.Context, ...webdelivery.WaitOption) error
}

// polls returns when the service was polled, counted from the start.
func (w waitable) polls(f *fixture.Fixture) []time.Duration {
	var all []time.Duration
	for _, r := range f.Srv.Requests() {
		if r.Method == http.MethodGet {
			all = append(all, r.Time.Sub(w.began))
		}
	}
	return all
}

// forTaskAndTransaction runs a test with a task and with a purge transaction that end after so long; 0 is at once.
func forTaskAndTransaction(t *testing.T, after time.Duration, test func(f *fixture.Fixture, w waitable)) {
	t.Helper()
	t.Run("task", func(t *testing.T) {
		t.Parallel()
		fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
			id := f.Srv.AddTask(testserver.TaskSpec{Duration: after})
			test(f, waitable{
				"task", id, "/tasks/" + id, "IN_PROGRESS", "COMPLETE", time.Now(),
				func(ctx context.Context, options ...webdelivery.WaitOption) error {
					task, err := f.Client.Tasks.Wait(ctx, id, options...)
					assert.Equal(f, err == nil, task != nil && task.Complete)
					return err
				},
			})
		})
	})
	t.Run("transaction", func(t *testing.T) {
		t.Parallel()
		lasts := after
		if lasts == 0 {
			lasts = -1 // the fake ends the transaction at once
		}
		fixture.InFakeTime(t, fixture.Setup{Server: testserver.Config{PurgeDuration: lasts}}, func(f *fixture.Fixture) {
			receipt, err := f.Client.Purge.Submit(f.Context(), fixture.PurgeOf(fixture.AnObject))
			require.NoError(f, err)
			id := strconv.FormatInt(receipt.TransactionID, 10)
			test(f, waitable{
				"transaction", id, "/transactions/" + id, "PENDING", "COMPLETE", time.Now(),
				func(ctx context.Context, options ...webdelivery.WaitOption) error {
					tx, err := f.Client.Purge.Wait(ctx, receipt.TransactionID, options...)
					assert.Equal(f, err == nil, tx != nil && !tx.Pending())
					return err
				},
			})
		})
	})
}

func TestWaitPollsAtGrowingIntervals(t *testing.T) {
	t.Parallel()
	forTaskAndTransaction(t, time.Minute, func(f *fixture.Fixture, w waitable) {
		require.NoError(f, w.wait(f.Context()))
		polls, uneven := w.polls(f), false
		require.Greater(f, len(polls), 12) // at the slowest, 7 polls in 12.5 s and then one every 6 s
		nominal := 500 * time.Millisecond
		for i, gap := range gaps(polls) {
			assert.InDelta(f, nominal, gap, float64(nominal)/5, "interval %d", i)
			uneven = uneven || gap != nominal
			nominal = min(nominal*3/2, 5*time.Second)
		}
		assert.True(f, uneven, "no jitter")
		assert.GreaterOrEqual(f, time.Since(w.began), time.Minute)
		assert.LessOrEqual(f, time.Since(w.began), time.Minute+6*time.Second)
	})
}

func gaps(times []time.Duration) []time.Duration {
	out := make([]time.Duration, 0, len(times))
	for i := 1; i < len(times); i++ {
		out = append(out, times[i]-times[i-1])
	}
	return out
}

// WaitProgress gets each poll, at the interval of WaitInterval, and a failed one with its error and what was read before it.
func TestWaitReportsEveryPoll(t *testing.T) {
	t.Parallel()
	forTaskAndTransaction(t, 4*time.Second, func(f *fixture.Fixture, w waitable) {
		f.AddFault(testserver.Fault{Path: w.path, Skip: 2, Count: 1, Status: 302}) // is not retried
		var seen []string
		report := webdelivery.WaitProgress(func(p webdelivery.Progress) {
			assert.Equal(f, w.id, p.ID)
			seen = append(seen, fmt.Sprint(p.Status, " ", p.Percent, " ", p.Complete, " ", p.Err != nil))
		})
		require.NoError(f, w.wait(f.Context(), webdelivery.WaitInterval(time.Second), report))
		assert.Equal(f, []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second}, w.polls(f))
		assert.Equal(f, []string{
			w.pending + " 0 false false", w.pending + " 25 false false", w.pending + " 25 false true", w.pending + " 75 false false",
			w.done + " 100 true false",
		}, seen)
	})
}

func TestWaitThatEndsEarlyNamesWhatIsPending(t *testing.T) {
	t.Parallel()
	const patience = 2500 * time.Millisecond
	for _, want := range []error{context.DeadlineExceeded, context.Canceled} {
		for hung, polls := range map[bool]int{false: 3, true: 2} {
			t.Run(fmt.Sprintf("%v, hung %t", want, hung), func(t *testing.T) {
				t.Parallel()
				forTaskAndTransaction(t, 1000*time.Hour, func(f *fixture.Fixture, w waitable) {
					if hung { // the end comes in the middle of the second poll
						f.AddFault(testserver.Fault{Path: w.path, Skip: 1, Count: 1, Delay: time.Minute})
					}
					ctx, cancel := context.WithCancel(f.Context())
					if time.AfterFunc(patience, cancel); errors.Is(want, context.DeadlineExceeded) {
						ctx, cancel = context.WithTimeout(f.Context(), patience)
					}
					defer cancel()
					err := w.wait(ctx, webdelivery.WaitInterval(time.Second))
					assert.Equal(f, patience, time.Since(w.began))
					require.ErrorIs(f, err, want)
					assert.ErrorContains(f, err, w.kind+" "+w.id+", still pending (status "+w.pending+", 0 %, ")
					assert.Equal(f, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
					assert.Len(f, w.polls(f), polls)
				})
			})
		}
	}
}

func TestWaitRefusesNonsense(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		for field, option := range map[string]webdelivery.WaitOption{
			"WaitInterval": webdelivery.WaitInterval(0), "WaitMaxOutage": webdelivery.WaitMaxOutage(-1),
			"WaitProgress": webdelivery.WaitProgress(nil), "options[0]": nil,
		} {
			_, err := f.Client.Tasks.Wait(f.Context(), "t", option)
			refusedAs(f.T, field, err, "Tasks.Wait")
			_, err = f.Client.Tasks.WaitAll(f.Context(), []string{"t"}, option)
			refusedAs(f.T, field, err, "Tasks.WaitAll")
			_, err = f.Client.Purge.Wait(f.Context(), 7, option)
			refusedAs(f.T, field, err, "Purge.Wait")
		}
		_, err := f.Client.Tasks.WaitAll(f.Context(), []string{"t", "", ".."})
		assertRefusedHere(f, err, "ids[1]", "ids[2]")
	})
}

func TestWaitEndsWithARefusal(t *testing.T) {
	t.Parallel()
	forTaskAndTransaction(t, time.Hour, func(f *fixture.Fixture, w waitable) {
		f.AddFault(testserver.Fault{Path: w.path, Skip: 2, Status: http.StatusNotFound})
		err := w.wait(f.Context(), webdelivery.WaitInterval(time.Second))
		assert.ErrorIs(f, err, webdelivery.ErrNotFound)
		assert.ErrorContains(f, err, w.kind+" "+w.id)
		assert.Equal(f, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err), "a poll that fails does not undo what the task does")
		assert.Len(f, w.polls(f), 3)
		var e *webdelivery.Error
		require.ErrorAs(f, err, &e)
		assert.Equal(f, "/acme/v1"+w.path, e.Path)
	})
}

// error_info ends a task, also without complete. The error has its texts, without the client's secrets.
func TestTaskThatEndedBadlyIsATaskError(t *testing.T) {
	t.Parallel()
	for _, incomplete := range []bool{false, true} {
		fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
			f.Srv.AddTask(testserver.TaskSpec{
				ID: "t-17", Operation: "deploy", Duration: time.Second,
				Error: &testserver.TaskError{
					Message: "it broke", Type: "BROKEN", Details: []string{fixture.Password, "second", fixture.Password}, Incomplete: incomplete,
				},
			})
			var last webdelivery.Progress
			task, err := f.Client.Tasks.Wait(f.Context(), "t-17", webdelivery.WaitInterval(time.Second),
				webdelivery.WaitProgress(func(p webdelivery.Progress) { last = p }))
			assert.Nil(f, task)
			require.EqualError(f, err, "webdelivery: task t-17 failed: BROKEN: it broke; [redacted]; second; [redacted]")
			var failed *webdelivery.TaskError
			require.ErrorAs(f, err, &failed)
			assert.Equal(f, "t-17", failed.Task.ID)
			assert.Equal(f, "FAILED", failed.Task.Status)
			assert.Equal(f, !incomplete, failed.Task.Complete)
			assert.Equal(f, &webdelivery.ErrorInfo{
				Message: "it broke", Type: "BROKEN", Details: []webdelivery.ErrorDetail{{Message: "[redacted]"}, {Message: "second"}, {Message: "[redacted]"}},
			}, failed.Task.ErrorInfo)
			assert.True(f, last.Complete)
			assert.Equal(f, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
			assert.NotErrorIs(f, err, webdelivery.ErrServer)
		})
	}
}

// A wait ends by itself when nothing could be read for 10 minutes, or for what WaitMaxOutage says. It then has the error
// of the last poll, and no deadline.
func TestAnOutageEndsAWait(t *testing.T) {
	t.Parallel()
	down := testserver.Fault{Method: http.MethodGet, Status: 500}
	for name, tt := range map[string]struct {
		options []webdelivery.WaitOption
		ends    time.Duration // 0: with the context, after half an hour
	}{
		"by default": {nil, 10 * time.Minute},
		"sooner":     {[]webdelivery.WaitOption{webdelivery.WaitMaxOutage(time.Minute)}, time.Minute},
		"never":      {[]webdelivery.WaitOption{webdelivery.WaitMaxOutage(0)}, 0},
	} {
		forTaskAndTransaction(t, 24*time.Hour, func(f *fixture.Fixture, w waitable) {
			ctx, cancel := context.WithTimeout(f.Context(), 30*time.Minute)
			defer cancel()
			f.AddFault(down)
			began := time.Now()
			err := w.wait(ctx, tt.options...)
			require.ErrorIs(f, err, webdelivery.ErrServer, name)
			assert.Equal(f, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
			if tt.ends == 0 {
				assert.Equal(f, 30*time.Minute, time.Since(began), name)
				require.ErrorIs(f, err, context.DeadlineExceeded)
				return
			}
			assert.GreaterOrEqual(f, time.Since(began), tt.ends, name)
			assert.LessOrEqual(f, time.Since(began), tt.ends+time.Minute, name) // a poll makes up to 4 attempts
			assert.NotErrorIs(f, err, context.DeadlineExceeded)
			assert.ErrorContains(f, err, "nothing could be read for")
		})
	}
}

// A wait honors Retry-After, but not beyond the outage: then it polls once more, and its error says what the service
// asked for.
func TestAWaitHonorsRetryAfter(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		asked   string // Retry-After; from 1 min on, a call does not wait for it by itself
		options []webdelivery.WaitOption
		until   time.Duration // end of the fault; 0: never
		polls   []time.Duration
		took    time.Duration
		says    string
	}{
		"kept":             {"120", nil, 3 * time.Minute, []time.Duration{0, 2 * time.Minute, 4 * time.Minute}, 4 * time.Minute, ""},
		"up to the outage": {"240", nil, 0, []time.Duration{0, 4 * time.Minute, 8 * time.Minute, 10 * time.Minute}, 10 * time.Minute, "nothing could be read for 10m0s, and the service asks to wait for 4m0s"},
		"a shorter outage": {"3600", []webdelivery.WaitOption{webdelivery.WaitMaxOutage(time.Minute)}, 0, []time.Duration{0, time.Minute}, time.Minute, "nothing could be read for 1m0s"},
		"no outage":        {"3600", []webdelivery.WaitOption{webdelivery.WaitMaxOutage(0)}, 90 * time.Minute, []time.Duration{0, time.Hour, 2 * time.Hour}, 2 * time.Hour, ""},
		"a deadline":       {"3600", []webdelivery.WaitOption{webdelivery.WaitMaxOutage(0)}, 0, []time.Duration{0, time.Hour, 2 * time.Hour}, 150 * time.Minute, context.DeadlineExceeded.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forTaskAndTransaction(t, time.Second, func(f *fixture.Fixture, w waitable) {
				remove := f.Srv.Fail(testserver.Fault{Method: http.MethodGet, Status: 503, Header: http.Header{"Retry-After": {tt.asked}}})
				if tt.until > 0 {
					time.AfterFunc(tt.until, remove)
				}
				ctx, cancel := context.WithTimeout(f.Context(), 150*time.Minute)
				defer cancel()
				err := w.wait(ctx, tt.options...)
				assert.Equal(f, tt.took, time.Since(w.began))
				assert.Equal(f, tt.polls, w.polls(f))
				if tt.says == "" {
					require.NoError(f, err)
					return
				}
				require.ErrorIs(f, err, webdelivery.ErrServer)
				assert.ErrorContains(f, err, tt.says)
			})
		})
	}
}

// Every kind of wait survives an outage of nine minutes in its middle, and reports it.
func TestAnOutageInTheMiddleOfAWait(t *testing.T) {
	t.Parallel()
	faults := map[string]testserver.Fault{
		"503":                {Status: 503},
		"a maintenance page": {Status: 200, Header: http.Header{"Content-Type": {"text/html"}}, Body: "<html>"},
		"no answer":          {Delay: time.Hour},
		"connections break":  {Cut: testserver.CutBeforeRead},
	}
	during := func(f *fixture.Fixture, fault testserver.Fault) {
		time.AfterFunc(20*time.Second, func() { time.AfterFunc(9*time.Minute, f.Srv.Fail(fault)) })
	}
	for name, fault := range faults {
		forTaskAndTransaction(t, time.Minute, func(f *fixture.Fixture, w waitable) {
			failed := 0
			during(f, fault)
			require.NoError(f, w.wait(f.Context(), webdelivery.WaitProgress(func(p webdelivery.Progress) {
				if p.Err != nil {
					failed++
				}
			})), name)
			assert.GreaterOrEqual(f, time.Since(w.began), 9*time.Minute, name)
			assert.GreaterOrEqual(f, failed, 4, name)
		})
	}
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		during(f, faults["503"])
		began := time.Now()
		_, err := f.Client.Tasks.WaitAll(f.Context(), addTasks(f, 50))
		require.NoError(f, err)
		assert.GreaterOrEqual(f, time.Since(began), 9*time.Minute)
	})
	fixture.WithList(t, fixture.Setup{Server: testserver.Config{DeployDuration: time.Minute}}, []string{"192.0.2.0/25"}, func(f *fixture.Fixture) {
		plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"192.0.2.0/24"}, anything)
		require.NoError(f, err)
		during(f, faults["503"])
		began := time.Now()
		_, err = f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{Wait: true})
		require.NoError(f, err)
		assert.GreaterOrEqual(f, time.Since(began), 9*time.Minute)
		assert.Equal(f, []string{"192.0.2.0/24"}, f.Srv.Entries(fixture.ListID))
	})
}
