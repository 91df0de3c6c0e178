package operations

import (
	"reflect"
	"slices"
	"strings"

	"github.com/webdelivery/webdelivery-go"
)

// created are the types that methods of a client create for further calls, by their path.
var created = map[string]reflect.Type{
	"PurgeQueue": reflect.TypeFor[*webdelivery.PurgeQueue](), "Export": reflect.TypeFor[*webdelivery.Export](),
	"Stats.WAFTopK": reflect.TypeFor[*webdelivery.StatsFamily[webdelivery.TopKQuery]](), "Stats.TrafficShapingTopK": reflect.TypeFor[*webdelivery.StatsFamily[webdelivery.TopKQuery]](),
}

// Methods returns the methods of a client, of its services, and of the values that these create for further calls, each by
// its path from the client: "Tasks.Get", "Stats.Events.All"; of a created type "PurgeQueue.Purge".
func Methods() []string {
	found := methodsOf(reflect.TypeFor[*webdelivery.Client](), "")
	for name, of := range created {
		found = append(found, methodsOf(of, name+".")...)
	}
	slices.Sort(found)
	return found
}

// methodsOf lists the methods of a type, and those of its exported fields.
func methodsOf(t reflect.Type, path string) (found []string) {
	for method := range t.Methods() {
		found = append(found, path+method.Name)
	}
	for field := range t.Elem().Fields() {
		if field.IsExported() && field.Type.Kind() == reflect.Pointer && strings.HasPrefix(field.Type.Elem().PkgPath(), root) {
			found = append(found, methodsOf(field.Type, path+field.Name+".")...)
		}
	}
	return found
}

var root = reflect.TypeFor[webdelivery.Client]().PkgPath()
