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

// Names lists the columns that the fields of a struct type name, in their order, those of embedded structs included. It
// lists each column once, and leaves one out. It returns nil for other types.
func (f Fields) Names(t reflect.Type, without string) []string {
	var names []string
	for _, field := range f.tagged(t) {
		if name := field.Tag.Get(f.Tag); name != without && !slices.Contains(names, name) {
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
	tags    Fields
	into    reflect.Value // the struct
	steps   []step        // in the order of the fields
	columns *columns      // of the last row, for which the steps were found; nil if one is missing
	writer  *writer       // of the Reader of these rows; nil for none
}

// step writes one column into one field.
type step struct {
	name   string // of the column
	column int    // its index, which is looked up once for all rows of a response
	field  *reflect.StructField
	store
}

// Target returns a Target for the struct that a pointer points to. It returns an error if that is not a struct, has no
// tagged field, or has a tagged field of an unsupported type.
func (f Fields) Target(pointer any) (*Target, error) {
	value := reflect.ValueOf(pointer).Elem()
	fields := f.tagged(value.Type())
	if len(fields) == 0 {
		return nil, fmt.Errorf("%v is not a struct with %s tags", value.Type(), f.Tag)
	}
	target := &Target{tags: f, into: value, steps: make([]step, 0, len(fields))}
	for i := range fields {
		field := &fields[i]
		at, err := value.FieldByIndexErr(field.Index)
		if err != nil || !field.IsExported() {
			return nil, fmt.Errorf("cannot set field %s of %v: it is not exported, or in an embedded pointer; embed the struct by value", field.Name, value.Type())
		}
		s := f.storeFor(at)
		if s.set == nil {
			return nil, fmt.Errorf("cannot read into field %s of %v, a %v", field.Name, value.Type(), field.Type)
		}
		target.steps = append(target.steps, step{name: field.Tag.Get(f.Tag), field: field, store: s})
	}
	return target, nil
}

// find finds the columns of the steps. It returns an error if one is missing.
func (t *Target) find(c *columns) *ColumnError {
	t.columns, t.writer = nil, nil
	for i := range t.steps {
		s, ok := &t.steps[i], false
		if s.column, ok = c.index[s.name]; !ok {
			return s.wrong("", errors.New("there is no such column"))
		}
	}
	t.columns = c
	return nil
}

// Store writes a row into the Target. It returns nil if the row has every column, and each value fits its field. From
// the second row of a Reader on, that Reader writes rows ahead, see [writer].
func (t *Target) Store(row Row) *ColumnError {
	switch columns := row.columns(); {
	case t.columns != columns:
		if missing := t.find(columns); missing != nil {
			return missing
		}
	case t.writer == nil && row.table.arrives:
		t.writer = t.newWriter(len(columns.names))
		row.table.writer, row.table.written = t.writer, false
	case t.writer != nil && row.table.written && row.table.writer == t.writer:
		t.into.Set(t.writer.into)
		if t.writer.left == 0 {
			return nil
		}
		return t.store(row, t.writer.left)
	}
	return t.store(row, allFields)
}

// maxShown bounds how many bytes of a value its error repeats.
const maxShown = 200

// store writes the fields that are left.
func (t *Target) store(row Row, left fieldSet) *ColumnError {
	text, marks := row.table.text, row.marks()
	for i := range t.steps {
		if !left.has(i) {
			continue
		}
		step, err := &t.steps[i], errNull
		value := valueAt(text, marks, step.column)
		if value.raw[0] != 'n' || step.nulls {
			err = step.set(value)
		}
		if err != nil {
			redactor := t.columns.redactor
			return step.wrong(string(redactor.Excerpt(value.Raw(), maxShown)), redactor.Error(err))
		}
	}
	return nil
}
