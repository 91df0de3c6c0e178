package webdelivery

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/rowjson"
)

// StreamOption changes how Rows and All of a [StatsFamily] stream. If one is invalid, the sequence yields a
// [*ValidationError] and sends nothing.
type StreamOption func(*streaming) error

// streaming is what the options of a stream fill.
type streaming struct {
	all    bool                // the limit is the SDK's: a response that reaches it may lack rows
	report func(StreamSummary) // nil: nobody asked for it

	warnings []string
}

// StreamSummary says what a response had that was streamed to its end.
type StreamSummary struct {
	Rows          int64 // that arrived
	TotalResults  int64 // that match, whatever the limit: above Rows if the limit, or the size of a top-K, has cut some off
	ReplacedTexts int64 // values in which U+FFFD replaces what is no text, see Value

	Warnings []string // what the service may no longer have of the span, as in Result; nil if there is nothing to say
}

// OnSummary calls f once when all rows have arrived without an error, before the sequence ends. f runs in the goroutine of
// the loop, at each range over the sequence. It is not called if the loop stops early, or the sequence ends with an error.
func OnSummary(f func(StreamSummary)) StreamOption {
	return func(s *streaming) error {
		if f == nil {
			return invalid("OnSummary", "is nil")
		}
		s.report = f
		return nil
	}
}

func newStreaming(options []StreamOption) (s streaming, err error) {
	for i, option := range options {
		if option == nil {
			return s, invalid(fmt.Sprintf("options[%d]", i), "is nil; remove it")
		}
		if err := option(&s); err != nil {
			return s, err
		}
	}
	return s, nil
}

// done reports a response that has ended well.
func (s streaming) done(summary StreamSummary) {
	if s.report != nil {
		summary.Warnings = s.warnings
		s.report(summary)
	}
}

// Row is one result of a statistics query: values in the order of the columns (service-interface section 2.4). A Row
// that is streamed is valid until the next step of its sequence; keep a Clone. One of a [Result] stays valid, and any
// number of goroutines may read it. The zero value has no values.
type Row struct{ row rowjson.Row }

// Len is the number of values, which is that of the columns.
func (r Row) Len() int { return r.row.Len() }

// Columns lists the names of the values, in order; nil for the zero Row. The list is the caller's.
func (r Row) Columns() []string { return r.row.Columns() }

// At is the i-th value, from 0. Like an index of a slice it panics outside of 0 to Len()-1.
func (r Row) At(i int) Value { return Value{r.row.At(i)} }

// Get is the value of a column; false when there is no such column.
func (r Row) Get(column string) (Value, bool) {
	value, ok := r.row.Get(column)
	return Value{value}, ok
}

// Clone is a copy that stays valid.
func (r Row) Clone() Row { return Row{r.row.Clone()} }

// String gives the row as MarshalJSON does.
func (r Row) String() string { return string(r.row.JSON()) }

// MarshalJSON gives the row as an array of its values, each as its own MarshalJSON does. (Marshal of encoding/json escapes
// <, > and & in them afterwards; an Encoder with SetEscapeHTML(false) does not.)
func (r Row) MarshalJSON() ([]byte, error) { return r.row.JSON(), nil }

// Value is one value of a row: a text, a number, true, false or null (service-interface section 2.4). It is valid as long
// as its row. The zero value is null.
//
// A text may hold what is no text: bytes that are not UTF-8, or half of a surrogate pair, for example in a path that an
// attacker chose. U+FFFD replaces each such byte and each such half, as in encoding/json. [Result] and [StreamSummary]
// count these values, Raw gives what came, and [WithStrictTexts] makes them errors.
type Value struct{ value rowjson.Value }

// Raw is the value as it stands in the reply, in JSON, and perhaps not in UTF-8: write it with MarshalJSON. It is valid as
// long as its row, and must not be changed.
func (v Value) Raw() json.RawMessage { return v.value.Raw() }

// MarshalJSON gives the value as it stands in the reply, with U+FFFD in place of what is no text.
func (v Value) MarshalJSON() ([]byte, error) { return v.value.JSON(), nil }

// IsNull tells whether the value is null.
func (v Value) IsNull() bool { return v.value.IsNull() }

// String is the text of a text value (in UTF-8), the digits of a number, "true", "false", or "" for null.
func (v Value) String() string { return v.value.String() }

// Int64 reads a whole number, also one in quotes, written as JSON writes it (no plus sign, no blanks). All 64 bits are
// kept; a fraction or an exponent is an error, and so is null.
func (v Value) Int64() (int64, error) { return v.value.Int64() }

// Float64 reads a number, also one in quotes. One out of range is an error, and so is null.
func (v Value) Float64() (float64, error) { return v.value.Float64() }

// Time reads a timestamp; without a zone designator, as the service sends it, it is UTC (service-interface section 2.4).
// A fraction, and a blank in place of the T, are read too; a number and null are errors. The time is in UTC.
func (v Value) Time() (time.Time, error) { return v.value.Time() }

// Addr reads an IP address, IPv4 or IPv6; all else, null too, is an error.
func (v Value) Addr() (netip.Addr, error) { return v.value.Addr() }
