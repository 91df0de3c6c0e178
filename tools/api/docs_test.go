package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

func TestUndocumented(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, source string
		missing      []string
	}{
		{"package", "package p", []string{"package p"}},
		{"function", "func F() {}\nfunc f() {}", []string{"F"}},
		{"directive", "//nolint:all\nfunc F() {}", []string{"F"}},
		{"method", "// T is.\ntype T[A any] struct{}\nfunc (*T[A]) M() {}\ntype u struct{}\nfunc (u) M() {}", []string{"M"}},
		{"constant", "// A is.\nconst A = 1\nconst B = 1 // is too\nconst C = 1", []string{"C"}},
		{"group", "// These are.\nconst (\n\tA = 1 // is\n\t// B is.\n\tB = 2\n\tC, d = 3, 4\n)", []string{"C"}},
		{"variable", "var V, W int", []string{"V", "W"}},
		{"type", "type T int", []string{"T"}},
		{"types", "// These are.\ntype (\n\tT int\n)", []string{"T"}},
		{"field", "// T is.\ntype T struct {\n\tA int // is\n\t// B is.\n\tB, b int\n\tC, D int\n\te int\n}", []string{"C", "D"}},
		{"field of a field", "// T is.\ntype T struct {\n\tA struct{ B int } // is\n}", []string{"B"}},
		{"embedded", "// T is.\ntype T struct {\n\t*p.U[int]\n\tv\n}", []string{"U"}},
		{"nobody's field", "type t struct{ A int }", nil},
		{"interface", "// T is.\ntype T interface {\n\tA()\n\tB() // is\n\tc()\n\tfmt.Stringer\n}", []string{"A"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			source := tt.source
			if !strings.HasPrefix(source, "package") {
				source = "// Package p is.\npackage p\n\n" + source
			}
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, "p.go", source, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			var missing []string
			for _, line := range undocumented(&packages.Package{Fset: fset, Syntax: []*ast.File{file}}) {
				_, name, _ := strings.Cut(strings.TrimSuffix(line, " has no comment"), ": ")
				missing = append(missing, name)
			}
			if !slices.Equal(missing, tt.missing) {
				t.Errorf("missing %v, want %v", missing, tt.missing)
			}
		})
	}
}
