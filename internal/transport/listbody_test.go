package transport_test

import (
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// numbers is a list body of the numbers from 0, and its text.
func numbers(count int) (body *transport.ListBody, text string) {
	items := make([]string, count)
	size := 0
	for i := range items {
		items[i] = strconv.Itoa(i)
		size += len(items[i])
	}
	body = transport.NewListBody(`{"list":[`, `]}`, count, size, func(b []byte, i int) []byte { return append(b, items[i]...) })
	return body, `{"list":[` + strings.Join(items, ",") + `]}`
}

// Each Open begins the body anew, and its length is known before. It is read in pieces of any size.
func TestListBodies(t *testing.T) {
	t.Parallel()
	for _, count := range []int{1, 2, 10, 3000, 20_000} {
		body, text := numbers(count)
		for name, read := range map[string]func(io.Reader) io.Reader{
			"as it comes": func(r io.Reader) io.Reader { return r }, "a byte each": iotest.OneByteReader, "by halves": iotest.HalfReader,
		} {
			reader, err := body.Open()
			require.NoError(t, err)
			sized, ok := reader.(interface{ Len() int })
			require.True(t, ok)
			assert.Equal(t, len(text), sized.Len(), "%d, %s", count, name)
			got, err := io.ReadAll(read(reader))
			require.NoError(t, err)
			assert.Equal(t, text, string(got), "%d, %s", count, name)
			n, err := reader.Read(make([]byte, 1))
			assert.Zero(t, n)
			assert.ErrorIs(t, err, io.EOF)
		}
	}
}

// A long body is encoded piece by piece as it is read.
func TestListBodiesAreNotMadeWhole(t *testing.T) {
	t.Parallel()
	made := 0
	body := transport.NewListBody("[", "]", 100_000, 100_000, func(b []byte, _ int) []byte {
		made++
		return append(b, '7')
	})
	reader, err := body.Open()
	require.NoError(t, err)
	buffer := make([]byte, 512)
	_, err = reader.Read(buffer)
	require.NoError(t, err)
	first := made
	assert.Greater(t, first, 1000)
	assert.Less(t, first, 20_000)
	for range 10 {
		_, err = reader.Read(buffer)
		require.NoError(t, err)
	}
	assert.Equal(t, first, made, "what was encoded is read before more is")
}

// After Close nothing of the items is read any more: they are the caller's again.
func TestAClosedListBody(t *testing.T) {
	t.Parallel()
	body, text := numbers(20_000)
	reader, err := body.Open()
	require.NoError(t, err)
	_, err = reader.Read(make([]byte, 100))
	require.NoError(t, err)
	body.Close()
	rest, err := io.ReadAll(reader)
	require.ErrorIs(t, err, io.ErrClosedPipe)
	assert.Less(t, 100+len(rest), len(text))
	reader, err = body.Open()
	require.NoError(t, err)
	_, err = reader.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.ErrClosedPipe)
}
