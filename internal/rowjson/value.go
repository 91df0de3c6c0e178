package rowjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// Value is one value of a row: a text, a number, true, false or null. It is valid as long as its row. The zero value is
// null.
type Value struct{ raw []byte }

// Raw returns the value as it stands in the response, in JSON. It must not be changed.
func (v Value) Raw() json.RawMessage {
	if v.raw == nil {
		return json.RawMessage("null")
	}
	return slices.Clip(v.raw) // or an append of the caller's would write over the value behind it
}

// JSON returns the value as it stands in the response, but as valid JSON for every reader. U+FFFD replaces bytes of a
// text that are not UTF-8, and escapes of half a surrogate pair. The result must not be changed.
func (v Value) JSON() json.RawMessage {
	if v.isText() && wire.PlainText(v.raw, 1) < len(v.raw)-1 {
		return slices.Clip(wire.RepairText(v.raw))
	}
	return v.Raw()
}

// IsNull reports whether the value is null.
func (v Value) IsNull() bool { return v.raw == nil || v.raw[0] == 'n' }

// Clone returns a copy that stays valid.
func (v Value) Clone() Value { return Value{bytes.Clone(v.raw)} }

// isText reports whether the value is a JSON string.
func (v Value) isText() bool { return len(v.raw) > 0 && v.raw[0] == '"' }

// inner returns what stands between the quotes of a text, escapes and all.
func (v Value) inner() []byte { return v.raw[1 : len(v.raw)-1] }

// text returns the value without quotes and escapes. If nothing is escaped or replaced it is a part of the response,
// not a copy. U+FFFD replaces what is no text, see JSON.
func (v Value) text() []byte {
	switch {
	case v.IsNull():
		return nil
	case !v.isText():
		return v.raw
	case isWhole(v.inner()):
		return v.inner()
	default:
		text, err := jsontext.AppendUnquote(nil, v.raw)
		if err != nil { // the reader has checked that it is a JSON string
			text, _ = jsontext.AppendUnquote(nil, wire.RepairText(v.raw))
		}
		return text
	}
}

// isWhole reports whether what stands between the quotes is the text itself: nothing is escaped, and all is UTF-8.
func isWhole(text []byte) bool {
	return wire.PlainText(text, 0) == len(text) || bytes.IndexByte(text, '\\') < 0 && utf8.Valid(text)
}

// isBroken reports whether a part of a text is no text, so that U+FFFD replaces it.
func (v Value) isBroken() bool {
	return v.isText() && !isWhole(v.inner()) && !jsontext.Value(v.raw).IsValid()
}

// String returns the text of a text value, the digits of a number, "true", "false", or "" for null.
func (v Value) String() string { return string(v.text()) }

// Int64 reads a whole number, also one in quotes, written as JSON writes it: without a plus sign and without blanks. It
// returns an error for a fraction, an exponent and null.
func (v Value) Int64() (int64, error) {
	n, err := v.signed(64)
	if err != nil {
		return 0, v.isNo("whole number of 64 bits")
	}
	return n, nil
}

// signed reads a whole number with this many bits.
func (v Value) signed(bits int) (int64, error) {
	text := v.text()
	n, err := strconv.ParseInt(string(text), 10, bits)
	if err == nil && v.isText() && !isNumber(text) {
		return 0, v.isNo("number")
	}
	return n, err
}

// unsigned reads a whole number with this many bits, not below 0.
func (v Value) unsigned(bits int) (uint64, error) {
	text := v.text()
	n, err := strconv.ParseUint(string(text), 10, bits)
	if err == nil && v.isText() && !isNumber(text) {
		return 0, v.isNo("number")
	}
	return n, err
}

// Float64 reads a number, also one in quotes. It returns an error for one out of range and for null.
func (v Value) Float64() (float64, error) {
	return v.float(64)
}

func (v Value) float(bits int) (float64, error) {
	text := v.text()
	if !isNumber(text) {
		return 0, v.isNo("number")
	}
	f, err := strconv.ParseFloat(string(text), bits)
	if err != nil {
		return 0, fmt.Errorf("%s is out of range of a float%d", wire.Clip(v.Raw()), bits)
	}
	return f, nil
}

// isNumber reports whether a text is a number as JSON writes it. The package strconv accepts more: a plus sign, leading
// zeros, "nan", hexadecimal digits.
func isNumber(text []byte) bool {
	n := len(text)
	return n > 0 && (text[0] == '-' || text[0]-'0' <= 9) && text[n-1]-'0' <= 9 && jsontext.Value(text).IsValid()
}

// Time reads a timestamp, as [wire.ParseTimestamp] does. It returns an error for a number and for null.
func (v Value) Time() (time.Time, error) { return v.time(new(wire.Date)) }

// time is Time with the date of the timestamp before.
func (v Value) time(known *wire.Date) (time.Time, error) {
	if v.isText() {
		if at, ok := wire.PlainTimestamp(v.inner(), known); ok {
			return at, nil
		}
		if at, err := wire.ParseTimestamp(string(v.text())); err == nil {
			return at, nil
		}
	}
	return time.Time{}, v.isNo("timestamp")
}

// Addr reads an IP address, IPv4 or IPv6. It returns an error for everything else, null too.
func (v Value) Addr() (netip.Addr, error) { return v.addr(nil) }

// addr is Addr with texts that need not be built again.
func (v Value) addr(known *texts) (netip.Addr, error) {
	if v.isText() {
		if addr, ok := plainIPv4(v.inner()); ok {
			return addr, nil
		}
		if addr, err := netip.ParseAddr(known.of(v)); err == nil && !v.isBroken() { // a zone may hold any text
			return addr, nil
		}
	}
	return netip.Addr{}, v.isNo("IP address")
}

func (v Value) isNo(what string) error { return fmt.Errorf("%s is no %s", wire.Clip(v.Raw()), what) }

// plainIPv4 reads four numbers with dots between.
func plainIPv4(text []byte) (netip.Addr, bool) {
	const longest = len("255.255.255.255")
	var padded [longest + 1]byte // ends with what is no digit, so that there is no end to look for
	if copy(padded[:], text) > longest {
		return netip.Addr{}, false
	}
	var bytes [4]byte
	i := 0
	for at := range bytes {
		if at > 0 {
			if padded[i] != '.' {
				return netip.Addr{}, false
			}
			i++
		}
		value := padded[i] - '0'
		if value > 9 {
			return netip.Addr{}, false
		}
		i++
		if digit := padded[i] - '0'; digit <= 9 && value > 0 {
			value = value*10 + digit
			i++
			if digit := padded[i] - '0'; digit <= 9 {
				all := uint(value)*10 + uint(digit)
				if all > 255 {
					return netip.Addr{}, false
				}
				value = byte(all)
				i++
			}
		}
		bytes[at] = value
	}
	return netip.AddrFrom4(bytes), i == len(text)
}

// texts are short texts without escapes that a column had lately. A column of countries or actions has few different
// ones, and each string is built once.
type texts [256]string

const longText = 64

// of returns the String of a value.
func (t *texts) of(v Value) string {
	if t == nil || !v.isText() {
		return v.String()
	}
	text := v.inner()
	n := len(text)
	if n == 0 || n > longText {
		return v.String()
	}
	// The index depends on the length, the last two characters and the middle one, because texts of a column mostly
	// differ there.
	at := uint(n) + uint(text[n-1]) + 31*uint(text[max(n-2, 0)]) + 7*uint(text[n/2])
	known := &t[at%uint(len(t))]
	if *known != string(text) {
		if !isWhole(text) {
			return v.String()
		}
		*known = string(text)
	}
	return *known
}
