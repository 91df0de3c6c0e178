package operations

import "slices"

// All returns every operation, area by area.
func All() []Operation {
	return slices.Concat(calls(), sessions(), tasks(), purges(), networkLists(), statistics())
}

// Distinct returns one operation for each method as it is declared, and each variant: the families of statistics share
// their methods. It is for tests that make a product of operations and much else.
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
