package webdelivery

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"time"
)

// statsTag names the column of a struct field.
const statsTag = "stats"

// Scan reads rows into structs: a field with a tag `stats:"name"` takes the value of that column, fields without one are
// left alone. A field can be a string, a bool, any integer or float, time.Time, netip.Addr, netip.Prefix, json.Number,
// [Value], whatever implements encoding.TextUnmarshaler, or a pointer to one of these, which is nil for null.
//
//	type Event struct {
//		Time time.Time  `stats:"event_timestamp_ms"`
//		IP   netip.Addr `stats:"client_ip"`
//	}
//	for event, err := range webdelivery.Scan[Event](client.Stats.Events.All(ctx, query)) { ... }
//
// It ends with the first error: that of the rows, or a [*ScanError] for a column that is missing, a null where none can
// be held, and a value that does not fit.
func Scan[T any](rows iter.Seq2[Row, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var value T
		var plan *scanPlan
		number := int64(0)
		for row, err := range rows {
			number++
			if err == nil && (plan == nil || plan.columns != row.columns()) {
				plan, err = newScanPlan(&value, row)
			}
			if err == nil {
				err = plan.store(row)
			}
			if err != nil {
				var scanning *ScanError
				if errors.As(err, &scanning) {
					scanning.Row = number
				}
				yield(*new(T), err)
				return
			}
			if !yield(value, nil) {
				return
			}
		}
	}
}

