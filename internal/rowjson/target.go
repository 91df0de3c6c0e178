package rowjson

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// Fields describes which struct fields receive the values of a row.
type Fields struct {
	Tag   string                   // key of the struct tag with the name of the column
	Value func(pointer any) *Value // for a pointer to a field that keeps a whole Value, returns that Value; otherwise nil
}

// Names returns the columns in the tags of a struct type, in field order and including embedded structs, each once and
// except without. It returns nil for other types.
func (f Fields) Names(t reflect.Type, without string) []string {
	var names []string
	for _, field := range f.tagged(t) {
		if name := field.Tag.Get(f.Tag); name != without && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// tagged returns the fields with the tag. It includes the fields of an embedded struct unless that has a tag itself. If
// a column occurs at several depths, only the outermost fields count. A tag of - means none.
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

// within returns the fields with the tag at all depths of t. index is the index of t in the outermost struct, and
// around are the structs that t is embedded in.
func (f Fields) within(t reflect.Type, index []int, around []reflect.Type) (fields []reflect.StructField) {
	for i := range t.NumField() {
		field, inner := t.Field(i), t.Field(i).Type
		field.Index = append(slices.Clone(index), i)
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem() // Target refuses tags within it, because the pointer is nil
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

// Misfit says that a value does not fit its field, or that a column is missing. It contains no secrets.
type Misfit struct {
	Column string
	Field  string // Go name of the struct field
	Type   string // type of that field
	Value  string // in JSON; "" if the column is missing
	Err    error  // what is wrong
}

// wrong returns the error for a field.
func (s *step) wrong(value string, err error) *Misfit {
	return &Misfit{s.name, s.field.Name, s.field.Type.String(), value, err}
}

// Target is a struct that rows with any columns can be written into.
type Target struct {
	tags    Fields
	into    reflect.Value  // the struct
	steps   []step         // in the order of the fields
	columns *columns       // of the last row, for which steps were resolved; nil if a column was missing
	writer  *writer        // for the Reader of these rows; may be nil
	copy    func(from any) // writes the struct that from points to into the Target's
}

// step writes one column into one field.
type step struct {
	name   string // of the column
	column int    // its index, resolved once for all rows of a response
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
	target := &Target{copy: func(from any) { value.Set(reflect.ValueOf(from).Elem()) }, tags: f, into: value, steps: make([]step, 0, len(fields))}
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

// TargetOf is Target for a struct of a known type. It copies rows without reflection.
func TargetOf[T any](f Fields, into *T) (*Target, error) {
	target, err := f.Target(into)
	if err == nil {
		target.copy = func(from any) { *into = *from.(*T) } // see newWriter
	}
	return target, err
}

// find resolves the columns of the steps. It returns an error if one is missing.
func (t *Target) find(c *columns) *Misfit {
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

// Store writes a row into the Target. It returns an error if a column is missing or a value does not fit its field.
// From the second row of a Reader on, that Reader writes rows in advance; see [writer].
func (t *Target) Store(row Row) *Misfit {
	switch columns := row.columns(); {
	case t.columns != columns:
		if missing := t.find(columns); missing != nil {
			return missing
		}
	case t.writer == nil && row.table.arrives:
		t.writer = t.newWriter(len(columns.names))
		row.table.writer, row.table.written = t.writer, false
	case row.table.written && row.table.writer == t.writer:
		t.copy(t.writer.into)
		if t.writer.left == 0 {
			return nil
		}
		return t.store(row, t.writer.left)
	}
	return t.store(row, allFields)
}

// maxShown is the maximum number of bytes of a value in its error.
const maxShown = 200

// store writes the fields in left.
func (t *Target) store(row Row, left fieldSet) *Misfit {
	for i := range t.steps {
		if left&(fieldSet(1)<<min(i, others)) == 0 {
			continue
		}
		step, err := &t.steps[i], errNull
		var value Value
		if left == allFields {
			value = row.At(step.column)
		} else {
			value = t.writer.cells[step.column].value
		}
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
