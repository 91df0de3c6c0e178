package operations

import (
	"slices"
	"strings"
)

// All returns all operations, grouped by area.
func All() []Operation {
	return slices.Concat(calls(), sessions(), tasks(), purges(), networkLists(), statistics())
}

// Distinct returns one operation for each method and variant of all families of statistics, because these share their
// methods. Tests use it to combine operations with many other cases.
func Distinct() []Operation {
	seen := map[string]bool{}
	return slices.DeleteFunc(All(), func(o Operation) bool {
		key := o.String()
		if path := strings.SplitN(key, ".", 3); len(path) == 3 { // Stats, the family, and its method
			key = path[2]
		}
		again := seen[key]
		seen[key] = true
		return again
	})
}
