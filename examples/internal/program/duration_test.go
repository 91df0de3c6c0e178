package program_test

import (
	"flag"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
)

// A duration is one of Go, with days in front.
func TestParseDuration(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"30m": 30 * time.Minute, "12h": 12 * time.Hour, "7d": 7 * day, "1d12h": 36 * time.Hour, "1d1h30m": day + 90*time.Minute,
		"250ms": 250 * time.Millisecond, "1.5h": 90 * time.Minute, "0": 0, "0s": 0, "0d": 0, "65535d": 65535 * day,
	} {
		got, err := program.ParseDuration(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{
		"", "d", "7", "7 d", "7D", "1.5d", "-1h", "+1h", "-1d", "1d-1h", "12h7d", "1dd", "7days", "soon", "65536d", "65535d2000000h", "3000000h",
	} {
		_, err := program.ParseDuration(text)
		require.EqualError(t, err, "want a duration such as 30m, 12h, 7d or 1d12h", text)
	}
}

// The text of a duration is short, and reads as the same duration. A flag shows its default in this form.
func TestDuration(t *testing.T) {
	t.Parallel()
	const day = program.Duration(24 * time.Hour)
	for want, duration := range map[string]program.Duration{
		"0s": 0, "30m": program.Duration(30 * time.Minute), "12h": day / 2, "7d": 7 * day, "1d12h": day * 3 / 2, "1h0m5s": program.Duration(time.Hour + 5*time.Second),
		"1d5s": day + program.Duration(5*time.Second), "10m": program.Duration(10 * time.Minute), "20h": day * 20 / 24, "250ms": program.Duration(250 * time.Millisecond),
	} {
		assert.Equal(t, want, duration.String())
		var read program.Duration
		require.NoError(t, read.UnmarshalText([]byte(want)))
		assert.Equal(t, duration, read)
	}

	set := flag.NewFlagSet("x", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	since := day
	set.Var(&since, "since", "begin this `duration` ago")
	assert.Equal(t, "1d", set.Lookup("since").DefValue)
	require.NoError(t, set.Parse([]string{"-since", "7d"}))
	assert.Equal(t, 7*day, since)
	require.EqualError(t, set.Parse([]string{"-since", "7x"}), `invalid value "7x" for flag -since: want a duration such as 30m, 12h, 7d or 1d12h`)
}
