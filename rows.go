package webdelivery

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

// A row is kept as the bytes in which it arrived, with the place of each cell in them. A cell is read when somebody asks
// for it, into the type he asks for; nothing is made of those that nobody asks for.

// Row is one result of a statistics query: values in the order of the columns (service-interface section 2.4). A Row
// that is streamed is valid until the next step of its sequence; keep a Clone. One of a [Result] stays valid, and any
// number of goroutines may read it. The zero value has no values.
type Row struct {
	table *table
	first int // of its marks, in table.marks
}

// table holds one or more rows.
type table struct {
	columns *columns
	text    []byte
	marks   []uint32 // for each row the place of its bracket in the text, and the end of each of its values
}

// valueAt is the i-th value of a row with these marks.
func valueAt(text []byte, marks []uint32, i int) Value {
	raw := text[marks[i]+1 : marks[i+1]]
	for raw[0] == ',' || raw[0] <= ' ' {
		raw = raw[1:]
	}
	return Value{raw}
}

// columns are the names of a reply's columns, in row order.
type columns struct {
	names []string
	index map[string]int // by name
	auth  *authenticator // whose secrets stay out of errors
}

// Len is the number of values, which is that of the columns.
func (r Row) Len() int {
	if r.table == nil {
		return 0
	}
	return len(r.table.columns.names)
}

// Columns lists the names of the values, in order; nil for the zero Row. The list is the caller's.
func (r Row) Columns() []string {
	if r.table == nil {
		return nil
	}
	return slices.Clone(r.table.columns.names)
}

// At is the i-th value, from 0. Like an index of a slice it panics outside of 0 to Len()-1.
func (r Row) At(i int) Value {
	return valueAt(r.table.text, r.marks(), i)
}

// Get is the value of a column; false when there is no such column.
func (r Row) Get(column string) (Value, bool) {
	if r.table == nil {
		return Value{}, false
	}
	i, ok := r.table.columns.index[column]
	if !ok {
		return Value{}, false
	}
	return r.At(i), true
}

// Clone is a copy that stays valid.
func (r Row) Clone() Row {
	if r.Len() == 0 {
		return r
	}
	marks := slices.Clone(r.marks())
	begin, end := marks[0], marks[r.Len()]
	for i := range marks {
		marks[i] -= begin
	}
	return Row{table: &table{r.table.columns, bytes.Clone(r.table.text[begin:end]), marks}}
}

func (r Row) marks() []uint32 { return r.table.marks[r.first : r.first+r.Len()+1] }

// String gives the row as it stands in JSON: an array of its values.
func (r Row) String() string {
	text, _ := r.MarshalJSON() // its values are JSON already
	return string(text)
}

// MarshalJSON gives the row as an array of its values, each as it stands in the reply. (Marshal of encoding/json escapes
// <, > and & in them afterwards; an Encoder with SetEscapeHTML(false) does not.)
func (r Row) MarshalJSON() ([]byte, error) {
	text := []byte{'['}
	for i := range r.Len() {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, r.At(i).raw...)
	}
	return append(text, ']'), nil
}

// Value is one value of a row: a text, a number, true, false or null (service-interface section 2.4). It is valid as long
// as its row. The zero value is null.
type Value struct{ raw []byte }

// Raw is the value as it stands in the reply, in JSON. It is valid as long as its row, and must not be changed.
func (v Value) Raw() json.RawMessage {
	if v.raw == nil {
		return json.RawMessage("null")
	}
	return slices.Clip(v.raw) // or an append of the caller's would write over the value behind it
}

// MarshalJSON gives the value as it stands in the reply.
func (v Value) MarshalJSON() ([]byte, error) { return v.Raw(), nil }

// IsNull tells whether the value is null.
func (v Value) IsNull() bool { return v.raw == nil || v.raw[0] == 'n' }

// isText tells whether the value is a JSON string.
func (v Value) isText() bool { return len(v.raw) > 0 && v.raw[0] == '"' }

// inner is what stands between the quotes of a text, escapes and all.
func (v Value) inner() []byte { return v.raw[1 : len(v.raw)-1] }

// text is the value without quotes and escapes. Where nothing is escaped it is a part of the reply, not a copy.
func (v Value) text() []byte {
	switch {
	case v.IsNull():
		return nil
	case !v.isText():
		return v.raw
	case bytes.IndexByte(v.raw, '\\') < 0:
		return v.inner()
	default:
		text, _ := jsontext.AppendUnquote(nil, v.raw) // the reader has checked that it is a JSON string
		return text
	}
}

// String is the text of a text value, the digits of a number, "true", "false", or "" for null.
func (v Value) String() string { return string(v.text()) }

// Int64 reads a whole number, also one in quotes, written as JSON writes it (no plus sign, no blanks). All 64 bits are
// kept; a fraction or an exponent is an error, and so is null.
func (v Value) Int64() (int64, error) {
	n, err := v.signed(64)
	if err != nil {
		return 0, v.isNo("whole number of 64 bits")
	}
	return n, nil
}

// signed reads a whole number of so many bits.
func (v Value) signed(bits int) (int64, error) {
	text := v.text()
	n, err := strconv.ParseInt(string(text), 10, bits)
	if err == nil && v.isText() && !isNumber(text) {
		return 0, v.isNo("number")
	}
	return n, err
}

// unsigned reads a whole number of so many bits, not below 0.
func (v Value) unsigned(bits int) (uint64, error) {
	text := v.text()
	n, err := strconv.ParseUint(string(text), 10, bits)
	if err == nil && v.isText() && !isNumber(text) {
		return 0, v.isNo("number")
	}
	return n, err
}

// Float64 reads a number, also one in quotes. One out of range is an error, and so is null.
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

// isNumber: a number as JSON writes it, nothing before or behind it. The package strconv takes more: a plus sign, zeros in
// front, "nan", hexadecimal digits.
func isNumber(text []byte) bool {
	n := len(text)
	return n > 0 && (text[0] == '-' || text[0]-'0' <= 9) && text[n-1]-'0' <= 9 && jsontext.Value(text).IsValid()
}

// Time reads a timestamp; without a zone designator, as the service sends it, it is UTC (service-interface section 2.4).
// A fraction, and a blank in place of the T, are read too; a number and null are errors. The time is in UTC.
func (v Value) Time() (time.Time, error) { return v.time(new(wire.Date)) }

// time knows the date of the timestamp before.
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

// Addr reads an IP address, IPv4 or IPv6; all else, null too, is an error.
func (v Value) Addr() (netip.Addr, error) { return v.addr(nil) }

// addr knows texts that need not be made again.
func (v Value) addr(known *texts) (netip.Addr, error) {
	if v.isText() {
		if addr, ok := plainIPv4(v.inner()); ok {
			return addr, nil
		}
		if addr, err := netip.ParseAddr(known.of(v)); err == nil {
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
				if value > 25 || value == 25 && digit > 5 {
					return netip.Addr{}, false
				}
				value = value*10 + digit
				i++
			}
		}
		bytes[at] = value
	}
	return netip.AddrFrom4(bytes), i == len(text)
}
