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
		return store{set: func(v Value) error { return storeNumber(p, known, v) }}
	case *time.Time:
		known := new(wire.Date)
		return store{set: func(v Value) (err error) { *p, err = v.time(known); return err }, read: readTime(p, known)}
	case *netip.Addr:
		known := newTexts()
		return store{set: func(v Value) (err error) { *p, err = v.addr(known); return err }, read: readAddr(p)}
	case *netip.Prefix:
		known := newTexts()
		return store{set: func(v Value) (err error) { *p, err = netip.ParsePrefix(known.of(v)); return err }}
	case *netip.AddrPort:
		known := newTexts()
		return store{set: func(v Value) (err error) {
			if *p, err = netip.ParseAddrPort(known.of(v)); err == nil && v.isBroken() {
				err = v.isNo("IP address with a port")
			}
			return err
		}}
	case encoding.TextUnmarshaler:
		var text []byte
		return store{set: func(v Value) error {
			field.SetZero()                      // it may keep parts of the value before, which was returned
			text = append(text[:0], v.text()...) // it may write over its argument
			return p.UnmarshalText(slices.Clip(text))
		}}
	}
	switch field.Kind() {
	case reflect.Pointer:
		return f.storePointer(field)
	case reflect.String:
		p, known := pointerTo[string](field), newTexts()
		return store{set: func(v Value) error { *p = known.of(v); return nil }, read: readText(p, known)}
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
		return store{set: func(v Value) error {
			f, err := v.float(bits)
			field.SetFloat(f)
			return err
		}}
	default:
		return store{}
	}
}

type (
	signed interface {
		int | int8 | int16 | int32 | int64
	}
	unsigned interface {
		uint | uint8 | uint16 | uint32 | uint64 | uintptr
	}
	integer interface{ signed | unsigned }
)

func storeInt[T signed](field reflect.Value) store {
	p, bits := pointerTo[T](field), field.Type().Bits()
	return store{read: readWhole(p), set: func(v Value) error {
		n, err := v.signed(bits)
		*p = T(n)
		return err
	}}
}

func storeUint[T unsigned](field reflect.Value) store {
	p, bits := pointerTo[T](field), field.Type().Bits()
	return store{read: readWhole(p), set: func(v Value) error {
		n, err := v.unsigned(bits)
		*p = T(n)
		return err
	}}
}

// pointerTo returns a field of a named type as a pointer to its kind, so that no reflection is left for each value.
func pointerTo[T any](field reflect.Value) *T {
	return field.Addr().Convert(reflect.TypeFor[*T]()).Interface().(*T)
}

func storeNumber(p *json.Number, known *texts, v Value) error {
	if v.isText() || v.raw[0] == 't' || v.raw[0] == 'f' {
		return v.isNo("number")
	}
	*p = json.Number(known.of(v))
	return nil
}

// storeBool accepts true and false, in quotes too. What strconv.ParseBool also accepts, such as 1 and "t", is of
// another type.
func storeBool(field reflect.Value) store {
	p := pointerTo[bool](field)
	return store{set: func(v Value) error {
		switch text := string(v.text()); text {
		case "true", "false":
			*p = text == "true"
			return nil
		default:
			return v.isNo("bool")
		}
	}}
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
