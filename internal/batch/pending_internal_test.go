package batch

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sync/semaphore"
)

// letters returns a URI of one byte for each letter.
func letters(word string) (uris []URI) {
	for _, letter := range word {
		uris = append(uris, URI{Pattern: string(letter), Size: 1})
	}
	return uris
}

// A request takes the oldest callers whose URIs fit, without duplicates.
func TestTake(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name              string
		callers           []string // the URIs of each are the letters
		maxURIs, maxBytes int
		want              string
		callersLeft       int
	}{
		{"all", []string{"a", "bc"}, 9, 99, "abc", 0},
		{"a URI of several callers counts once", []string{"ab", "bc", "a"}, 3, 3, "abc", 0},
		{"too many URIs", []string{"ab", "cd", "a"}, 3, 99, "ab", 2},
		{"too many bytes", []string{"ab", "cd", "e"}, 99, 3, "ab", 2},
		{"the oldest fits always", []string{"abcd", "a"}, 1, 1, "abcd", 1},
		{"the oldest fits always, and one who adds nothing if it is not too large", []string{"abcd", "a"}, 4, 4, "abcd", 0},
		{"nobody", nil, 9, 99, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := pending{room: semaphore.NewWeighted(100)}
			for _, word := range c.callers {
				assert.True(t, p.room.TryAcquire(int64(len(word))))
				p.add(newCaller(letters(word)))
			}
			taken, next := p.take(Options{MaxURIs: c.maxURIs, MaxBytes: c.maxBytes})
			assert.Equal(t, letters(c.want), next.uris)
			assert.Len(t, next.results, len(c.want))
			assert.Len(t, taken, len(c.callers)-c.callersLeft)
			assert.Equal(t, c.callersLeft, p.callers.Len())
			waiting := 0
			for _, word := range c.callers[len(taken):] {
				waiting += len(word)
			}
			assert.Equal(t, waiting, p.uris)
			assert.True(t, p.room.TryAcquire(int64(100-waiting)), "room is released")
			assert.False(t, p.room.TryAcquire(1))
		})
	}
}
