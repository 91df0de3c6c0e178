package applying_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/applying"
	"github.com/webdelivery/webdelivery-go/internal/ipset"
	"github.com/webdelivery/webdelivery-go/internal/listorder"
)

var (
	errRefused  = errors.New("403")
	errLost     = errors.New("no response")
	errUnread   = errors.New("cannot be read")
	errTask     = errors.New("the task failed")
	errUnproven = errors.New("unproven")
	errStale    = errors.New("stale")
)

// list is a list in memory. Each of its calls takes a second.
type list struct {
	mu      sync.Mutex
	entries map[string]string // texts by id; at first they are equal
	log     []string
	running int
	most    int // largest number of concurrent removals

	adds    []response       // of Add, in order; further calls succeed with a task
	removes map[string]error // errors of Remove by id
	reads   []error          // errors of Read, in order
	tasks   map[string]error // errors of Await by task
	strange string           // a text that another client adds before the last Read
	noTask  bool             // removals return no task
}

// response is the response to an addition, and its effect.
type response struct {
	added applying.Added
	err   error
	taken bool // the entries get into the list
}

func newList(texts ...string) *list {
	l := &list{entries: map[string]string{}}
	for _, text := range texts {
		l.entries[text] = text
	}
	return l
}

// call records a call and lets it take its second.
func (l *list) call(format string, args ...any) {
	l.mu.Lock()
	l.log = append(l.log, fmt.Sprintf(format, args...))
	l.mu.Unlock()
	time.Sleep(time.Second)
}

func (l *list) meanings() ipset.Meanings {
	has := ipset.Meanings{}
	for _, text := range l.entries {
		has[ipset.Read(text).Meaning] = true
	}
	return has
}

func (l *list) Read(context.Context) (ipset.Meanings, int, error) {
	l.call("read")
	if l.strange != "" {
		l.entries["strange"] = l.strange
	}
	if len(l.reads) > 0 {
		err := l.reads[0]
		if l.reads = l.reads[1:]; err != nil {
			return nil, 0, err
		}
	}
	return l.meanings(), len(l.entries), nil
}

func (l *list) Add(_ context.Context, texts []string) (applying.Added, error) {
	l.call("add %v", texts)
	r := response{added: applying.Added{Task: fmt.Sprint("t", texts[0])}, taken: true}
	if len(l.adds) > 0 {
		r, l.adds = l.adds[0], l.adds[1:]
	}
	if r.taken {
		for _, text := range texts {
			l.entries[text] = text
		}
	}
	r.added.Unproven = func(reason string) error { return fmt.Errorf("%w: %s", errUnproven, reason) }
	return r.added, r.err
}

func (l *list) Remove(_ context.Context, id string) (string, error) {
	l.mu.Lock()
	l.running++
	l.most = max(l.most, l.running)
	l.mu.Unlock()
	l.call("remove %s", id)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running--
	if err := l.removes[id]; err != nil {
		return "", err
	}
	delete(l.entries, id)
	if l.noTask {
		return "", nil
	}
	return "t" + id, nil
}

func (l *list) Await(_ context.Context, tasks []string, waited time.Duration) error {
	slices.Sort(tasks)
	l.call("await %v after %v", tasks, waited)
	for _, task := range tasks {
		if err := l.tasks[task]; err != nil {
			return err
		}
	}
	return nil
}

// changes returns changes of a list in which the id of each removed entry is its text.
func (l *list) changes(add, remove []string, steps ...listorder.Step) (*applying.Changes, *[]string) {
	var reports []string
	c := &applying.Changes{
		List: l, Before: l.meanings(), Size: len(l.entries), Most: 100, Add: add, Steps: steps, AtOnce: 2,
		NotApplied: func(err error) bool { return errors.Is(err, errRefused) },
		Guard: func(work func() error, done func(error, bool)) {
			err := work()
			done(err, errors.Is(err, errRefused))
		},
		Stale: func(reason string) error { return fmt.Errorf("%w: %s", errStale, reason) },
		Report: func(p applying.Progress) {
			reports = append(reports, fmt.Sprint(p.Status, " ", p.Percent, " ", p.Calls, " ", p.Complete))
		},
	}
	for _, text := range remove {
		c.Remove = append(c.Remove, applying.Entry{ID: text, Text: text})
	}
	return c, &reports
}

func adds(from, to, size int) listorder.Step {
	return listorder.Step{Adds: true, From: from, To: to, Size: size}
}

func removes(from, to int) listorder.Step { return listorder.Step{From: from, To: to, Relies: true} }

