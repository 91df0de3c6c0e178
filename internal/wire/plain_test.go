package wire_test

import (
	"testing"

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
	})
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
