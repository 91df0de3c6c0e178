package operations

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"github.com/webdelivery/webdelivery-go"
)

// Method is an exported method that can be reached from a client.
type Method struct {
	Name string // its path from the client: "Tasks.Get", "Stats.Events.All"; for a type that a method creates: "PurgeQueue.Purge"
	Go   string // its declaration: "TasksService.Get", "StatsFamily.Rows"
}

// Methods returns the methods of a client, of its services, and of the values that these create for further calls:
// families of statistics and queues.
func Methods() []Method {
	f := finder{seen: map[reflect.Type]bool{}}
	f.visit(reflect.TypeFor[*webdelivery.Client](), "")
	return f.methods
}

type finder struct {
	methods []Method
	seen    map[reflect.Type]bool
}

// visit lists the methods of the type at a path, and visits the types that they lead to.
func (f *finder) visit(t reflect.Type, way string) {
	f.seen[t] = true
	defer delete(f.seen, t)
	for method := range t.Methods() {
		name := strings.TrimPrefix(way+"."+method.Name, ".")
		f.methods = append(f.methods, Method{name, declarer(t, method.Name) + "." + method.Name})
		for out := range method.Type.Outs() {
			switch {
			case !f.isService(out):
			case strings.Contains(out.Elem().Name(), "["): // a method creates a value of this type
				f.visit(out, name)
			default:
				f.visit(out, out.Elem().Name())
			}
		}
	}
	for field := range t.Elem().Fields() {
		if field.IsExported() && !field.Anonymous && f.isService(field.Type) {
			f.visit(field.Type, strings.TrimPrefix(way+"."+field.Name, "."))
		}
	}
}

// isService reports whether a type is called further: one of its methods takes a context, or it leads to such a type.
func (f *finder) isService(t reflect.Type) bool {
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct || t.Elem().PkgPath() != root || f.seen[t] {
		return false
	}
	for method := range t.Methods() {
		if in := method.Type; in.NumIn() > 1 && in.In(1) == reflect.TypeFor[context.Context]() {
			return true
		}
	}
	f.seen[t] = true // types may lead to themselves
	defer delete(f.seen, t)
	return slices.ContainsFunc(reflect.VisibleFields(t.Elem()), func(field reflect.StructField) bool {
		return field.IsExported() && f.isService(field.Type)
	})
}

var root = reflect.TypeFor[webdelivery.Client]().PkgPath()

// declarer returns the type that declares a method: the embedded type, if it has the method.
func declarer(t reflect.Type, method string) string {
	for field := range t.Elem().Fields() {
		embedded := reflect.PointerTo(field.Type)
		if _, has := embedded.MethodByName(method); field.Anonymous && has {
			return declarer(embedded, method)
		}
	}
	name, _, _ := strings.Cut(t.Elem().Name(), "[")
	return name
}
