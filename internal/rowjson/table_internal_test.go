package rowjson

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A slice that has room stays where it is. One that has none gets twice the room, or what is needed if that is more.
func TestRoomDoubles(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ length, capacity, n, least int }{
		{0, 0, 1, 1}, {0, 0, 100, 100}, {4, 4, 1, 8}, {1000, 1000, 1, 2000}, {1000, 1000, 5000, 6000}, {10, 12, 3, 20},
	} {
		grown := roomFor(make([]byte, tt.length, tt.capacity), tt.n)
		assert.Len(t, grown, tt.length)
		assert.GreaterOrEqual(t, cap(grown), tt.least, tt)
		assert.Less(t, cap(grown), 2*tt.least+16, tt)
	}
	for _, n := range []int{0, 1, 6} {
		s := make([]byte, 4, 10)
		assert.Equal(t, 10, cap(roomFor(s, n)))
		assert.Same(t, &s[0], &roomFor(s, n)[0])
	}
}
