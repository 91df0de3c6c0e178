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

// Scan reads rows into structs. A field with a tag `stats:"name"` gets the value of that column; others are ignored. A
// field is a string, a bool, any integer or float, time.Time, netip.Addr, netip.Prefix, json.Number, or a type that
// implements encoding.TextUnmarshaler. It may also be a pointer to one of these, which is nil for null. Use a [Value]
// for the original bytes. Numbers and bools may be in quotes, except for a json.Number.
//
// The fields of an embedded struct without a tag count as those of the struct around it; an embedded pointer is
// refused. If a column comes at several depths, the outermost fields get it.
//
//	type Event struct {
//		Time time.Time   `stats:"event_timestamp_ms"`
//		IP   *netip.Addr `stats:"client_ip"` // nil if the row has null
//	}
//	for event, err := range webdelivery.Scan[Event](client.Stats.Events.All(ctx, query)) { ... }
//
// Scan ends with the first error of the rows. It yields a [*ScanError] if a column is missing or a value does not fit
// its field. A null fits only a pointer or a [Value]. Without rows, no column is missing. If T cannot be scanned into,
// Scan yields a [*ValidationError] and sends no request. Unlike a [Row], what Scan yields stays valid. (Service
// document, [section 2.4].)
//
// [section 2.4]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#24-security-statistics-query-result
func Scan[T any](rows iter.Seq2[Row, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var value T
		target, err := rowjson.TargetOf(scanned, &value)
		if err != nil {
			yield(*new(T), invalid("Scan", "%v", err))
			return
		}
		number := int64(0)
		for row, err := range rows {
			number++
			if err == nil {
				if wrong := target.Store(row.row); wrong != nil {
					err = &ScanError{number, wrong.Column, wrong.Field, wrong.Type, wrong.Value, wrong.Err}
				}
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

// Collect reads a sequence into a slice: rows, results of [Scan], tasks or lists. On error, it also returns the items
// before the error. Without items, it returns nil. Collect clones each [Row], so the rows stay valid.
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

// DimensionsOf returns the columns in the tags of T, in the order of its fields, as the dimensions of a query. It omits
// the metric hits, which is not a dimension. If T is not a struct with such tags, it returns nil.
func DimensionsOf[T any]() []string {
	return scanned.Names(reflect.TypeFor[T](), MetricHits)
}

// ScanError means that a value does not fit its field, or that a column is missing.
type ScanError struct {
	Row    int64  // from 1
	Column string // name of the column
	Field  string // Go name of the struct field
	Type   string // type of that field, such as netip.Addr
	Value  string // JSON of the value, cut if it is long; "" if the column is missing
	Err    error  // what is wrong; Unwrap returns it
}

// Error returns row, column, field, value and cause on one line. If the column is missing, it says what to do.
func (e *ScanError) Error() string {
	text := fmt.Sprintf("webdelivery: row %d, column %s", e.Row, redact.Line(e.Column))
	if e.Field != "" {
		text += fmt.Sprintf(" for field %s (%s)", e.Field, e.Type)
	}
	if e.Value == "" {
		return fmt.Sprintf("%s: %s; ask for the column in the query, or remove the tag", text, within(fmt.Sprint(e.Err)))
	}
	return fmt.Sprintf("%s, value %s: %s", text, redact.Line(e.Value), within(fmt.Sprint(e.Err)))
}

// Unwrap returns Err.
func (e *ScanError) Unwrap() error { return e.Err }

func (e *ScanError) outcomeOfWrite() Outcome { return OutcomeNotApplied }
