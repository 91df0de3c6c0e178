package rowjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// Value is a value of a row: a string, a number, true, false or null. It is valid as long as its row. The zero value is
// null.
type Value struct {
	raw     []byte
	differs bool // a string that differs from the bytes between its quotes; see mark
}

// Raw returns the JSON of the value as it is in the response. It must not be modified.
func (v Value) Raw() json.RawMessage {
	if v.raw == nil {
		return json.RawMessage("null")
	}
	return slices.Clip(v.raw) // so that the caller cannot append over the next value
}

// JSON returns the value as valid JSON. In a string, invalid UTF-8 and escapes of half a surrogate pair become U+FFFD;
// otherwise it is the JSON in the response. The result must not be modified.
func (v Value) JSON() json.RawMessage {
	if v.isBroken() {
		quoted, _ := jsontext.AppendQuote(nil, v.text()) // the text is valid UTF-8
		return quoted
	}
	return v.Raw()
}

// IsNull reports whether the value is null.
func (v Value) IsNull() bool { return v.raw == nil || v.raw[0] == 'n' }

// Clone returns a copy that remains valid.
func (v Value) Clone() Value { return Value{bytes.Clone(v.raw), v.differs} }

// isText reports whether the value is a JSON string.
func (v Value) isText() bool { return len(v.raw) > 0 && v.raw[0] == '"' }

// inner returns the bytes between the quotes of a string, including escapes.
func (v Value) inner() []byte { return v.raw[1 : len(v.raw)-1] }

// text returns the unquoted value, with U+FFFD for invalid characters as in JSON. If nothing is escaped or replaced,
// the result shares the memory of the response.
func (v Value) text() []byte {
	switch {
	case v.IsNull():
		return nil
	case !v.isText():
		return v.raw
	case v.differs:
		return appendText(make([]byte, 0, len(v.raw)), v.raw)
	default:
		return v.inner()
	}
}

// isBroken reports whether a string has invalid characters, which become U+FFFD.
func (v Value) isBroken() bool { return v.differs && !jsontext.Value(v.raw).IsValid() }

// String returns the text of a string, the digits of a number, "true", "false", or "" for null.
func (v Value) String() string { return string(v.text()) }

// Int64 returns the value as an integer, which may be quoted. It returns an error for null and for a number with a plus
// sign, spaces, a fraction or an exponent.
func (v Value) Int64() (int64, error) {
	return v.signed(64)
}

// signed parses a signed integer with the given number of bits.
func (v Value) signed(bits int) (int64, error) {
	text := v.text()
	if n, err := strconv.ParseInt(string(text), 10, bits); err == nil && (!v.isText() || isNumber(text)) {
		return n, nil
	}
	return 0, v.isNot(fmt.Sprintf("a whole number of %d bits", bits))
}

// unsigned parses an unsigned integer with the given number of bits.
func (v Value) unsigned(bits int) (uint64, error) {
	text := v.text()
	if n, err := strconv.ParseUint(string(text), 10, bits); err == nil && (!v.isText() || isNumber(text)) {
		return n, nil
	}
	return 0, v.isNot(fmt.Sprintf("a whole number from 0, of %d bits", bits))
}

// float returns the value as a number of so many bits, which may be quoted. It returns an error for null and if the
// number is out of range.
func (v Value) float(bits int) (float64, error) {
	text := v.text()
	if v.isText() && !isNumber(text) || !v.isText() && !beginsNumber(text) {
		return 0, v.isNot("a number")
	}
	f, err := strconv.ParseFloat(string(text), bits)
	if err != nil {
		return 0, fmt.Errorf("%s is out of range of a float%d", wire.Clip(v.Raw()), bits)
	}
	return f, nil
}

// beginsNumber reports whether a JSON value with this text is a number, from its first byte.
func beginsNumber(text []byte) bool { return len(text) > 0 && (text[0] == '-' || text[0]-'0' <= 9) }

// Time returns the value as a timestamp; see [wire.ParseTimestamp]. It returns an error for numbers and null.
func (v Value) Time() (time.Time, error) { return v.TimeAfter(new(wire.Date)) }

// TimeAfter is Time with the date of the previous timestamp, which saves time.
func (v Value) TimeAfter(last *wire.Date) (time.Time, error) {
	if v.isText() {
		if at, ok := wire.PlainTimestamp(v.inner(), last); ok {
			return at, nil
		}
		if at, err := wire.ParseTimestamp(string(v.text())); err == nil {
			return at, nil
		}
	}
	return time.Time{}, v.isNot("a timestamp")
}

// Addr returns the value as an IPv4 or IPv6 address. It returns an error for everything else, including null.
func (v Value) Addr() (netip.Addr, error) { return v.addr(nil) }

// addr is Addr with the known texts of the column.
func (v Value) addr(cache *texts) (netip.Addr, error) {
	if v.isText() {
		if addr, end := ipv4At(v.raw, 0); end > 0 {
			return addr, nil
		}
		if addr, end := ipv6At(v.raw, 0); end > 0 {
			return addr, nil
		}
		if addr, err := netip.ParseAddr(cache.of(v)); err == nil && !v.isBroken() { // a zone may be any text
			return addr, nil
		}
	}
	return netip.Addr{}, v.isNot("an IP address")
}

func (v Value) isNot(what string) error { return fmt.Errorf("%s is not %s", wire.Clip(v.Raw()), what) }
