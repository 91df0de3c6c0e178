package applying_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/applying"
	"github.com/webdelivery/webdelivery-go/internal/listorder"
)

// The result of an addition for each sequence of responses. The list is read only when necessary.
func TestAnAddition(t *testing.T) {
	t.Parallel()
	const first, second = "192.0.2.7", "192.0.2.8"
	both := "add [" + first + " " + second + "]"
	partly := func(l *list) { l.entries[first] = first } // another client has added one of them
	task := applying.Added{Task: "t"}
	for _, tt := range []struct {
		name    string
		wait    bool
		adds    []response
		reads   []error
		list    func(*list)
		calls   []string // up to the removal or the error
		err     error
		text    string
		added   int
		changed bool
	}{
		{name: "a task", adds: []response{{added: task, taken: true}}, calls: []string{both}, added: 2, changed: true},
		{name: "a task that has failed", adds: []response{{added: applying.Added{Task: "t", Failed: errTask}}}, calls: []string{both}, err: errTask, added: 2, changed: true},
		{name: "shown", adds: []response{{added: applying.Added{Shown: []string{second, first}}, taken: true}}, calls: []string{both}, added: 2, changed: true},
		{name: "unclear, and there", adds: []response{{taken: true}}, calls: []string{both, "read"}, added: 2, changed: true},
		{
			name: "unclear, and one there", adds: []response{{}}, list: partly, calls: []string{both, "read"}, err: errUnproven,
			text: "it names no task, and 1 of 2 added entries are not in the list, for example 192.0.2.8", added: 1, changed: true,
		},
		{
			name: "shown in part, and not there", adds: []response{{added: applying.Added{Shown: []string{second}}}}, calls: []string{both, "read"},
			err: errUnproven, text: "2 of 2 added entries are not in the list, for example 192.0.2.7", changed: true,
		},
		{name: "unclear, and unreadable", adds: []response{{taken: true}}, reads: []error{errUnread}, calls: []string{both, "read"}, err: errUnread, changed: true},
		{name: "refused", adds: []response{{err: errRefused}}, calls: []string{both}, err: errRefused},
		{name: "lost, and there", adds: []response{{err: errLost, taken: true}}, calls: []string{both, "read"}, added: 2, changed: true},
		{name: "lost once", adds: []response{{err: errLost}, {added: task, taken: true}}, calls: []string{both, "read", both}, added: 2, changed: true},
		{
			name: "lost in part", adds: []response{{err: errLost}, {added: task, taken: true}}, list: partly,
			calls: []string{both, "read", "add [" + second + "]"}, added: 2, changed: true,
		},
		{
			name: "lost three times", adds: []response{{err: errLost}, {err: errLost}, {err: errLost}}, calls: []string{both, "read", both, "read", both},
			err: errLost, changed: true,
		},
		{name: "lost, then refused", adds: []response{{err: errLost}, {err: errRefused}}, calls: []string{both, "read", both}, err: errRefused, changed: true},
		{name: "lost, and unreadable", adds: []response{{err: errLost}}, reads: []error{errUnread}, calls: []string{both, "read"}, err: errUnread, changed: true},
		{name: "lost once, with Wait", wait: true, adds: []response{{err: errLost, taken: true}, {added: task}}, calls: []string{both, both, "await [t] after 0s"}, added: 2, changed: true},
		{name: "lost twice, with Wait, and there", wait: true, adds: []response{{err: errLost, taken: true}, {err: errLost}}, calls: []string{both, both, "read", "await [] after 0s"}, added: 2, changed: true},
		{
			name: "lost twice, with Wait", wait: true, adds: []response{{err: errLost}, {err: errLost}, {added: task, taken: true}},
			calls: []string{both, both, "read", both, "await [t] after 0s"}, added: 2, changed: true,
		},
		{name: "lost, then refused, with Wait, and there", wait: true, adds: []response{{err: errLost, taken: true}, {err: errRefused}}, calls: []string{both, both, "read", "await [] after 0s"}, added: 2, changed: true},
		{
			name: "lost, then refused, with Wait", wait: true, adds: []response{{err: errLost}, {err: errRefused}}, calls: []string{both, both, "read"},
			err: errRefused, changed: true,
		},
		{name: "refused, with Wait", wait: true, adds: []response{{err: errRefused}}, calls: []string{both}, err: errRefused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, func(t *testing.T) {
				l := newList("192.0.2.1")
				l.adds, l.reads = tt.adds, tt.reads
				c, _ := l.changes([]string{first, second}, []string{"192.0.2.1"}, adds(0, 2, 3), removes(0, 1))
				c.Wait = tt.wait
				if tt.list != nil {
					tt.list(l)
				}
				result, changed, err := c.Do(t.Context())
				assert.Equal(t, tt.added, result.Added)
				assert.Equal(t, tt.changed, changed)
				if tt.err != nil {
					require.ErrorIs(t, err, tt.err)
					require.ErrorContains(t, err, tt.text)
					assert.Equal(t, tt.calls, l.log)
					return
				}
				require.NoError(t, err)
				assert.Equal(t, append(tt.calls, "remove 192.0.2.1"), l.log[:len(tt.calls)+1])
				tasks := []string{"t192.0.2.1"}
				if task := tt.adds[len(tt.adds)-1].added.Task; task != "" {
					tasks = []string{task, "t192.0.2.1"}
				}
				assert.Equal(t, tasks, result.Tasks)
			})
		})
	}
}

