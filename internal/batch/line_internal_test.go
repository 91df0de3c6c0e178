package batch

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sync/semaphore"
)

// lineOf returns a line with a caller for each word, whose items are the letters. A dash before a word marks a caller
// that has left.
func lineOf(words ...string) *line[rune, int] {
	l := &line[rune, int]{room: semaphore.NewWeighted(100)}
	for _, word := range words {
		c := &caller[rune, int]{items: []rune(word), gone: word[0] == '-'}
		if c.gone {
			l.left++
			c.items = nil
		}
		l.room.TryAcquire(int64(len(c.items)))
		l.add(c)
	}
	return l
}

// A request takes the oldest callers whose items fit, without duplicates.
func TestTake(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name              string
		callers           []string
		maxItems, maxByte int
		items             string
		callersLeft       int
	}{
		{"all", []string{"a", "bc"}, 9, 99, "abc", 0},
		{"an item of several callers counts once", []string{"ab", "bc", "a"}, 3, 3, "abc", 0},
		{"too many items", []string{"ab", "cd", "a"}, 3, 99, "ab", 2},
		{"too many bytes", []string{"ab", "cd", "e"}, 99, 3, "ab", 2},
		{"the oldest fits always", []string{"abcd", "a"}, 1, 1, "abcd", 1},
		{"the oldest fits always, and one who adds nothing if it is not too large", []string{"abcd", "a"}, 4, 4, "abcd", 0},
		{"those who have left are passed over", []string{"-", "a", "-", "b", "-"}, 9, 99, "ab", 0},
		{"those who have left, before one who does not fit", []string{"-", "a", "-", "b", "-"}, 1, 99, "a", 2},
		{"nobody", []string{"-", "-"}, 9, 99, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := lineOf(c.callers...)
			next := load[rune]{maxItems: c.maxItems, maxBytes: c.maxByte, size: func(rune) int { return 1 }, known: map[rune]bool{}}
			taken := l.take(&next)
			assert.Equal(t, c.items, string(next.items))
			assert.Equal(t, c.items != "", len(taken) > 0)
			assert.Len(t, l.callers, c.callersLeft)
			waiting := 0
			for _, one := range l.callers {
				waiting += len(one.items)
			}
			assert.Equal(t, waiting, l.items)
			assert.True(t, l.room.TryAcquire(int64(100-waiting)), "room is given back")
			assert.False(t, l.room.TryAcquire(1))
		})
	}
}

// Callers that have left are removed when they are more than half, and the last one leaves nothing behind.
func TestLeave(t *testing.T) {
	t.Parallel()
	l := lineOf("a", "b", "c", "d", "e")
	lengths := []int{}
	for _, c := range slices.Clone(l.callers) {
		c.gone = true
		l.leave(c)
		lengths = append(lengths, len(l.callers))
		assert.Nil(t, c.items)
	}
	assert.Equal(t, []int{5, 5, 2, 2, 0}, lengths)
	assert.Zero(t, l.items)
	assert.Nil(t, l.callers)
	assert.True(t, l.room.TryAcquire(100))
}