// inFakeTime runs a test in a synctest bubble, where sleeping takes no real time.
func inFakeTime(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// Additions come first, then concurrent removals. Each one is reported, and the list is read at the end.
func TestChangesThatGoWell(t *testing.T) {
	t.Parallel()
	inFakeTime(t, func(t *testing.T) {
		l := newList("192.0.2.1", "192.0.2.2", "192.0.2.3")
		c, reports := l.changes([]string{"192.0.2.7"}, []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}, adds(0, 1, 4), removes(0, 3))
		began := time.Now()
		result, changed, err := c.Do(t.Context())
		require.NoError(t, err)
		assert.True(t, changed)
		assert.Equal(t, 4*time.Second, time.Since(began), "two removals at once")
		assert.Equal(t, 2, l.most)
		slices.Sort(result.Tasks)
		assert.Equal(t, &applying.Result{
			Added: 1, Removed: 3, Size: 1, Tasks: []string{"t192.0.2.1", "t192.0.2.2", "t192.0.2.3", "t192.0.2.7"},
		}, result)
		assert.Equal(t, []string{"adding 25 1 false", "removing 50 2 false", "removing 75 3 false", "removing 100 4 false", "done 100 5 true"}, *reports)
		assert.Equal(t, "add [192.0.2.7]", l.log[0])
		assert.Equal(t, "read", l.log[len(l.log)-1])
		assert.Len(t, l.log, 5, "without Wait, for no task")
	})
}

// Without changes, the list is only read.
func TestNoChanges(t *testing.T) {
	t.Parallel()
	inFakeTime(t, func(t *testing.T) {
		l := newList("192.0.2.1")
		c, reports := l.changes(nil, nil)
		result, changed, err := c.Do(t.Context())
		require.NoError(t, err)
		assert.False(t, changed)
		assert.Equal(t, &applying.Result{Size: 1}, result)
		assert.Equal(t, []string{"done 100 1 true"}, *reports)
	})
}

// With Wait, removals wait for the additions that they rely on, additions wait for the removals that make room, and the
// end waits for all. Each wait gets the duration of the earlier ones.
func TestWaits(t *testing.T) {
	t.Parallel()
	all := []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"}
	add := []string{"192.0.2.7", "192.0.2.8", "192.0.2.9"}
	spare := listorder.Step{From: 0, To: 1, Size: 4}
	for _, tt := range []struct {
		name  string
		most  int
		steps []listorder.Step
		want  []string
	}{
		{"relied on", 100, []listorder.Step{adds(0, 1, 5), removes(0, 1), adds(1, 3, 6), removes(1, 2)}, []string{
			"add [192.0.2.7]", "await [t192.0.2.7] after 0s", "remove 192.0.2.1", "add [192.0.2.8 192.0.2.9]", "await [t192.0.2.8] after 1s",
			"remove 192.0.2.2", "await [] after 2s", "await [t192.0.2.1 t192.0.2.2] after 3s", "read",
		}},
		{"room, just enough", 5, []listorder.Step{adds(0, 1, 5), spare, adds(1, 2, 5)}, []string{
			"add [192.0.2.7]", "remove 192.0.2.1", "await [t192.0.2.1] after 0s", "add [192.0.2.8]", "await [t192.0.2.7 t192.0.2.8] after 1s",
			"await [] after 2s", "read",
		}},
		{"room for all", 6, []listorder.Step{adds(0, 1, 5), spare, adds(1, 2, 5)}, []string{
			"add [192.0.2.7]", "remove 192.0.2.1", "add [192.0.2.8]", "await [t192.0.2.7 t192.0.2.8] after 0s", "await [t192.0.2.1] after 1s", "read",
		}},
		{"room that was made is there", 5, []listorder.Step{
			adds(0, 1, 5), {From: 0, To: 2, Size: 3}, adds(1, 2, 4), adds(2, 3, 5),
		}, []string{
			"add [192.0.2.7]", "remove 192.0.2.1", "remove 192.0.2.2", "await [t192.0.2.1 t192.0.2.2] after 0s", "add [192.0.2.8]", "add [192.0.2.9]",
			"await [t192.0.2.7 t192.0.2.8 t192.0.2.9] after 1s", "await [] after 2s", "read",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, func(t *testing.T) {
				l := newList(all...)
				last := tt.steps[len(tt.steps)-1]
				removed, added := 1, last.To
				for _, step := range tt.steps {
					if step.Adds {
						added = step.To
					} else {
						removed = step.To
					}
				}
				c, _ := l.changes(add[:added], all[:removed], tt.steps...)
				c.Wait, c.Most, c.AtOnce = true, tt.most, 1
				_, _, err := c.Do(t.Context())
				require.NoError(t, err)
				assert.Equal(t, tt.want, l.log)
			})
		})
	}
}

