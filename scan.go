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
	"time"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// statsTag names the column of a struct field.
const statsTag = "stats"

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
// from the struct. The metric hits is left out, as it is no dimension. It is nil for what is no struct with such tags.
func DimensionsOf[T any]() []string {
	var names []string
	for _, field := range taggedFields(reflect.TypeFor[T]()) {
		if name := field.Tag.Get(statsTag); name != MetricHits && !slices.Contains(names, name) {
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
	scanStore
}

// scanStore writes a value into a field.
type scanStore struct {
	store func(Value) error
	nulls bool // it takes null too
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
		if store.store == nil {
			return nil, fmt.Errorf("webdelivery: Scan cannot read into field %s of %v, a %v", field.Name, value.Type(), field.Type)
		}
		plan.steps = append(plan.steps, scanStep{column, name, store})
	}
	return plan, nil
}

func (p *scanPlan) store(row Row) error {
	text, marks := row.table.text, row.marks()
	for i := range p.steps {
		step := &p.steps[i]
		value := valueAt(text, marks, step.column)
		err := errNull
		if step.nulls || value.raw[0] != 'n' {
			err = step.store(value)
		}
		if err != nil {
			auth := p.columns.auth
			return &ScanError{Column: step.name, Value: string(auth.excerpt(value.Raw(), maxShown, false)), Err: auth.redactError(err)}
		}
	}
	return nil
}

func (s *scanStore) set(v Value) error {
	if !s.nulls && v.IsNull() {
		return errNull
	}
	return s.store(v)
}

func (r Row) columns() *columns {
	if r.table == nil {
		return &columns{}
	}
	return r.table.columns
}

var errNull = errors.New("null, and the field is no pointer")

// storeFor makes the function that writes a value into a field; none for a type that no value can be read into.
func storeFor(field reflect.Value) scanStore {
	switch p := field.Addr().Interface().(type) {
	case *Value:
		return scanStore{func(v Value) error { p.raw = bytes.Clone(v.raw); return nil }, true}
	case *json.Number:
		return scanStore{store: func(v Value) error { return storeNumber(p, v) }}
	case *time.Time:
		known := new(wire.Date)
		return scanStore{store: func(v Value) (err error) { *p, err = v.time(known); return err }}
	case *netip.Addr:
		known := new(texts)
		return scanStore{store: func(v Value) (err error) { *p, err = v.addr(known); return err }}
	case *netip.Prefix:
		return scanStore{store: func(v Value) (err error) { *p, err = netip.ParsePrefix(v.String()); return err }}
	case encoding.TextUnmarshaler:
		return scanStore{store: func(v Value) error {
			field.SetZero() // it may keep parts of the value before, which was handed out
			return p.UnmarshalText(slices.Clip(v.text()))
		}}
	}
	switch field.Kind() {
	case reflect.Pointer:
		return storePointer(field)
	case reflect.String:
		p, known := pointerTo[string](field), new(texts)
		return scanStore{store: func(v Value) error { *p = known.of(v); return nil }}
	case reflect.Bool:
		return storeBool(field)
	case reflect.Int:
		return storeInt[int](field)
	case reflect.Int8:
		return storeInt[int8](field)
	case reflect.Int16:
		return storeInt[int16](field)
	case reflect.Int32:
		return storeInt[int32](field)
	case reflect.Int64:
		return storeInt[int64](field)
	case reflect.Uint:
		return storeUint[uint](field)
	case reflect.Uint8:
		return storeUint[uint8](field)
	case reflect.Uint16:
		return storeUint[uint16](field)
	case reflect.Uint32:
		return storeUint[uint32](field)
	case reflect.Uint64:
		return storeUint[uint64](field)
	case reflect.Uintptr:
		return storeUint[uintptr](field)
	case reflect.Float32, reflect.Float64:
		bits := field.Type().Bits()
		return scanStore{store: func(v Value) error {
			f, err := v.float(bits)
			field.SetFloat(f)
			return err
		}}
	default:
		return scanStore{}
	}
}

func storeInt[T int | int8 | int16 | int32 | int64](field reflect.Value) scanStore {
	p, bits := pointerTo[T](field), field.Type().Bits()
	return scanStore{store: func(v Value) error {
		if n, ok := wire.PlainInt(v.raw); ok && int64(T(n)) == n {
			*p = T(n)
			return nil
		}
		n, err := v.signed(bits)
		*p = T(n)
		return err
	}}
}

func storeUint[T uint | uint8 | uint16 | uint32 | uint64 | uintptr](field reflect.Value) scanStore {
	p, bits := pointerTo[T](field), field.Type().Bits()
	return scanStore{store: func(v Value) error {
		n, err := v.unsigned(bits)
		*p = T(n)
		return err
	}}
}

// texts are short texts without escapes that a column has had lately. A column of countries or actions has few, and each
// is made once.
type texts [256]string

const longText = 64

// of is the String of a value.
func (t *texts) of(v Value) string {
	if t == nil || !v.isText() {
		return v.String()
	}
	text := v.inner()
	n := len(text)
	if n == 0 || n > longText {
		return v.String()
	}
	// What texts of a column differ in is mostly their length, or at their end.
	at := uint(n) + uint(text[n-1]) + 31*uint(text[max(n-2, 0)]) + 7*uint(text[n/2])
	known := &t[at%uint(len(t))]
	if *known != string(text) {
		if bytes.IndexByte(text, '\\') >= 0 {
			return v.String()
		}
		*known = string(text)
	}
	return *known
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

// storeBool takes true and false, in quotes too. What strconv.ParseBool takes beyond, as 1 and "t", is another type.
func storeBool(field reflect.Value) scanStore {
	p := pointerTo[bool](field)
	return scanStore{store: func(v Value) error {
		switch text := string(v.text()); text {
		case "true", "false":
			*p = text == "true"
			return nil
		default:
			return v.isNo("bool")
		}
	}}
}

// storePointer makes a new target for each value, because the row before may still be in use.
func storePointer(field reflect.Value) scanStore {
	target := reflect.New(field.Type().Elem()).Elem()
	inner := storeFor(target)
	if inner.store == nil {
		return scanStore{}
	}
	return scanStore{func(v Value) error {
		if v.IsNull() {
			field.SetZero()
			return nil
		}
		target.SetZero()
		if err := inner.set(v); err != nil {
			return err
		}
		fresh := reflect.New(target.Type())
		fresh.Elem().Set(target)
		field.Set(fresh)
		return nil
	}, true}
}
