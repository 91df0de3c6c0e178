package transport

import (
	"bytes"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

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
		{"a length above the limit", mib, 1000, 10, 1000, 2 << 10},
		{"an honest length", 2000, mib, 2000, 2000, 4 << 10},
		{"no length, and many", -1, 32 * mib, 10 * mib, 10 * mib, 21 * mib},
	} {
		text := bytes.Repeat([]byte("x"), tt.size)
		body, err := readWhole(&http.Response{Body: io.NopCloser(bytes.NewReader(text)), ContentLength: tt.length}, tt.limit)
		require.NoError(t, err, tt.name)
		assert.True(t, bytes.Equal(text, body), tt.name)
		assert.GreaterOrEqual(t, cap(body), tt.least, tt.name)
		assert.LessOrEqual(t, cap(body), tt.most, tt.name)
	}
	body, err := readWhole(&http.Response{Body: http.NoBody, ContentLength: mib}, mib) // of a HEAD
	require.NoError(t, err)
	assert.LessOrEqual(t, cap(body), bytes.MinRead)
}

// A reader that returns data together with the error, or that is asked again after the limit, neither loops nor shows
// more than the limit. The largest limit is one, too.
func TestLimitedBody(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		limit int64
		size  int
		fits  bool
	}{{10, 10, true}, {10, 11, false}, {0, 0, true}, {0, 1, false}, {math.MaxInt64, 5000, true}} {
		for name, wrap := range map[string]func(io.Reader) io.Reader{
			"plain": func(r io.Reader) io.Reader { return r }, "data with error": iotest.DataErrReader, "one by one": iotest.OneByteReader,
		} {
			body := &limitedBody{from: wrap(strings.NewReader(strings.Repeat("x", tt.size))), limit: tt.limit}
			text, err := io.ReadAll(body)
			if tt.fits {
				require.NoError(t, err, "%s %d", name, tt.limit)
				assert.Len(t, text, tt.size)
				continue
			}
			require.ErrorIs(t, err, ErrResponseTooLarge, "%s %d", name, tt.limit)
			n, err := body.Read(nil)
			assert.Zero(t, n)
			require.ErrorIs(t, err, ErrResponseTooLarge)
		}
	}
	body := &limitedBody{from: io.MultiReader(iotest.TimeoutReader(strings.NewReader("xx"))), limit: 10} // fails once, at the second read
	_, err := io.ReadAll(iotest.OneByteReader(body))
	require.ErrorIs(t, err, iotest.ErrTimeout)
	_, err = io.Copy(io.Discard, body)
	require.ErrorIs(t, err, iotest.ErrTimeout, "a body that broke once stays broken")
}
