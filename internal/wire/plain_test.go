package wire_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// What is read without making a text of it is what the standard library makes of the text.
func FuzzPlainValues(f *testing.F) {
	for _, seed := range []string{
		"2026-11-20T08:30:00", "2026-11-20T08:30:00.000", "2026-02-30T00:00:00", "2024-02-29T23:59:59.999999999", "2026-11-20T24:00:00",
		"2026-11-20T23:59:60", "2026-11-20T08:30:00.250+0000", "2026-11-20T03:00:00.5-0530", "+026-11-20T08:30:00", "2026-11-20T08:30:00.:", "2026-00-01T00:00:00", "2026-13-01T00:00:00", "2026-11-20T08:30:00.", "2026-11-20 08:30:00", "0000-01-01T00:00:00.1",
		"-0", "-12", "123456789012345678", "-999999999999999999", "9223372036854775807", "-", "+1", "1e3", "1900-02-29T00:00:00", "2000-02-29T00:00:00", "9999-12-31T23:59:59.9",
		"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00T08:30:00", "", ".", "1.2.3.04", "0.5", "-0.0e-0", "1E+10", "1e", "1.", "-.5", "01.5", "1.5.5", "1e5.5", "00", "1e+", "0x1",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var known wire.Date
		if at, ok := wire.PlainTimestamp(text, &known); ok {
			want, err := wire.ParseTimestamp(string(text))
			require.NoError(t, err, "%q", text)
			require.Equal(t, want, at)
			again, ok := wire.PlainTimestamp(text, &known)
			require.True(t, ok)
			require.Equal(t, want, again)
		}
		if n, ok := wire.PlainInt(text); ok {
			want, err := strconv.ParseInt(string(text), 10, 64)
			require.NoError(t, err)
			require.Equal(t, want, n)
		}
	})
}

// Which forms are plain: most values have them, so that no text is made of most.
func TestPlainForms(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"2026-11-20T08:30:00": at, "2026-11-20T08:30:00Z": at, "2026-11-20T08:30:00.25Z": at.Add(250 * time.Millisecond), "2026-11-20T08:30:00.5": at.Add(500 * time.Millisecond), "2026-11-20T08:30:00.012": at.Add(12 * time.Millisecond),
		"2026-11-20T08:30:00.123456789": at.Add(123456789), "2026-11-20T00:00:00": at.Add(-8*time.Hour - 30*time.Minute),
		"2026-11-20T23:59:59": at.Add(15*time.Hour + 29*time.Minute + 59*time.Second), "2024-02-29T08:30:00": time.Date(2024, 2, 29, 8, 30, 0, 0, time.UTC),
	} {
		got, ok := wire.PlainTimestamp([]byte(text), new(wire.Date))
		require.True(t, ok, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{
		"", "2026-11-20T08:30:0", "2026-11-20T08:30:00z", "2026-11-20T08:30:00ZZ", "2026-11-20T08:30:00.", "2026-11-20T08:30:00.Z", "2026-11-20T08:30:00.1234567890",
		"2026-11-20T08:30:00,5", "2026-11-20T08:30:0Z", "2026-11-20T08;30:00", "2026-11-20T08:30;00", "2026-11-20T08:3a:00", "2026-11-20T8 :30:00",
		"2026x11-20T08:30:00", "2026-11x20T08:30:00", "2026-11-20x08:30:00", "2026-11-20T08x30:00", "2026-11-20T08:30x00",
		"2026-11-20T24:00:00", "2026-11-20T08:60:00", "2026-11-20T08:30:60", "2026-11-31T08:30:00", "2025-02-29T08:30:00", "2026-11-20T0/:30:00",
	} {
		_, ok := wire.PlainTimestamp([]byte(text), new(wire.Date))
		require.False(t, ok, text)
	}
	for text, want := range map[string]int64{
		"0": 0, "-0": 0, "9": 9, "-12": -12, "007": 7, "123456789012345678": 123456789012345678, "-999999999999999999": -999999999999999999,
	} {
		got, ok := wire.PlainInt([]byte(text))
		require.True(t, ok, text)
		require.Equal(t, want, got)
	}
	for _, text := range []string{"", "-", "--1", "+1", "1e3", "1.0", "1:", "/1", "1234567890123456789", "-1234567890123456789"} {
		_, ok := wire.PlainInt([]byte(text))
		require.False(t, ok, text)
	}
}

// The days of the calendar are counted as the library counts them.
func TestPlainTimestampsOfTheCalendar(t *testing.T) {
	t.Parallel()
	var known wire.Date
	for at := time.Date(0, 1, 1, 12, 34, 56, 0, time.UTC); at.Year() < 10000; at = at.AddDate(0, 0, 13) {
		got, ok := wire.PlainTimestamp(at.AppendFormat(nil, "2006-01-02T15:04:05"), &known)
		if !ok || got != at {
			t.Fatal(at, got, ok)
		}
	}
}

func FuzzPlainText(f *testing.F) {
	for _, seed := range []string{`text"`, "12345678\x7f\"", "1234567\x1f89", "\xff", `12345678\`, "12345678\"12345678", "", "ü", "a b", "12345678a b\x1f", " ~\x7f\x80"} {
		f.Add([]byte(seed), 0)
	}
	f.Fuzz(func(t *testing.T, text []byte, from int) {
		from = min(max(from, 0), len(text))
		want := from
		for want < len(text) && text[want] >= ' ' && text[want] < 0x80 && text[want] != '"' && text[want] != '\\' {
			want++
		}
		require.Equal(t, want, wire.PlainText(text, from), "%q", text)
	})
}