// If the response is lost and the list cannot be read, the error has both causes.
func TestBothErrorsOfALostAddition(t *testing.T) {
	t.Parallel()
	inFakeTime(t, func(t *testing.T) {
		l := newList()
		l.adds, l.reads = []response{{err: errLost}}, []error{errUnread}
		c, _ := l.changes([]string{"192.0.2.7"}, nil, adds(0, 1, 1))
		_, _, err := c.Do(t.Context())
		require.ErrorIs(t, err, errLost)
		require.ErrorIs(t, err, errUnread)
	})
}

// Once the context has ended, a lost addition causes no further request.
func TestALostAdditionAfterTheEndOfTheContext(t *testing.T) {
	t.Parallel()
	for _, wait := range []bool{false, true} {
		inFakeTime(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			l := newList()
			l.adds = []response{{err: errLost}}
			c, _ := l.changes([]string{"192.0.2.7"}, nil, adds(0, 1, 1))
			c.Wait = wait
			_, changed, err := c.Do(ctx)
			require.ErrorIs(t, err, errLost)
			assert.True(t, changed)
			assert.Equal(t, []string{"add [192.0.2.7]"}, l.log)
		})
	}
}

// An addition that no removal relies on is proven at the end. Of several unproven additions, the first gives the error.
func TestUnprovenAdditionsAtTheEnd(t *testing.T) {
	t.Parallel()
	inFakeTime(t, func(t *testing.T) {
		l := newList()
		l.adds = []response{{taken: true}, {}, {}, {taken: true}}
		c, reports := l.changes([]string{"192.0.2.6", "192.0.2.7", "192.0.2.8", "192.0.2.9"}, nil, adds(0, 1, 1), adds(1, 2, 2), adds(2, 3, 3), adds(3, 4, 4))
		result, changed, err := c.Do(t.Context())
		require.ErrorIs(t, err, errUnproven)
		require.ErrorContains(t, err, "for example 192.0.2.7")
		assert.True(t, changed)
		assert.Equal(t, 2, result.Added)
		assert.Equal(t, []string{"adding 0 1 false", "adding 0 2 false", "adding 0 3 false", "adding 0 4 false"}, *reports)
	})
	inFakeTime(t, func(t *testing.T) { // the list cannot be read
		l := newList()
		l.adds, l.reads = []response{{}}, []error{errUnread}
		c, _ := l.changes([]string{"192.0.2.6"}, nil, adds(0, 1, 1))
		result, changed, err := c.Do(t.Context())
		require.ErrorIs(t, err, errUnread)
		assert.True(t, changed, "it may have been added")
		assert.Equal(t, &applying.Result{}, result)
	})
	inFakeTime(t, func(t *testing.T) { // the entry was not added, so the list may have changed otherwise
		l := newList()
		l.adds = []response{{}}
		c, _ := l.changes([]string{"192.0.2.6"}, nil, adds(0, 1, 1))
		_, changed, err := c.Do(t.Context())
		require.ErrorIs(t, err, errUnproven)
		assert.True(t, changed)
	})
}

