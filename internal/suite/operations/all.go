package operations

import "slices"

// All returns all operations, grouped by area.
func All() []Operation {
	return slices.Concat(calls(), sessions(), tasks(), purges(), networkLists(), statistics())
}

// Distinct returns one operation for each declared method and variant, because the families of statistics share their
// methods. Tests use it to combine operations with many other cases.
func Distinct() []Operation {
	declared, seen := map[string]string{}, map[string]bool{}
	for _, method := range Methods() {
		declared[method.Name] = method.Go
	}
	return slices.DeleteFunc(All(), func(o Operation) bool {
		key := declared[o.Name] + " " + o.Variant
		again := seen[key]
		seen[key] = true
		return again
	})
}