// A failed task ends the changes: before anything that relies on it, and at the end.
func TestATaskThatFailed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		task  string
		most  int
		steps []listorder.Step
		calls int
	}{
		{"relied on", "t192.0.2.7", 100, []listorder.Step{adds(0, 1, 2), removes(0, 1)}, 2},
		{"makes room", "t192.0.2.1", 1, []listorder.Step{{From: 0, To: 1}, adds(0, 1, 1)}, 2},
		{"of an addition at the end", "t192.0.2.7", 100, []listorder.Step{adds(0, 1, 2)}, 2},
		{"of a removal at the end", "t192.0.2.1", 100, []listorder.Step{{From: 0, To: 1}}, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, func(t *testing.T) {
				l := newList("192.0.2.1")
				l.tasks = map[string]error{tt.task: errTask}
				c, _ := l.changes([]string{"192.0.2.7"}, []string{"192.0.2.1"}, tt.steps...)
				c.Wait, c.Most = true, tt.most
				_, changed, err := c.Do(t.Context())
				require.ErrorIs(t, err, errTask)
				assert.True(t, changed)
				assert.Len(t, l.log, tt.calls)
			})
		})
	}
}

// If the list is not as expected at the end, the error says how much it differs, and names possible causes.
func TestAListThatIsNotWhatItShouldBe(t *testing.T) {
	t.Parallel()
	const (
		others = "another client changed the list"
		late   = "a change whose response was lost may have arrived late"
		own    = "a change of this Apply is not in effect yet"
	)
	task := applying.Added{Task: "t"}
	for _, tt := range []struct {
		name    string
		strange string
		adds    []response
		steps   []listorder.Step
		want    string
	}{
		{"added by others", "203.0.113.1", nil, []listorder.Step{adds(0, 1, 3), removes(0, 1)}, "0 entries are missing and 1 are unexpected; " + others},
		{"an addition that is not there", "", []response{{added: task}}, []listorder.Step{adds(0, 1, 3), removes(0, 1)}, "1 entries are missing and 0 are unexpected; " + own},
		{"a removed entry that is there", "192.0.2.1", nil, []listorder.Step{adds(0, 1, 3), removes(0, 1)}, "0 entries are missing and 1 are unexpected; " + own},
		{"both", "203.0.113.1", []response{{added: task}}, []listorder.Step{adds(0, 1, 3), removes(0, 1)}, "1 entries are missing and 1 are unexpected; " + others},
		{"a lost response", "192.0.2.1", []response{{err: errLost, taken: true}}, []listorder.Step{adds(0, 1, 3), removes(0, 1)}, "0 entries are missing and 1 are unexpected; " + late},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, func(t *testing.T) {
				l := newList("192.0.2.1", "192.0.2.2")
				l.strange, l.adds = tt.strange, tt.adds
				c, reports := l.changes([]string{"192.0.2.7"}, []string{"192.0.2.1"}, tt.steps...)
				result, _, err := c.Do(t.Context())
				require.ErrorIs(t, err, errStale)
				require.ErrorContains(t, err, "after the changes "+tt.want)
				assert.Equal(t, len(l.entries), result.Size)
				assert.NotContains(t, fmt.Sprint(*reports), "done")
			})
		})
	}
	inFakeTime(t, func(t *testing.T) { // another client removed an entry
		l := newList("192.0.2.1")
		c, _ := l.changes(nil, nil)
		delete(l.entries, "192.0.2.1")
		_, changed, err := c.Do(t.Context())
		require.ErrorContains(t, err, "1 entries are missing and 0 are unexpected; "+others)
		assert.False(t, changed)
	})
}

// Entries are compared by meaning.
func TestEntriesAreWhatTheyMean(t *testing.T) {
	t.Parallel()
	inFakeTime(t, func(t *testing.T) {
		l := newList("192.0.2.1", "192.0.2.2")
		c, _ := l.changes([]string{"192.0.2.7/32"}, nil, adds(0, 1, 2), removes(0, 1))
		c.Remove = []applying.Entry{{ID: "192.0.2.1", Text: "192.0.2.1/32"}}
		l.adds = []response{{added: applying.Added{Shown: []string{"192.0.2.7"}}, taken: true}}
		result, _, err := c.Do(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 1, result.Added)
	})
}
