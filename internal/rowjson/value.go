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

// Value is one value of a row: a text, a number, true, false or null. It is valid as long as its row. The zero value is
// null.
type Value struct {
	raw     []byte
	differs bool // a text that is not what stands between its quotes: it has escapes, or is broken
}

// Raw returns the value as it stands in the response, in JSON. It must not be changed.
func (v Value) Raw() json.RawMessage {
	if v.raw == nil {
		return json.RawMessage("null")
	}
	return slices.Clip(v.raw) // or an append of the caller's would write over the value behind it
}

// JSON returns the value as valid JSON for every reader, as it stands in the response if it is that. In a broken text,
// U+FFFD replaces bytes that are not UTF-8, and escapes of half a surrogate pair. The result must not be changed.
func (v Value) JSON() json.RawMessage {
	if v.isBroken() {
		quoted, _ := jsontext.AppendQuote(nil, v.text()) // which is UTF-8
		return quoted
	}
	return v.Raw()
}

// IsNull reports whether the value is null.
func (v Value) IsNull() bool { return v.raw == nil || v.raw[0] == 'n' }

// Clone returns a copy that stays valid.
func (v Value) Clone() Value { return Value{bytes.Clone(v.raw), v.differs} }

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
	case v.differs:
		return appendText(make([]byte, 0, len(v.raw)), v.raw)
	default:
		return v.inner()
	}
}

// isBroken reports whether a part of a text is no text, so that U+FFFD replaces it.
func (v Value) isBroken() bool { return v.differs && !jsontext.Value(v.raw).IsValid() }

// String returns the text of a text value, the digits of a number, "true", "false", or "" for null.
func (v Value) String() string { return string(v.text()) }

// Int64 reads a whole number, also one in quotes, written as JSON writes it: without a plus sign and without blanks. It
// returns an error for a fraction, an exponent and null.
func (v Value) Int64() (int64, error) {
	n, err := v.signed(64)
	if err != nil {
		return 0, v.isNot("a whole number of 64 bits")
	}
	return n, nil
}

// signed reads a whole number with this many bits.
func (v Value) signed(bits int) (int64, error) {
	text := v.text()
	if v.isText() && !isNumber(text) {
		return 0, v.isNot("a number")
	}
	return strconv.ParseInt(string(text), 10, bits)
}

// unsigned reads a whole number with this many bits, not below 0.
func (v Value) unsigned(bits int) (uint64, error) {
	text := v.text()
	if v.isText() && !isNumber(text) {
		return 0, v.isNot("a number")
	}
	return strconv.ParseUint(string(text), 10, bits)
}

// Float64 reads a number, also one in quotes. It returns an error for one out of range and for null.
func (v Value) Float64() (float64, error) { return v.float(64) }

// float is Float64 with this many bits.
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

// beginsNumber reports whether a JSON value that begins so is a number.
func beginsNumber(text []byte) bool { return len(text) > 0 && (text[0] == '-' || text[0]-'0' <= 9) }

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
	return time.Time{}, v.isNot("a timestamp")
}

// Addr reads an IP address, IPv4 or IPv6. It returns an error for everything else, null too.
func (v Value) Addr() (netip.Addr, error) { return v.addr(nil) }

// addr is Addr with texts that the column had.
func (v Value) addr(known *texts) (netip.Addr, error) {
	if v.isText() {
		if addr, end := ipv4At(v.raw, 0); end > 0 {
			return addr, nil
		}
		if addr, end := ipv6At(v.raw, 0); end > 0 {
			return addr, nil
		}
		if addr, err := netip.ParseAddr(known.of(v)); err == nil && !v.isBroken() { // a zone may hold any text
			return addr, nil
		}
	}
	return netip.Addr{}, v.isNot("an IP address")
}

func (v Value) isNot(what string) error { return fmt.Errorf("%s is not %s", wire.Clip(v.Raw()), what) }
