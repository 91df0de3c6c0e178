package wire_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// The service document says ISO 8601 and UTC without a pattern. All usual patterns are read. Without a zone, a time is
// UTC.
func TestTimestampsAreReadInUTC(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Time{
		`null`:                            {},
		`""`:                              {},
		`"2026-11-20T08:30:00Z"`:          time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC),
		`"2026-11-20T08:30:00.250Z"`:      time.Date(2026, 11, 20, 8, 30, 0, 250e6, time.UTC),
		`"2026-11-20T08:30:00,250Z"`:      time.Date(2026, 11, 20, 8, 30, 0, 250e6, time.UTC),
		`"2026-11-20T08:30:00.123456789"`: time.Date(2026, 11, 20, 8, 30, 0, 123456789, time.UTC),
		`"2026-11-20T08:30:00+0000"`:      time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC),
		`"2026-11-20T08:30:00.250+0000"`:  time.Date(2026, 11, 20, 8, 30, 0, 250e6, time.UTC),
		`"2026-11-20T08:30:00+00:00"`:     time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC),
		`"2026-11-20T10:30:00+02:00"`:     time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC),
		`"2026-11-20T03:00:00.5-0530"`:    time.Date(2026, 11, 20, 8, 30, 0, 500e6, time.UTC),
		`"2026-11-20T08:30:00"`:           time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC),
		`"2026-11-20 08:30:00"`:           time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC),
		`"2026-11-20 09:30:00+01:00"`:     time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC),
		`"2026-11-20 08:30:00Z"`:          time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC),
		`"2026-11-20"`:                    time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC),
	} {
		got := time.Now() // of an earlier text
		require.NoError(t, wire.Decode([]byte(text), &got))
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{`"yesterday"`, `"2026-13-01T00:00:00Z"`, `"2026-11-20T25:00:00Z"`, `"08:30:00"`, `" "`, `1795163400`, `{}`, `true`} {
		got := time.Now()
		require.NoError(t, wire.Decode([]byte(text), &got))
		assert.Zero(t, got, text)
	}
}

func TestWholeNumbersKeepTheirDigits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		`0`: 0, `5`: 5, `5.0`: 5, `"-5.00"`: -5, `-1`: -1, `"5"`: 5, `"-1"`: -1, `null`: 0, `""`: 0, `9007199254740993`: 9007199254740993, `"9007199254740993"`: 9007199254740993,
		`9223372036854775807`: 9223372036854775807, `-9223372036854775808`: -9223372036854775808,
	} {
		var got wire.Int
		require.NoError(t, json.Unmarshal([]byte(text), &got))
		assert.EqualValues(t, want, got, text)
	}
	for _, text := range []string{
		`1.5`, `1e400`, `"1e3"`, `9223372036854775808`, `-9223372036854775809`, `"9223372036854775808"`, `"five"`, `" 5"`, `"0x10"`, `"1_000"`,
		`true`, `{}`, `[]`, `[5]`,
	} {
		assert.Error(t, json.Unmarshal([]byte(text), new(wire.Int)), text)
	}
}

func TestCodes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]wire.Code{
		`400`: 400, `"400"`: 400, `" 400 "`: 400, `4e2`: 400, `"4e2"`: 400, `400.0`: 400, `null`: 0, `""`: 0, `"E17"`: 0, `"Infinity"`: 0,
		`-1`: 0, `4294967696`: math.MaxInt32, `1e400`: math.MaxInt32, `"1e400"`: math.MaxInt32, `-1e400`: 0,
	} {
		var got wire.Code
		require.NoError(t, json.Unmarshal([]byte(text), &got))
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{`400.5`, `"400.5"`, `true`, `{}`, `[400]`} {
		assert.Error(t, json.Unmarshal([]byte(text), new(wire.Code)), text)
	}
	got := wire.Code(503)
	require.NoError(t, json.Unmarshal([]byte(`400`), &got))
	assert.Equal(t, wire.Code(503), got, "the greatest stays")
}
