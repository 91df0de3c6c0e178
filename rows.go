package webdelivery

import (
	"encoding/json"
	"net/netip"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/rowjson"
)

// Row is one result of a statistics query: its values in the order of the columns. A streamed Row is valid until the
// next step of its sequence, and only one goroutine may read it; to keep it, use Clone. A Row of a [Result] or a clone
// stays valid, and any number of goroutines may read it. The zero value has no values. (Section 2.4.)
type Row struct{ row rowjson.Row }

// Columns returns the names of the values in order; nil for the zero Row. The caller may change the slice.
func (r Row) Columns() []string { return r.row.Columns() }

// At returns the i-th value, from 0. Like the index of a slice, it panics if i is not that of a column.
func (r Row) At(i int) Value { return Value{r.row.At(i)} }

// Get returns the value of a column, or false if the row has no such column.
func (r Row) Get(column string) (Value, bool) {
	value, ok := r.row.Get(column)
	return Value{value}, ok
}

// Clone returns a copy that stays valid.
func (r Row) Clone() Row { return Row{r.row.Clone()} }

// String returns the text of MarshalJSON.
func (r Row) String() string { return string(r.row.JSON()) }

// MarshalJSON returns an array of the values, each as its own MarshalJSON returns it. json.Marshal then escapes <, >
// and & in them; an Encoder with SetEscapeHTML(false) does not.
func (r Row) MarshalJSON() ([]byte, error) { return r.row.JSON(), nil }

// Value is one value of a row: a text, a number, true, false or null. It is valid as long as its row. The zero value
// is null.
//
// A text may be invalid, for example in a path that an attacker chose. Each byte that is not UTF-8, and each half of a
// surrogate pair, becomes U+FFFD, as in encoding/json. Raw returns the original bytes.
type Value struct{ value rowjson.Value }

// Raw returns the JSON of the value exactly as the response has it, which may not be valid UTF-8. To write the value,
// use MarshalJSON. The bytes are valid as long as the row, and must not be changed.
func (v Value) Raw() json.RawMessage { return v.value.Raw() }

// MarshalJSON returns the JSON of the value as the response has it, with U+FFFD in place of invalid text.
func (v Value) MarshalJSON() ([]byte, error) { return v.value.JSON(), nil }

// IsNull reports whether the value is null.
func (v Value) IsNull() bool { return v.value.IsNull() }

// String returns the text of a text value in UTF-8, the digits of a number, "true", "false", or "" for null. A
// timestamp is returned as the service sends it: UTC, without a zone designator.
func (v Value) String() string { return v.value.String() }

// Int64 returns a whole number, which may be in quotes. It must be written as in JSON, without a plus sign and
// without blanks. All 64 bits are kept. A fraction, an exponent and null are errors.
func (v Value) Int64() (int64, error) { return v.value.Int64() }

// Time returns a timestamp in UTC. The service sends it without a zone designator, which means UTC. A fraction, and a
// blank in place of the T, are accepted. Numbers and null are errors.
func (v Value) Time() (time.Time, error) { return v.value.Time() }

// Addr returns an IP address, IPv4 or IPv6. Everything else is an error, including null.
func (v Value) Addr() (netip.Addr, error) { return v.value.Addr() }
