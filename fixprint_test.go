package webdelivery_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
)

const packagePath = "github.com/webdelivery/webdelivery-go"

// everyPrint prints a value in every way there is.
func everyPrint(v any) string {
	odd := ""
	for _, view := range views(v) {
		if reflect.TypeOf(view) != reflect.TypeFor[holder]() { // no type can guard the pointers in a holder from verbs that are not for structs
			odd += fmt.Sprintf("%s\n%q\n%d\n%x\n", view, view, view, view)
		}
	}
	return usualPrint(v) + odd
}

// usualPrint prints a value in the ways that programs use.
func usualPrint(v any) string {
	var b bytes.Buffer
	for _, view := range views(v) {
		fmt.Fprintf(&b, "%v\n%+v\n%#v\n", view, view, view)
		encoded, _ := json.Marshal(view)
		b.Write(encoded)
		slog.New(slog.NewTextHandler(&b, nil)).Info("text", "value", view)
		slog.New(slog.NewJSONHandler(&b, nil)).Info("json", "value", view)
	}
	return b.String()
}

// holder is a struct of the user's.
type holder struct {
	Field any `json:"field"`
}

// views returns the value, its target, and a struct of the user's that contains it.
func views(v any) []any {
	all := []any{v, holder{v}}
	if p := reflect.ValueOf(v); p.Kind() == reflect.Pointer && !p.IsNil() && p.Elem().Type().PkgPath() == packagePath {
		all = append(all, p.Elem().Interface())
	}
	return all
}
