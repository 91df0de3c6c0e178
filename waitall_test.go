package webdelivery_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// addTasks adds so many tasks, which end one after the other, a second apart.
func (f *fixture) addTasks(n int) (ids []string) {
	for i := range n {
		id := fmt.Sprintf("t%03d", i)
		f.srv.AddTask(testserver.TaskSpec{ID: id, Duration: time.Duration(i+1) * time.Second})
		ids = append(ids, id)
	}
	return ids
}

func idsOfTasks(tasks []*webdelivery.Task) (ids []string) {
	for _, task := range tasks {
		if task == nil {
			ids = append(ids, "")
		} else {
			ids = append(ids, task.ID)
		}
	}
	return ids
}

// WaitAll returns the tasks in the order of the ids. For many tasks, it sends fewer requests than one Wait for each.
func TestWaitAllTakesFewRequests(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3, 60} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			requests := map[bool]int{}
			for _, together := range []bool{true, false} {
				inFakeTime(t, setup{}, func(f *fixture) {
					ids := f.addTasks(n)
					slices.Reverse(ids)
					began := time.Now()
					if together {
						tasks, err := f.client.Tasks.WaitAll(f.Context(), ids)
						require.NoError(f, err)
						assert.Equal(f, ids, idsOfTasks(tasks))
						for _, task := range tasks {
							assert.True(f, task.Complete)
						}
						assert.LessOrEqual(f, time.Since(began), time.Duration(n)*time.Second+6*time.Second, "at most one round after the last task")
					} else {
						var each sync.WaitGroup
						for _, id := range ids {
							each.Go(func() {
								_, err := f.client.Tasks.Wait(f.Context(), id)
								assert.NoError(f, err)
							})
						}
						each.Wait()
					}
					requests[together] = len(f.srv.Requests())
				})
			}
			t.Logf("%d tasks: %d requests together, %d one by one", n, requests[true], requests[false])
			if n > 3 {
				assert.Less(t, requests[true], requests[false]/2)
			}
		})
	}
}

// WaitAll polls an id that comes twice once. An id in another letter case may be another task, so WaitAll reads it by
// itself.
func TestWaitAllReadsAnIDOnce(t *testing.T) {
	t.Parallel()
	inFakeTime(t, setup{}, func(f *fixture) {
		f.srv.AddTask(testserver.TaskSpec{ID: "a", Duration: 2 * time.Second})
		f.srv.AddTask(testserver.TaskSpec{ID: "A", Duration: 4 * time.Second})
		tasks, err := f.client.Tasks.WaitAll(f.Context(), []string{"a", "A", "a"}, webdelivery.PollEvery(time.Second))
		require.NoError(f, err)
		assert.Equal(f, []string{"a", "A", "a"}, idsOfTasks(tasks))
		assert.Equal(f, 3, f.srv.Count("", "/tasks/a"))
		assert.Equal(f, 5, f.srv.Count("", "/tasks/A"))
	})
	// A service whose ids have another letter case than the requested ones.
	inFakeTime(t, setup{}, func(f *fixture) {
		var ids []string
		for _, id := range []string{"a", "b", "c", "d"} {
			f.srv.AddTask(testserver.TaskSpec{ID: strings.ToUpper(id), Duration: 5 * time.Second})
			f.fail(testserver.Fault{Path: "/tasks/" + id, Handler: func(w http.ResponseWriter, _ *http.Request) {
				task, err := f.client.Tasks.Get(f.Context(), strings.ToUpper(id))
				assert.NoError(f, err)
				w.Header().Set("Content-Type", "application/json")
				_, _ = fmt.Fprintf(w, `{"id":%q,"complete":%t,"last_updated":%q}`, task.ID, task.Complete, task.LastUpdated.Format(time.RFC3339Nano))
			}})
			ids = append(ids, id)
		}
		f.warm()
		tasks, err := f.client.Tasks.WaitAll(f.Context(), ids, webdelivery.PollEvery(time.Second))
		require.NoError(f, err)
		assert.Equal(f, []string{"A", "B", "C", "D"}, idsOfTasks(tasks))
		assert.LessOrEqual(f, f.srv.Count("", "/tasks/a"), 4, "the first poll, its turn, and when the list shows its end")
		assert.Equal(f, 1+5, f.srv.Count("", "/tasks"))
	})
}

