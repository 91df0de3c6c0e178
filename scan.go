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

// Scan reads rows into structs. A field with a tag `stats:"name"` gets the value of that column. It is a string, a
// bool, any integer or float, time.Time, netip.Addr, netip.Prefix, json.Number, a type that implements
// encoding.TextUnmarshaler, a [Value], or a pointer to one of these, which is nil for null. Numbers and bools may be
// in quotes. The fields of an embedded struct count as those around it.
//
//	type Event struct {
//		Time time.Time   `stats:"event_timestamp_ms"`
//		IP   *netip.Addr `stats:"client_ip"` // nil if the row has null
//	}
//	for event, err := range webdelivery.Scan[Event](client.Stats.Events.All(ctx, query)) { ... }
//
// If a value does not fit its field, such as null without a pointer, Scan yields a [*ScanError], which has the whole
// row, and goes on with the next row if the loop does. All other errors end Scan: those of the rows, [ErrBadResponse]
// if rows lack the column of a field, and a [*ValidationError] if T cannot be scanned into. (Section 2.4.)
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
			var wrong *rowjson.Misfit
			if err == nil {
				wrong = target.Store(row.row)
			}
			more := false
			switch {
			case err != nil:
				yield(*new(T), err)
			case wrong == nil:
				more = yield(value, nil)
			case wrong.Value == "":
				yield(*new(T), &outcomeError{fmt.Errorf("%w: the rows have no column %s for field %s; ask for it in the query, or remove the tag",
					ErrBadResponse, redact.Line(wrong.Column), wrong.Field), OutcomeNotApplied})
			default:
				whole, where := row.Clone(), ""
				if wrong.Field != "" {
					where = fmt.Sprintf("field %s (%s), ", wrong.Field, wrong.Type)
				}
				err := fmt.Errorf("%svalue %s: %w", where, redact.Line(wrong.Value), wrong.Err)
				more = yield(*new(T), &ScanError{number, wrong.Column, err, func() Row { return whole }})
			}
			if !more {
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

// ScanError means that a value does not fit its field. The loop over [Scan] may go on.
type ScanError struct {
	Row    int64  // from 1
	Column string // name of the column
	Err    error  // what is wrong: the field, the value, cut if it is long, and why it does not fit

	whole func() Row // not the row itself: printed, the error contains nothing of it but the value
}

// Error returns row, column, field, value and cause on one line.
func (e *ScanError) Error() string {
	return fmt.Sprintf("webdelivery: row %d, column %s: %s", e.Row, redact.Line(e.Column), within(fmt.Sprint(e.Err)))
}

// Whole returns the row, which stays valid; the zero Row if Scan has not made the error.
func (e *ScanError) Whole() Row {
	if e.whole == nil {
		return Row{}
	}
	return e.whole()
}

// Unwrap returns Err.
func (e *ScanError) Unwrap() error { return e.Err }

func (e *ScanError) outcomeOfWrite() Outcome { return OutcomeNotApplied }
