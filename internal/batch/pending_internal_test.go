package batch

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// pendingOf returns callers with a URI for each letter.
func pendingOf(t *testing.T, callers ...string) *pending {
	t.Helper()
	p := &pending{room: semaphore.NewWeighted(10_000)}
	for _, word := range callers {
		c := &caller{uris: letters(word)}
		assert.True(t, p.room.TryAcquire(int64(len(word))))
		c.element = p.callers.PushBack(c)
		p.uris += len(word)
	}
	return p
}

// A request takes the oldest callers whose URIs fit, without duplicates.
func TestTake(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name              string
		callers           string // the URIs of each are the letters
		maxURIs, maxBytes int
		want              string
		left              string
	}{
		{"all", "a bc", 9, 99, "abc", ""},
		{"a URI of several callers counts once", "ab bc a", 3, 3, "abc", ""},
		{"too many URIs, but the last one fits", "ab cd a", 3, 99, "ab", "cd"},
		{"too many bytes", "ab cd e", 99, 3, "abe", "cd"},
		{"the oldest always fits", "abcd a", 1, 1, "abcd", "a"},
		{"the oldest always fits, and one who adds nothing if it is not too large", "abcd a", 4, 4, "abcd", ""},
		{"nobody", "", 9, 99, "", ""},
	} {
		p, behind := pendingOf(t, strings.Fields(c.callers)...), new(time.Time)
		taken := p.take(Options{MaxURIs: c.maxURIs, MaxBytes: c.maxBytes}, anybody, behind)
		next := newLoad()
		for _, caller := range taken {
			next.add(caller.uris)
		}
		assert.Equal(t, letters(c.want), next.uris, c.name)
		assert.Len(t, taken, len(strings.Fields(c.callers))-len(strings.Fields(c.left)), c.name)
		waiting := len(strings.ReplaceAll(c.left, " ", ""))
		assert.Equal(t, waiting, p.uris, c.name)
		assert.True(t, p.room.TryAcquire(int64(10_000-waiting)), "room is released")
		assert.False(t, p.room.TryAcquire(1))
	}
}

// While requests leave callers behind, the shortest ones come first every 3.5 s. No caller is passed more often.
func TestShortCallersFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, behind := pendingOf(t, "ab", "cd", "ef", "gh", "ij", "kl", "mn", "q", "r", "st"), new(time.Time)
		var requests []string
		for ; p.uris > 0; time.Sleep(time.Second) {
			var request strings.Builder
			for _, caller := range p.take(Options{MaxURIs: 2, MaxBytes: 99}, anybody, behind) {
				for _, uri := range caller.uris {
					request.WriteString(uri.Pattern)
				}
			}
			requests = append(requests, request.String())
		}
		assert.Equal(t, []string{"ab", "cd", "ef", "gh", "qr", "ij", "kl", "mn", "st"}, requests, "after 4 s, and 4 s later none is shorter")
	})
}

// The search for callers that still fit ends after 1,000 that do not.
func TestTakeGivesUp(t *testing.T) {
	t.Parallel()
	for misses, want := range map[int]int{maxMisses - 1: 2, maxMisses: 1} {
		callers := []string{"a"}
		for range misses {
			callers = append(callers, "bcd")
		}
		p, behind := pendingOf(t, append(callers, "e")...), new(time.Time)
		assert.Len(t, p.take(Options{MaxURIs: 2, MaxBytes: 99}, anybody, behind), want)
	}
}
