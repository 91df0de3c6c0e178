package program

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A write waits for its reader until the context has ended and a second has passed. Later writes to the output fail at
// once.
func TestWriting(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		ended, read time.Duration // time after the write begins; read 0 means never
		took        time.Duration
		err         error
	}{
		{"nobody reads", 5 * time.Second, 0, 6 * time.Second, errUnread},
		{"nobody reads after the end", 0, 0, time.Second, errUnread},
		{"read before the end", 5 * time.Second, 3 * time.Second, 3 * time.Second, nil},
		{"read soon after the end", 5 * time.Second, 5900 * time.Millisecond, 5900 * time.Millisecond, nil},
		{"no end", time.Hour, 59 * time.Minute, 59 * time.Minute, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, end := context.WithTimeout(t.Context(), tt.ended)
				defer end()
				reader, pipe := io.Pipe()
				defer reader.Close() // ends the write in the background, as the end of the process does
				if tt.read > 0 {
					time.AfterFunc(tt.read, func() { _, _ = reader.Read(make([]byte, 9)) })
				}
				out, began, text := writing(ctx, pipe), time.Now(), []byte("some text")
				n, err := out.Write(text)
				require.ErrorIs(t, err, tt.err)
				assert.Equal(t, tt.took, time.Since(began))
				if err == nil {
					assert.Equal(t, len(text), n)
					return
				}
				_, err = out.Write(text)
				require.ErrorIs(t, err, errUnread)
				assert.Equal(t, tt.took, time.Since(began), "nobody waits again")
			})
		})
	}
	broken := errors.New("broken disk")
	_, err := writing(t.Context(), function(func([]byte) (int, error) { return 0, broken })).Write(nil)
	require.ErrorIs(t, err, broken)
}
