package webdelivery

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"

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

// Scan reads rows into structs (service-interface section 2.4): a field with a tag `stats:"name"` takes the value of that
// column, fields without one are left alone. A field can be a string, a bool, any integer or float, time.Time, netip.Addr,
// netip.Prefix, json.Number, [Value], whatever implements encoding.TextUnmarshaler, or a pointer to one of these, which is
// nil for null. An integer or a float also takes a number in quotes, written as JSON writes it; a json.Number does
// not. A bool takes true and false, in quotes too, and nothing else.
//
//	type Event struct {
//		Time time.Time  `stats:"event_timestamp_ms"`
//		IP   netip.Addr `stats:"client_ip"`
//	}
//	for event, err := range webdelivery.Scan[Event](client.Stats.Events.All(ctx, query)) { ... }
//
// It ends with the first error: that of the rows, a [*ScanError] for a column that is missing, a null where none can be
// held, and a value that does not fit, or one that says why T cannot be scanned into. The columns and T
// are judged by the first row, so without rows there is no error of theirs. What it yields is the caller's and stays
// valid, unlike a [Row].
func Scan[T any](rows iter.Seq2[Row, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var value T
		var plan *rowjson.Plan
		number := int64(0)
		for row, err := range rows {
			number++
			if err == nil && !plan.Fits(row.row) {
				plan, err = newScanPlan(&value, row)
			}
			if err == nil {
				err = storeRow(plan, row)
			}
			if err != nil {
				yield(*new(T), inRow(number, err))
				return
			}
			if !yield(value, nil) {
				return
			}
		}
	}
}

// storeRow writes a row into the struct of a plan.
func storeRow(plan *rowjson.Plan, row Row) error {
	if wrong := plan.Store(row.row); wrong != nil {
		return newScanError(wrong)
	}
	return nil
}

// inRow sets the row of a ScanError.
func inRow(number int64, err error) error {
	var scanning *ScanError
	if errors.As(err, &scanning) {
		scanning.Row = number
	}
	return err
}

// newScanPlan returns the plan for the columns of a row, or an error that names what prevents it.
func newScanPlan(target any, row Row) (*rowjson.Plan, error) {
	plan, err := scanned.Plan(target, row.row)
	var missing *rowjson.ColumnError
	switch {
	case err == nil:
		return plan, nil
	case errors.As(err, &missing):
		return nil, newScanError(missing)
	default:
		return nil, fmt.Errorf("webdelivery: Scan %w", err)
	}
}

// DimensionsOf lists the columns that T takes by its tags, in the order of its fields, so that a query can be derived
// from the struct. The metric hits is left out, as it is no dimension. It is nil for what is no struct with such tags.
func DimensionsOf[T any]() []string {
	var names []string
	for _, name := range scanned.Columns(reflect.TypeFor[T]()) {
		if name != MetricHits && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// ScanError is a value that does not fit its field, or a column that is missing.
type ScanError struct {
	Row    int64  // from 1
	Column string // its name
	Value  string // as it stands in the reply, in JSON, clipped; "" when the column is missing
	Err    error  // what is wrong; Unwrap gives it
}

// Error names row, column and value, and what is wrong with it, on one line.
func (e *ScanError) Error() string {
	return fmt.Sprintf("webdelivery: row %d, column %s, value %s: %v", e.Row, redact.Line(e.Column), redact.Line(e.Value), e.Err)
}

// Unwrap gives what is wrong with the value.
func (e *ScanError) Unwrap() error { return e.Err }

func (e *ScanError) outcomeOfWrite() Outcome { return OutcomeNotApplied }

func newScanError(e *rowjson.ColumnError) *ScanError {
	return &ScanError{Column: e.Column, Value: e.Value, Err: e.Err}
}
