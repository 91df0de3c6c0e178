package program_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
)

// Progress is shown only on a terminal. Each text replaces the one before. A poll that failed has its reason.
func TestShow(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	s := program.Streams{Err: &stderr}
	s.Show("one")
	assert.Empty(t, stderr.String())
	s.ErrTerminal = true
	s.Show("one")
	s.Show("")
	s.ShowPoll("half", webdelivery.Progress{})
	s.ShowPoll("half", webdelivery.Progress{Err: errors.New("502 Bad Gateway")})
	assert.Equal(t, "\rone\x1b[K\r\x1b[K\rhalf\x1b[K\rhalf; polling again after: 502 Bad Gateway\x1b[K", stderr.String())
}
