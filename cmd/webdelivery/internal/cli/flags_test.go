package cli_test

import (
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
)

const day = 24 * time.Hour

// A duration is one of Go, with days in front.
func TestParseDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"30m": 30 * time.Minute, "12h": 12 * time.Hour, "7d": 7 * day, "1d12h": 36 * time.Hour, "1d1h30m": day + 90*time.Minute,
		"250ms": 250 * time.Millisecond, "1.5h": 90 * time.Minute, "0": 0, "0d": 0, "65535d": 65535 * day,
	} {
		got, err := cli.ParseDuration(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{
		"", "d", "7", "7 d", "7D", "1.5d", "-1h", "+1h", "-1d", "1d-1h", "12h7d", "1dd", "7days", "65536d", "65535d2000000h", "3000000h",
	} {
		_, err := cli.ParseDuration(text)
		require.EqualError(t, err, "want a duration such as 30m, 12h, 7d or 1d12h", text)
	}
}

// The text of a duration is short, and reads as the same duration.
func TestDuration(t *testing.T) {
	t.Parallel()
	for want, duration := range map[string]time.Duration{
		"0s": 0, "30m": 30 * time.Minute, "12h": day / 2, "7d": 7 * day, "1d12h": day * 3 / 2, "1h0m5s": time.Hour + 5*time.Second,
		"1d5s": day + 5*time.Second, "20h": 20 * time.Hour, "250ms": 250 * time.Millisecond,
	} {
		d := cli.Duration(duration)
		assert.Equal(t, want, d.String())
		require.NoError(t, d.Set(want))
		assert.Equal(t, cli.Duration(duration), d)
	}
}

// A range of time begins and ends as the flags say, in UTC; an open end is zero.
func TestRange(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 1, 30, 0, 500, time.FixedZone("", 3600)) // 00:30 in UTC
	for _, tt := range []struct{ since, until, start, end, refused string }{
		{since: "24h", start: "2026-11-28T00:30:00Z"},
		{since: "1d12h", start: "2026-11-27T12:30:00Z"},
		{since: "yesterday", until: "today", start: "2026-11-28T00:00:00Z", end: "2026-11-29T00:00:00Z"},
		{since: "2026-11-20", until: "2026-11-21T08:00:00+02:00", start: "2026-11-20T00:00:00Z", end: "2026-11-21T06:00:00Z"},
		{since: "1h", until: "30m", start: "2026-11-28T23:30:00Z", end: "2026-11-29T00:00:00Z"},
		{since: "0s", refused: "--since, 2026-11-29T00:30:00Z, is not before --until, 2026-11-29T00:30:00Z"},
		{since: "today", until: "yesterday", refused: "is not before"},
		{since: "soon", refused: `--since "soon": want 90m, 24h, 7d, today`},
		{since: "1h", until: "20261129", refused: `--until "20261129": want`},
	} {
		var r cli.Range
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		r.Flags(flags, "1d")
		require.NoError(t, flags.Parse([]string{"--since", tt.since, "--until", tt.until}))
		start, end, err := r.Times(now)
		if tt.refused != "" {
			require.ErrorContains(t, err, tt.refused)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, tt.start, start.Format(time.RFC3339Nano))
		assert.Equal(t, tt.end, cli.Time(end))
	}
}

// A filter is read when the flags are, and an empty one is none.
func TestFilterFlag(t *testing.T) {
	t.Parallel()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	filter := cli.FilterFlag(flags)
	require.NoError(t, flags.Parse([]string{"--filter", "domain==www.example.com"}))
	assert.Equal(t, "domain==www.example.com", filter.String())
	require.NoError(t, flags.Parse([]string{"--filter="}))
	assert.Nil(t, filter.Expr)
	require.Error(t, flags.Parse([]string{"--filter", "domain=x"}))
}