// If a task failed or cannot be read, WaitAll still waits for the others.
func TestWaitAllJoinsWhatFailed(t *testing.T) {
	t.Parallel()
	inFakeTime(t, setup{}, func(f *fixture) {
		failure := &testserver.TaskError{Message: "no route", Incomplete: true}
		f.srv.AddTask(testserver.TaskSpec{ID: "fails", Duration: time.Second, Error: failure})
		f.srv.AddTask(testserver.TaskSpec{ID: "fails-too", Duration: 3 * time.Second, Error: failure})
		f.srv.AddTask(testserver.TaskSpec{ID: "slow", Duration: time.Minute})
		f.srv.AddTask(testserver.TaskSpec{ID: "mine", Duration: time.Minute})
		f.fail(testserver.Fault{Path: "/tasks/mine", Skip: 1, Status: 403})
		f.fail(testserver.Fault{Path: "/tasks", Status: 404})
		tasks, err := f.client.Tasks.WaitAll(f.Context(), []string{"fails", "gone", "slow", "mine", "fails-too"}, webdelivery.PollEvery(time.Second))
		assert.Equal(f, []string{"fails", "", "slow", "mine", "fails-too"}, idsOfTasks(tasks))
		assert.True(f, tasks[2].Complete)
		assert.Equal(f, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
		require.ErrorIs(f, err, webdelivery.ErrNotFound)
		require.ErrorIs(f, err, webdelivery.ErrForbidden)
		var failed *webdelivery.TaskError
		require.ErrorAs(f, err, &failed)
		assert.Same(f, tasks[0], failed.Task)
		for _, text := range []string{"task fails failed", "waiting for task gone", "waiting for task mine", "task fails-too failed"} {
			assert.ErrorContains(f, err, text)
		}
		assert.NotContains(f, err.Error(), "pending")
		assert.Equal(f, 1, f.srv.Count("", "/tasks/gone"))
	})
}

// If the context ends, the error contains the number of pending tasks and the errors of the last polls.
func TestWaitAllThatEndsEarly(t *testing.T) {
	t.Parallel()
	stop := errors.New("the deploy was stopped")
	for name, tt := range map[string]struct {
		outage bool
		wait   func(f *fixture, ids []string) ([]*webdelivery.Task, error)
		is     error
	}{
		"WaitTimeout": {false, func(f *fixture, ids []string) ([]*webdelivery.Task, error) {
			return f.client.Tasks.WaitAll(f.Context(), ids, webdelivery.WaitTimeout(7500*time.Millisecond), webdelivery.PollEvery(time.Second))
		}, context.DeadlineExceeded},
		"canceled with a cause, in an outage": {true, func(f *fixture, ids []string) ([]*webdelivery.Task, error) {
			ctx, cancel := context.WithCancelCause(f.Context())
			time.AfterFunc(7500*time.Millisecond, func() { cancel(stop) })
			return f.client.Tasks.WaitAll(ctx, ids, webdelivery.PollEvery(time.Second))
		}, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup{options: []webdelivery.Option{webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 1})}}
			inFakeTime(t, s, func(f *fixture) {
				ids := f.addTasks(20)
				if tt.outage {
					time.AfterFunc(2500*time.Millisecond, func() { f.fail(testserver.Fault{Status: 503}) })
				}
				began := time.Now()
				tasks, err := tt.wait(f, ids)
				assert.Equal(f, 7500*time.Millisecond, time.Since(began))
				require.ErrorIs(f, err, tt.is)
				assert.Equal(f, ids, idsOfTasks(tasks), "the tasks that were read")
				assert.Equal(f, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
				if tt.outage {
					require.ErrorIs(f, err, webdelivery.ErrServer)
					assert.ErrorContains(f, err, "waiting for 20 tasks, still pending (18: t002, t003, t004, t005, t006 and 13 more; 8 polls)")
					assert.ErrorContains(f, err, "the last 5 polls failed: GET")
				} else {
					assert.ErrorContains(f, err, "waiting for 20 tasks, still pending (13: t007, t008, t009, t010, t011 and 8 more; 8 polls)")
					assert.NotContains(f, err.Error(), "failed")
				}
			})
		})
	}
}

// OnProgress gets each task of a round, in the order of the ids, in the goroutine that waits.
func TestWaitAllReportsEachTask(t *testing.T) {
	t.Parallel()
	inFakeTime(t, setup{}, func(f *fixture) {
		ids := f.addTasks(3)
		f.fail(testserver.Fault{Path: "/tasks/t001", Skip: 0, Count: 4, Status: 500})
		var seen []string
		_, err := f.client.Tasks.WaitAll(f.Context(), ids, webdelivery.PollEvery(5*time.Second), webdelivery.OnProgress(func(p webdelivery.Progress) {
			assert.Equal(f, "task", p.Kind)
			assert.Equal(f, p.Err != nil, errors.Is(p.Err, webdelivery.ErrServer))
			seen = append(seen, fmt.Sprintf("%d %s %s %t %t", p.Polls, p.ID, p.Status, p.Complete, p.Err != nil))
		}))
		require.NoError(f, err)
		assert.Equal(f, []string{
			"1 t000 IN_PROGRESS false false", "1 t001  false true", "1 t002 IN_PROGRESS false false",
			"2 t000 COMPLETE true false", "2 t001 COMPLETE true false", "2 t002 COMPLETE true false",
		}, seen)
	})
}

