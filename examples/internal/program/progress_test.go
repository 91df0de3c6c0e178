package program_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
)

// Progress is seen on a terminal alone, one text in place of the other.
func TestShow(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	s := program.Streams{Err: &stderr}
	s.Show("one")
	assert.Empty(t, stderr.String())
	s.ErrTerminal = true
	s.Show("one")
	s.Show("")
	assert.Equal(t, "\rone\x1b[K\r\x1b[K", stderr.String())
}

// A bar is as full as what it shows, also where the service counts beyond its end.
func TestBar(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "[..............................]   0 %", program.Bar(0))
	assert.Equal(t, "[###############...............]  50 %", program.Bar(50))
	assert.Equal(t, "[##############################] 100 %", program.Bar(100))
	assert.Equal(t, "[##############################] 120 %", program.Bar(120))
	assert.Equal(t, "[..............................]  -1 %", program.Bar(-1))
}