// DimensionsOf lists the columns that T takes by its tags, in the order of its fields, so that a query can be derived
// from the struct. The metric hits is left out, as it is no dimension.
func DimensionsOf[T any]() []string {
	var names []string
	for _, field := range taggedFields(reflect.TypeFor[T]()) {
		if name := field.Tag.Get(statsTag); name != MetricHits && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// ScanError is a value that does not fit its field.
type ScanError struct {
	Row    int64  // from 1
	Column string // its name
	Value  string // as it stands in the reply, clipped
	Err    error
}

func (e *ScanError) Error() string {
	return fmt.Sprintf("webdelivery: row %d, column %s, value %s: %v", e.Row, printable(e.Column), printable(e.Value), e.Err)
}

// Unwrap gives what is wrong with the value.
func (e *ScanError) Unwrap() error { return e.Err }

func (e *ScanError) outcomeOfWrite() Outcome { return NotApplied }

// taggedFields lists the fields with a tag, those of embedded structs included.
func taggedFields(t reflect.Type) []reflect.StructField {
	if t.Kind() != reflect.Struct {
		return nil
	}
	var tagged []reflect.StructField
	for _, field := range reflect.VisibleFields(t) {
		if field.Tag.Get(statsTag) != "" {
			tagged = append(tagged, field)
		}
	}
	return tagged
}

// scanPlan says which column goes where. It is made once for a type and the columns of a reply, so that nothing is
// looked up for each value; its stores write to the fields of the one struct that is handed out as a copy.
type scanPlan struct {
	columns *columns
	steps   []scanStep
}

type scanStep struct {
	column int
	name   string
	store  func(Value) error
}

func newScanPlan(target any, row Row) (*scanPlan, error) {
	value := reflect.ValueOf(target).Elem()
	fields := taggedFields(value.Type())
	if len(fields) == 0 {
		return nil, fmt.Errorf("webdelivery: Scan into %v, which is no struct with stats tags", value.Type())
	}
	plan := &scanPlan{columns: row.columns()}
	for _, field := range fields {
		name := field.Tag.Get(statsTag)
		column, ok := plan.columns.index[name]
		if !ok {
			return nil, &ScanError{Column: name, Err: errors.New("there is no such column")}
		}
		at, err := value.FieldByIndexErr(field.Index)
		if err != nil || !field.IsExported() {
			return nil, fmt.Errorf("webdelivery: Scan cannot set field %s of %v", field.Name, value.Type())
		}
		store := storeFor(at)
		if store == nil {
			return nil, fmt.Errorf("webdelivery: Scan cannot read into field %s of %v, a %v", field.Name, value.Type(), field.Type)
		}
		plan.steps = append(plan.steps, scanStep{column, name, store})
	}
	return plan, nil
}

func (p *scanPlan) store(row Row) error {
	for i := range p.steps {
		step := &p.steps[i]
		value := row.At(step.column)
		if err := step.store(value); err != nil {
			auth := p.columns.auth
			return &ScanError{Column: step.name, Value: string(auth.excerpt(value.Raw(), maxShown)), Err: auth.redactError(err)}
		}
	}
	return nil
}

func (r Row) columns() *columns {
	if r.table == nil {
		return &columns{}
	}
	return r.table.columns
}

var errNull = errors.New("null, and the field is no pointer")

// storeFor makes the function that writes a value into a field; nil for a type that no value can be read into.
func storeFor(field reflect.Value) func(Value) error {
	switch p := field.Addr().Interface().(type) {
	case *Value:
		return func(v Value) error { p.raw = bytes.Clone(v.raw); return nil }
	case *json.Number:
		return notNull(func(v Value) error { return storeNumber(p, v) })
	case *time.Time:
		return notNull(func(v Value) (err error) { *p, err = v.Time(); return err })
	case *netip.Addr:
		return notNull(func(v Value) (err error) { *p, err = v.Addr(); return err })
	case *netip.Prefix:
		return notNull(func(v Value) (err error) { *p, err = netip.ParsePrefix(v.String()); return err })
	case encoding.TextUnmarshaler:
		return notNull(func(v Value) error {
			field.SetZero() // it may keep parts of the value before, which was handed out
			return p.UnmarshalText(v.text())
		})
	}
	switch field.Kind() {
	case reflect.Pointer:
		return storePointer(field)
	case reflect.String:
		p := pointerTo[string](field)
		return notNull(func(v Value) error { *p = v.String(); return nil })
	case reflect.Bool:
		p := pointerTo[bool](field)
		return notNull(func(v Value) (err error) { *p, err = strconv.ParseBool(string(v.text())); return err })
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return notNull(func(v Value) error {
			n, err := strconv.ParseInt(string(v.text()), 10, field.Type().Bits())
			field.SetInt(n)
			return err
		})
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return notNull(func(v Value) error {
			n, err := strconv.ParseUint(string(v.text()), 10, field.Type().Bits())
			field.SetUint(n)
			return err
		})
	case reflect.Float32, reflect.Float64:
		return notNull(func(v Value) error {
			f, err := v.float(field.Type().Bits())
			field.SetFloat(f)
			return err
		})
	default:
		return nil
	}
}

func notNull(store func(Value) error) func(Value) error {
	return func(v Value) error {
		if v.IsNull() {
			return errNull
		}
		return store(v)
	}
}

// pointerTo gives a field of a named type by the pointer of its kind, so that no reflection is left for each value.
func pointerTo[T any](field reflect.Value) *T {
	return field.Addr().Convert(reflect.TypeFor[*T]()).Interface().(*T)
}

func storeNumber(p *json.Number, v Value) error {
	if v.isText() || v.raw[0] == 't' || v.raw[0] == 'f' {
		return v.isNo("number")
	}
	*p = json.Number(v.raw)
	return nil
}

// storePointer makes a new target for each value, because the row before may still be in use.
func storePointer(field reflect.Value) func(Value) error {
	target := reflect.New(field.Type().Elem()).Elem()
	store := storeFor(target)
	if store == nil {
		return nil
	}
	return func(v Value) error {
		if v.IsNull() {
			field.SetZero()
			return nil
		}
		target.SetZero()
		if err := store(v); err != nil {
			return err
		}
		fresh := reflect.New(target.Type())
		fresh.Elem().Set(target)
		field.Set(fresh)
		return nil
	}
}
