package suite_test

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

// scanField is a field of a struct, of an embedded one too.
type scanField struct {
	index  []int
	name   string
	typ    reflect.Type
	column string // "" if Scan must leave the field alone
}

// scanFieldsOf lists the fields that Scan documents to set, and all others as those that it leaves alone.
func scanFieldsOf(t reflect.Type) []scanField {
	var fields []scanField
	var list func(in reflect.Type, at []int)
	list = func(in reflect.Type, at []int) {
		for i := range in.NumField() {
			field := in.Field(i)
			index := append(slices.Clone(at), i)
			column := field.Tag.Get("stats")
			if field.Anonymous && column == "" {
				list(field.Type, index)
				continue
			}
			if column == "-" {
				column = ""
			}
			fields = append(fields, scanField{index, field.Name, field.Type, column})
		}
	}
	list(t, nil)
	for i := range fields {
		if slices.ContainsFunc(fields, func(outer scanField) bool {
			return outer.column == fields[i].column && len(outer.index) < len(fields[i].index)
		}) {
			fields[i].column = "" // a field nearer to the top has the column
		}
	}
	return fields
}

// What fields hold, as values that == compares exactly.
type (
	heldTime struct {
		seconds int64
		nanos   int
		isUTC   bool
	}
	heldValue struct {
		raw, text string
		isNull    bool
	}
	heldFloat struct{ bits uint64 } // with the sign of a zero
	heldOwn   string                // Go syntax of a TextUnmarshaler
	heldKind  string                // a pointer that is nil behind another, or a field that is not Scan's
)

const (
	innerNil  heldKind = "a pointer to a nil pointer"
	untouched heldKind = "untouched"
	touched   heldKind = "touched"
)

var (
	timeType   = reflect.TypeFor[time.Time]()
	valueType  = reflect.TypeFor[webdelivery.Value]()
	numberType = reflect.TypeFor[json.Number]()
	addrType   = reflect.TypeFor[netip.Addr]()
	prefixType = reflect.TypeFor[netip.Prefix]()
	portType   = reflect.TypeFor[netip.AddrPort]()
	ownType    = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func heldAt(t time.Time) heldTime {
	return heldTime{t.Unix(), t.Nanosecond(), t.Location() == time.UTC}
}

// held returns what a field holds.
func (f scanField) held(v reflect.Value) any {
	if f.column != "" {
		return heldIn(v)
	}
	if v.IsZero() {
		return untouched
	}
	return touched
}

func heldIn(v reflect.Value) any {
	switch p := v.Addr().Interface().(type) {
	case *time.Time:
		return heldAt(*p)
	case *webdelivery.Value:
		return heldValue{string(p.Raw()), p.String(), p.IsNull()}
	case *json.Number:
		return *p
	case *netip.Addr:
		return *p
	case *netip.Prefix:
		return *p
	case *netip.AddrPort:
		return *p
	case encoding.TextUnmarshaler:
		return heldOwn(fmt.Sprintf("%#v", v.Interface()))
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		inner := heldIn(v.Elem())
		if inner == nil {
			return innerNil
		}
		return inner
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return v.Bool()
	case reflect.Float32, reflect.Float64:
		return heldFloat{math.Float64bits(v.Float())}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return v.Uint()
	default:
		return v.Int()
	}
}

// wantedIn returns what a field of a type must hold after a value: cell as encoding/json reads it, raw as the response
// has it. It returns false if the value does not fit. The rules are those of the documentation of Scan and Value.
func wantedIn(t reflect.Type, cell any, raw string) (want any, fits bool) {
	var text string
	_, isNumber := cell.(json.Number)
	quoted, isText := cell.(string)
	switch {
	case isText:
		text = quoted
	case cell != nil:
		text = fmt.Sprint(cell) // the digits of a json.Number, true or false
	}
	switch {
	case t == valueType:
		return heldValue{raw, text, cell == nil}, true
	case t.Kind() == reflect.Pointer:
		if cell == nil {
			return nil, true
		}
		return wantedIn(t.Elem(), cell, raw)
	case cell == nil:
		return nil, false
	case t == timeType:
		at, ok := timestampIn(text)
		return heldAt(at), ok && isText
	case t == addrType:
		addr, err := netip.ParseAddr(text)
		return addr, err == nil && isText
	case t == prefixType:
		prefix, err := netip.ParsePrefix(text)
		return prefix, err == nil
	case t == portType:
		port, err := netip.ParseAddrPort(text)
		return port, err == nil || text == "" // which its UnmarshalText takes
	case t == numberType:
		return json.Number(text), isNumber
	case reflect.PointerTo(t).Implements(ownType):
		own := reflect.New(t)
		err := own.Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
		return heldOwn(fmt.Sprintf("%#v", own.Elem().Interface())), err == nil
	default:
		return basicIn(t, text, isNumber || isText && numberForm.MatchString(text))
	}
}

// basicIn converts the text of a value to a kind of Go; asNumber: it is written like a number of JSON.
func basicIn(t reflect.Type, text string, asNumber bool) (want any, fits bool) {
	switch t.Kind() {
	case reflect.String:
		return text, true
	case reflect.Bool:
		return text == "true", text == "true" || text == "false"
	case reflect.Float32, reflect.Float64:
		f, err := strconv.ParseFloat(text, t.Bits())
		return heldFloat{math.Float64bits(f)}, err == nil && asNumber
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		n, err := strconv.ParseUint(text, 10, t.Bits())
		return n, err == nil && asNumber
	default:
		n, err := strconv.ParseInt(text, 10, t.Bits())
		return n, err == nil && asNumber
	}
}

// timestampIn reads a timestamp with or without a fraction and a zone, and with a blank in place of the T, or a date.
func timestampIn(text string) (time.Time, bool) {
	for _, layout := range []string{
		time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05", "2006-01-02",
	} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC(), true
		}
	}
	return time.Time{}, false
}

// numberForm is the grammar of a number in JSON.
var numberForm = regexp.MustCompile(`\A-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?\z`)
