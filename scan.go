package webdelivery

import (
	"fmt"
	"iter"
	"reflect"

	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/rowjson"
)

// scanned says how Scan finds the fields of a struct: by a tag `stats:"column"`.
var scanned = rowjson.Fields{Tag: "stats", Value: func(pointer any) *rowjson.Value {
	if value, ok := pointer.(*Value); ok {
		return &value.value
	}
	return nil
}}

// Scan reads rows into structs (service-interface section 2.4): a field with a tag `stats:"name"` takes the value of
// that column; fields without one, or with a tag of -, are left alone. A field can be a string, a bool, any integer or
// float, time.Time, netip.Addr, netip.Prefix, json.Number, [Value], whatever implements encoding.TextUnmarshaler, or a
// pointer to one of these, which is nil for null. An integer or a float also takes a number in quotes, written as JSON
// writes it; a json.Number does not. A bool takes true and false, in quotes too, and nothing else.
//
//	type Event struct {
//		Time time.Time  `stats:"event_timestamp_ms"`
//		IP   netip.Addr `stats:"client_ip"`
//	}
//	for event, err := range webdelivery.Scan[Event](client.Stats.Events.All(ctx, query)) { ... }
//
// It ends with the first error: that of the rows, or a [*ScanError] for a column that is missing, a null where none can be
// held, and a value that does not fit. The first row judges the columns, so without rows there is no error of theirs. If T
// cannot be scanned into, Scan yields a [*ValidationError] before it asks for rows, so no request is sent. What it yields
// is the caller's and stays valid, unlike a [Row].
func Scan[T any](rows iter.Seq2[Row, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var value T
		target, err := scanned.Target(&value)
		if err != nil {
			yield(*new(T), invalid("Scan", "%v", err))
			return
		}
		number := int64(0)
		for row, err := range rows {
			number++
			if err == nil {
				err = scanRow(target, row, number)
			}
			if err != nil {
				yield(*new(T), err)
				return
			}
			if !yield(value, nil) {
				return
			}
		}
	}
}

// scanRow writes a row, whose number counts from 1, into the struct of a target.
func scanRow(target *rowjson.Target, row Row, number int64) error {
	if wrong := target.Store(row.row); wrong != nil {
		return &ScanError{number, wrong.Column, wrong.Field, wrong.Type, wrong.Value, wrong.Err}
	}
	return nil
}

// Collect reads a sequence into a slice: of rows, of what [Scan] yields, of tasks or lists. It returns what came before
// the first error together with that error, and nil if nothing came. A [Row] is cloned, so that it stays valid.
func Collect[T any](seq iter.Seq2[T, error]) ([]T, error) {
	var all []T
	for item, err := range seq {
		if err != nil {
			return all, err
		}
		if row, ok := any(&item).(*Row); ok {
			*row = row.Clone()
		}
		all = append(all, item)
	}
	return all, nil
}

// DimensionsOf lists the columns that T takes by its tags, in the order of its fields, so that a query can be derived
// from the struct. The metric hits is left out, as it is no dimension. It is nil for what is no struct with such tags.
func DimensionsOf[T any]() []string {
	return scanned.Names(reflect.TypeFor[T](), MetricHits)
}

// ScanError is a value that does not fit its field, or a column that is missing.
type ScanError struct {
	Row    int64  // from 1
	Column string // its name
	Field  string // of the struct, by its Go name
	Type   string // of that field, such as netip.Addr
	Value  string // as it stands in the reply, in JSON, clipped; "" when the column is missing
	Err    error  // what is wrong; Unwrap gives it
}

// Error names row, column, field and value, and what is wrong with it, on one line. If the column is missing, it says what
// to do.
func (e *ScanError) Error() string {
	text := fmt.Sprintf("webdelivery: row %d, column %s", e.Row, redact.Line(e.Column))
	if e.Field != "" {
		text += fmt.Sprintf(" for field %s (%s)", e.Field, e.Type)
	}
	if e.Value == "" {
		return fmt.Sprintf("%s: %s; ask for the column in the query, or remove the tag", text, redact.Within(prefix, fmt.Sprint(e.Err)))
	}
	return fmt.Sprintf("%s, value %s: %s", text, redact.Line(e.Value), redact.Within(prefix, fmt.Sprint(e.Err)))
}

// Unwrap gives what is wrong with the value.
func (e *ScanError) Unwrap() error { return e.Err }

func (e *ScanError) outcomeOfWrite() Outcome { return OutcomeNotApplied }
