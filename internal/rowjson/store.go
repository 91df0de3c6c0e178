package rowjson

import (
	"encoding"
	"encoding/json"
	"errors"
	"net/netip"
	"reflect"
	"slices"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// store writes values into a field.
type store struct {
	set   func(Value) error
	nulls bool // set takes null too
	read  read // spares a call of set for most values; nil for none
}

var errNull = errors.New("null does not fit; make the field a pointer, which is nil then")

// storeFor returns the store of a field; the zero store for a type that no value can be read into.
func (f Fields) storeFor(field reflect.Value) store {
	pointer := field.Addr().Interface()
	if whole := f.Value(pointer); whole != nil {
		return store{set: func(v Value) error { *whole = v.Clone(); return nil }, nulls: true}
	}
	switch p := pointer.(type) {
	case *json.Number:
		known := newTexts()
		return store{set: func(v Value) error {
			if v.isText() || !beginsNumber(v.raw) {
				return v.isNot("a number")
			}
			*p = json.Number(known.of(v))
			return nil
		}}
	case *time.Time:
		known := new(wire.Date)
		return store{set: func(v Value) (err error) { *p, err = v.time(known); return err }, read: readTime(p, known)}
	case *netip.Addr:
		known := newTexts()
		return store{set: func(v Value) (err error) { *p, err = v.addr(known); return err }, read: readAddr(p)}
	case *netip.Prefix:
		known := newTexts()
		return store{set: func(v Value) (err error) { *p, err = netip.ParsePrefix(known.of(v)); return err }}
	case encoding.TextUnmarshaler:
		var text []byte
		return store{set: func(v Value) error {
			field.SetZero()                      // it may keep parts of the value before, which was returned
			text = append(text[:0], v.text()...) // it may write over its argument
			return p.UnmarshalText(slices.Clip(text))
		}}
	}
	if whole := wholes[field.Kind()]; whole != nil {
		return whole(field)
	}
	switch field.Kind() {
	case reflect.Pointer:
		return f.storePointer(field)
	case reflect.String:
		p, known := pointerTo[string](field), newTexts()
		return store{set: func(v Value) error { *p = known.of(v); return nil }, read: readText(p, known)}
	case reflect.Bool: // what strconv.ParseBool also accepts, such as 1 and "t", is of another type
		return store{set: func(v Value) error {
			text := string(v.text())
			if field.SetBool(text == "true"); text != "true" && text != "false" {
				return v.isNot("a bool")
			}
			return nil
		}}
	case reflect.Float32, reflect.Float64:
		bits := field.Type().Bits()
		return store{set: func(v Value) error {
			f, err := v.float(bits)
			field.SetFloat(f)
			return err
		}}
	default:
		return store{}
	}
}

type integer interface {
	int | int8 | int16 | int32 | int64 | uint | uint8 | uint16 | uint32 | uint64 | uintptr
}

// wholes has the functions that return the store of a field of whole numbers, by its kind.
var wholes = [reflect.UnsafePointer + 1]func(field reflect.Value) store{
	reflect.Int: storeWhole[int], reflect.Int8: storeWhole[int8], reflect.Int16: storeWhole[int16], reflect.Int32: storeWhole[int32],
	reflect.Int64: storeWhole[int64], reflect.Uint: storeWhole[uint], reflect.Uint8: storeWhole[uint8], reflect.Uint16: storeWhole[uint16],
	reflect.Uint32: storeWhole[uint32], reflect.Uint64: storeWhole[uint64], reflect.Uintptr: storeWhole[uintptr],
}

func storeWhole[T integer](field reflect.Value) store {
	bits := field.Type().Bits()
	return store{read: readWhole(pointerTo[T](field)), set: func(v Value) error {
		if field.CanUint() {
			n, err := v.unsigned(bits)
			field.SetUint(n)
			return err
		}
		n, err := v.signed(bits)
		field.SetInt(n)
		return err
	}}
}

// pointerTo returns a field of a named type as a pointer to its kind, so that no reflection is left for each value.
func pointerTo[T any](field reflect.Value) *T {
	return field.Addr().Convert(reflect.TypeFor[*T]()).Interface().(*T)
}

// storePointer creates a new target for each value, because the row before may still be in use.
func (f Fields) storePointer(field reflect.Value) store {
	if to := field.Type().Elem(); to.Kind() == reflect.Pointer && to.Name() != "" { // it may lead to itself
		return store{}
	}
	target := reflect.New(field.Type().Elem()).Elem()
	inner := f.storeFor(target)
	if inner.set == nil {
		return store{}
	}
	return store{set: func(v Value) error {
		if v.IsNull() {
			field.SetZero()
			return nil
		}
		if err := inner.set(v); err != nil { // v is not null
			return err
		}
		fresh := reflect.New(target.Type())
		fresh.Elem().Set(target)
		field.Set(fresh)
		return nil
	}, nulls: true}
}
