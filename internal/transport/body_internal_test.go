package transport

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A Content-Length is trusted for the bytes that have come, and for at most 4 MiB of the others. So a header alone
// cannot make a client allocate much memory.
func TestTheMemoryOfABody(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for _, tt := range []struct {
		name        string
		length      int64
		limit       int64
		size        int
		least, most int // of the memory
	}{
		{"a length that is not true", 1 << 40, 1 << 50, 10, 4 * mib, 4*mib + 16<<10},
		{"a length above the limit", mib, 1000, 10, 1001, 1001},
		{"an honest length", 2000, mib, 2000, 2001, 2001},
		{"an honest length of many", 10 * mib, 32 * mib, 10 * mib, 10 * mib, 13 * mib},
		{"no length", -1, mib, 10, bytes.MinRead, bytes.MinRead},
		{"no length, and many", -1, 32 * mib, 10 * mib, 10 * mib, 21 * mib},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			text := bytes.Repeat([]byte("x"), tt.size)
			body, err := readWhole(&http.Response{Body: io.NopCloser(bytes.NewReader(text)), ContentLength: tt.length}, tt.limit)
			require.NoError(t, err)
			assert.True(t, bytes.Equal(text, body))
			assert.GreaterOrEqual(t, cap(body), tt.least)
			assert.LessOrEqual(t, cap(body), tt.most)
		})
	}
	body, err := readWhole(&http.Response{Body: http.NoBody, ContentLength: mib}, mib) // of a HEAD
	require.NoError(t, err)
	assert.LessOrEqual(t, cap(body), bytes.MinRead)
}