// A task that can never be read delays no other task. While the service is down, WaitAll does not send requests for
// each task.
func TestWaitAllWithATaskThatCannotBeRead(t *testing.T) {
	t.Parallel()
	inFakeTime(t, setup{}, func(f *fixture) {
		ids := f.addTasks(30)
		f.fail(testserver.Fault{Path: "/tasks/t000", Status: 500})
		tasks, err := f.client.Tasks.WaitAll(f.Context(), ids, webdelivery.WaitTimeout(2*time.Minute))
		require.ErrorIs(f, err, context.DeadlineExceeded)
		assert.ErrorContains(f, err, "still pending (1: t000; ")
		assert.Nil(f, tasks[0])
		for _, task := range tasks[1:] {
			assert.True(f, task.Complete)
		}
	})
	inFakeTime(t, setup{}, func(f *fixture) {
		ids := f.addTasks(500)
		f.fail(testserver.Fault{Status: 503})
		_, err := f.client.Tasks.WaitAll(f.Context(), ids, webdelivery.PollEvery(time.Minute), webdelivery.WaitTimeout(10*time.Minute))
		require.ErrorIs(f, err, webdelivery.ErrServer)
		assert.LessOrEqual(f, len(f.srv.Requests()), 10*4*4+4, "10 rounds of 4 tasks, 4 attempts each")
	})
}

// Every kind of wait survives an outage of nine minutes in its middle, and reports it.
func TestAnOutageInTheMiddleOfAWait(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]testserver.Fault{
		"503":                {Status: 503},
		"a maintenance page": {Status: 200, Header: http.Header{"Content-Type": {"text/html"}}, Body: "<html>"},
		"no answer":          {Delay: time.Hour},
		"connections break":  {Cut: testserver.CutBeforeRead},
	} {
		during := func(f *fixture) (report webdelivery.WaitOption, check func()) {
			time.AfterFunc(20*time.Second, func() { time.AfterFunc(9*time.Minute, f.srv.Fail(fault)) })
			failed, began := 0, time.Now()
			report = webdelivery.OnProgress(func(p webdelivery.Progress) {
				if p.Err != nil {
					failed++
				}
			})
			return report, func() {
				assert.GreaterOrEqual(f, time.Since(began), 9*time.Minute)
				assert.GreaterOrEqual(f, failed, 4)
			}
		}
		forWaits := map[string]func(f *fixture, report webdelivery.WaitOption) error{
			"Tasks.Wait": func(f *fixture, report webdelivery.WaitOption) error {
				id := f.srv.AddTask(testserver.TaskSpec{Duration: time.Minute})
				_, err := f.client.Tasks.Wait(f.Context(), id, report)
				return err
			},
			"Tasks.WaitAll": func(f *fixture, report webdelivery.WaitOption) error {
				_, err := f.client.Tasks.WaitAll(f.Context(), f.addTasks(50), report)
				return err
			},
			"Purge.SubmitAndWait": func(f *fixture, report webdelivery.WaitOption) error {
				_, err := f.client.Purge.SubmitAndWait(f.Context(), purgeOf(anObject), report)
				return err
			},
		}
		for of, wait := range forWaits {
			t.Run(name+"/"+of, func(t *testing.T) {
				t.Parallel()
				inFakeTime(t, setup{server: testserver.Config{PurgeDuration: time.Minute}}, func(f *fixture) {
					report, check := during(f)
					require.NoError(f, wait(f, report))
					check()
				})
			})
		}
		t.Run(name+"/NetworkLists.Apply", func(t *testing.T) {
			t.Parallel()
			withList(t, setup{server: testserver.Config{DeployDuration: time.Minute}}, []string{"192.0.2.0/25"}, func(f *fixture) {
				plan, err := f.client.NetworkLists.Plan(f.Context(), listID, []string{"192.0.2.0/24"}, anything)
				require.NoError(f, err)
				began := time.Now()
				_, _ = during(f)
				_, err = f.client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{Wait: true})
				require.NoError(f, err)
				assert.GreaterOrEqual(f, time.Since(began), 9*time.Minute)
				assert.Equal(f, []string{"192.0.2.0/24"}, f.srv.Entries(listID))
			})
		})
	}
}
