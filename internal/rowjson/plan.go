package rowjson

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// Fields says which fields of a struct take the values of a row.
type Fields struct {
	Tag   string                   // the key of the struct tag that names the column
	Value func(pointer any) *Value // returns where to keep a whole Value if the pointer to a field is of a type for that; otherwise nil
}

// Columns lists the columns that the fields of a struct type name, in their order, those of embedded structs included.
// It returns nil for other types. A name may come twice.
func (f Fields) Columns(t reflect.Type) []string {
	var names []string
	for _, field := range f.tagged(t) {
		names = append(names, field.Tag.Get(f.Tag))
	}
	return names
}

// Names is Columns with each name once, and without one of them.
func (f Fields) Names(t reflect.Type, without string) []string {
	var names []string
	for _, name := range f.Columns(t) {
		if name != without && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// tagged lists the fields with the tag. As in encoding/json their Go names make no difference, and the fields of an
// embedded struct count unless it has a tag itself. If a column comes at several depths, the outermost fields have it.
// A tag of - means none.
func (f Fields) tagged(t reflect.Type) []reflect.StructField {
	if t.Kind() != reflect.Struct {
		return nil
	}
	fields, depth := f.within(t, nil, nil), map[string]int{}
	for _, field := range fields {
		column := field.Tag.Get(f.Tag)
		if known, ok := depth[column]; !ok || len(field.Index) < known {
			depth[column] = len(field.Index)
		}
	}
	return slices.DeleteFunc(fields, func(field reflect.StructField) bool { return len(field.Index) > depth[field.Tag.Get(f.Tag)] })
}

// within lists the fields with the tag at all depths of a struct, which has an index in the structs around it.
func (f Fields) within(t reflect.Type, index []int, around []reflect.Type) (fields []reflect.StructField) {
	for i := range t.NumField() {
		field, inner := t.Field(i), t.Field(i).Type
		field.Index = append(slices.Clone(index), i)
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem() // of a nil pointer, which Target refuses if there is a tag
		}
		switch tag := field.Tag.Get(f.Tag); {
		case tag != "" && tag != "-":
			fields = append(fields, field)
		case tag == "" && field.Anonymous && inner.Kind() == reflect.Struct && !slices.Contains(around, inner):
			fields = append(fields, f.within(inner, field.Index, append(around, t))...)
		}
	}
	return fields
}

// ColumnError is a value that does not fit its field, or a column that is missing. It holds no secrets.
type ColumnError struct {
	Column string
	Field  string // of the struct, by its Go name
	Type   string // of that field
	Value  string // in JSON; "" if the column is missing
	Err    error  // what is wrong
}

// Error says which column it is, and what is wrong.
func (e *ColumnError) Error() string { return fmt.Sprintf("column %q: %v", e.Column, e.Err) }

// Unwrap returns what is wrong.
func (e *ColumnError) Unwrap() error { return e.Err }

// wrong returns the error of a field.
func (s *step) wrong(value string, err error) *ColumnError {
	return &ColumnError{s.name, s.field.Name, s.field.Type.String(), value, err}
}

// Target is a struct that rows can be written into, whatever their columns.
type Target struct {
	tags   Fields
	into   reflect.Value // the struct
	fields []step
	plan   *Plan   // for the columns of the last row
	writer *writer // of the Reader of these rows; nil for none
}

// Plan writes rows into one struct. It is built once for the columns of a response, so that nothing is looked up for
// each value.
type Plan struct {
	columns *columns
	steps   []step // in the order of the fields
}

// step writes one column into one field.
type step struct {
	column int // of the Plan
	name   string
	field  *reflect.StructField
	store
}

// Target returns a Target for the struct that a pointer points to. It returns an error if that is not a struct, has no
// tagged field, or has a tagged field of an unsupported type.
func (f Fields) Target(pointer any) (*Target, error) {
	value := reflect.ValueOf(pointer).Elem()
	fields := f.tagged(value.Type())
	if len(fields) == 0 {
		return nil, fmt.Errorf("%v is no struct with %s tags", value.Type(), f.Tag)
	}
	target := &Target{tags: f, into: value, fields: make([]step, 0, len(fields))}
	for i := range fields {
		field := &fields[i]
		at, err := value.FieldByIndexErr(field.Index)
		if err != nil || !field.IsExported() {
			return nil, fmt.Errorf("cannot set field %s of %v", field.Name, value.Type())
		}
		s := f.storeFor(at)
		if s.set == nil {
			return nil, fmt.Errorf("cannot read into field %s of %v, a %v", field.Name, value.Type(), field.Type)
		}
		target.fields = append(target.fields, step{name: field.Tag.Get(f.Tag), field: field, store: s})
	}
	return target, nil
}

// Plan returns a Plan that writes rows with the columns of row into the Target. It returns a *ColumnError if row has no
// column of a name.
func (t *Target) Plan(row Row) (*Plan, *ColumnError) {
	plan := &Plan{columns: row.columns(), steps: make([]step, 0, len(t.fields))}
	for _, s := range t.fields {
		column, ok := plan.columns.index[s.name]
		if !ok {
			return nil, s.wrong("", errors.New("there is no such column"))
		}
		s.column = column
		plan.steps = append(plan.steps, s)
	}
	return plan, nil
}

// Store writes a row into the Target. It returns nil if the row has every column, and each value fits its field. From
// the second row of a Reader on, that Reader writes rows ahead, see [writer].
func (t *Target) Store(row Row) *ColumnError {
	switch {
	case !t.plan.Fits(row):
		var missing *ColumnError
		t.writer = nil
		if t.plan, missing = t.Plan(row); missing != nil {
			return missing
		}
	case t.writer == nil && row.table.arrives:
		t.writer = t.newWriter(t.plan)
		row.table.writer, row.table.written = t.writer, false
	case t.writer != nil && row.table.written && row.table.writer == t.writer:
		t.into.Set(t.writer.into)
		if t.writer.some || t.writer.more {
			return t.plan.store(row, t.writer.left)
		}
		return nil
	}
	return t.plan.Store(row)
}

// Fits reports whether a row has the columns that the Plan was built for. A nil Plan fits no row.
func (p *Plan) Fits(row Row) bool {
	return p != nil && row.table != nil && p.columns == row.table.columns
}

// maxShown bounds how many bytes of a value its error repeats.
const maxShown = 200

// Store writes a row that fits into the struct. It returns nil if every value fits its field.
func (p *Plan) Store(row Row) *ColumnError { return p.store(row, nil) }

// store is Store for the fields that are left; nil means all.
func (p *Plan) store(row Row, left []bool) *ColumnError {
	text, marks := row.table.text, row.marks()
	for i := range p.steps {
		if left != nil && !left[i] {
			continue
		}
		step := &p.steps[i]
		if err := step.put(text, marks); err != nil {
			redactor, value := p.columns.redactor, valueAt(text, marks, step.column)
			return step.wrong(string(redactor.Excerpt(value.Raw(), maxShown)), redactor.Error(err))
		}
	}
	return nil
}

// put writes a value of a row with these marks.
func (s *step) put(text []byte, marks []mark) error {
	value := valueAt(text, marks, s.column)
	if value.raw[0] == 'n' && !s.nulls {
		return errNull
	}
	return s.set(value)
}
