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

// store writes values into a struct field.
type store struct {
	set   func(Value) error
	nulls bool // set accepts null
	read  read // fast alternative to set for most values; may be nil
}

var errNull = errors.New("null does not fit; make the field a pointer, which is nil then")

// storeFor returns the store for a field, or the zero store if the type is not supported.
func (f Fields) storeFor(field reflect.Value) store {
	pointer := field.Addr().Interface()
	if whole := f.Value(pointer); whole != nil {
		return store{set: func(v Value) error { *whole = v.Clone(); return nil }, nulls: true}
	}
	switch p := pointer.(type) {
	case *json.Number:
		cache := newTexts()
		return store{set: func(v Value) error {
			if v.isText() || !beginsNumber(v.raw) {
				return v.isNot("a number")
			}
			*p = json.Number(cache.of(v))
			return nil
		}}
	case *time.Time:
		last := new(wire.Date)
		return store{set: func(v Value) (err error) { *p, err = v.TimeAfter(last); return err }, read: readTime(p, last)}
	case *netip.Addr:
		cache := newTexts()
		return store{set: func(v Value) (err error) { *p, err = v.addr(cache); return err }, read: readAddr(p)}
	case *netip.Prefix:
		cache := newTexts()
		return store{set: func(v Value) (err error) {
			if *p, err = netip.ParsePrefix(cache.of(v)); err != nil {
				return v.isNot("a CIDR range")
			}
			return nil
		}}
	case encoding.TextUnmarshaler:
		var text []byte
		return store{set: func(v Value) error {
			field.SetZero()                      // it may share memory with the previous value, which was returned
			text = append(text[:0], v.text()...) // it may modify its argument
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
		p, cache := pointerTo[string](field), newTexts()
		return store{set: func(v Value) error { *p = cache.of(v); return nil }, read: readText(p, cache)}
	case reflect.Bool: // strconv.ParseBool would also accept 1 and "t"
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

// wholes maps integer kinds to functions that return the store for a field.
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

// pointerTo returns a pointer to a field of kind T, so that writing a value needs no reflection.
func pointerTo[T any](field reflect.Value) *T {
	return field.Addr().Convert(reflect.TypeFor[*T]()).Interface().(*T)
}

// storePointer returns the store for a pointer field. It allocates each value, because the previous row may still be in
// use.
func (f Fields) storePointer(field reflect.Value) store {
	if to := field.Type().Elem(); to.Kind() == reflect.Pointer && to.Name() != "" { // the type may be recursive
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