// Removals that rely on no addition do not wait for proof.
func TestRemovalsThatRelyOnNothing(t *testing.T) {
	t.Parallel()
	inFakeTime(t, func(t *testing.T) {
		l := newList("192.0.2.1")
		l.adds = []response{{taken: true}}
		c, _ := l.changes([]string{"192.0.2.7"}, []string{"192.0.2.1"}, adds(0, 1, 2), listorder.Step{From: 0, To: 1})
		_, _, err := c.Do(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{"add [192.0.2.7]", "remove 192.0.2.1", "read"}, l.log)
	})
}

// A failed removal stops those that have not begun. Only after a refusal is the list certainly unchanged.
func TestARemovalThatFails(t *testing.T) {
	t.Parallel()
	all := []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.5"}
	for _, tt := range []struct {
		name    string
		atOnce  int
		failing map[string]error
		begun   int
		removed int
		changed bool
		err     error
	}{
		{"refused", 1, map[string]error{all[0]: errRefused}, 1, 0, false, errRefused},
		{"lost", 1, map[string]error{all[0]: errLost}, 1, 0, true, errLost},
		{"lost, then refused", 2, map[string]error{all[0]: errLost, all[1]: errRefused}, 2, 0, true, nil},
		{"refused beside one that works", 2, map[string]error{all[0]: errRefused}, 2, 1, true, errRefused},
		{"refused after some", 1, map[string]error{all[3]: errRefused}, 4, 3, true, errRefused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, func(t *testing.T) {
				l := newList(all...)
				l.removes, l.noTask = tt.failing, true
				c, reports := l.changes(nil, all, listorder.Step{From: 0, To: 5})
				c.AtOnce = tt.atOnce
				result, changed, err := c.Do(t.Context())
				require.Error(t, err)
				if tt.err != nil {
					require.ErrorIs(t, err, tt.err)
				}
				// A removal that began before the failure was known goes on.
				assert.InDelta(t, tt.begun, len(l.log), float64(tt.atOnce-1))
				assert.InDelta(t, tt.removed, result.Removed, float64(tt.atOnce-1))
				assert.Len(t, *reports, result.Removed)
				assert.Equal(t, tt.changed, changed)
				assert.Nil(t, result.Tasks)
			})
		})
	}
}

// If a task failed, the list is not read for proof of other additions.
func TestATaskThatFailedBesideAnUnprovenAddition(t *testing.T) {
	t.Parallel()
	inFakeTime(t, func(t *testing.T) {
		l := newList("192.0.2.1")
		l.adds, l.tasks = []response{{taken: true}, {added: applying.Added{Task: "t"}, taken: true}}, map[string]error{"t": errTask}
		c, _ := l.changes([]string{"192.0.2.7", "192.0.2.8"}, []string{"192.0.2.1"}, adds(0, 1, 2), adds(1, 2, 3), removes(0, 1))
		c.Wait = true
		_, _, err := c.Do(t.Context())
		require.ErrorIs(t, err, errTask)
		assert.Equal(t, []string{"add [192.0.2.7]", "add [192.0.2.8]", "await [t] after 0s"}, l.log)
	})
}
