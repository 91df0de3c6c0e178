package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"
)

func TestWithout(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, library, consumer string
		unused                  []string
	}{
		{
			"constant, variable and function", "const C, D = 1, 2\nvar V, W int\nfunc F() {}\nfunc G() {}", "var _ = p.C + p.V\nfunc f() { p.F() }",
			[]string{"const D untyped int = 2", "func G()", "var W int"},
		},
		{
			"the same name of something else", "type A struct{ Name int }\ntype B struct{ Name int }", "var _ p.A\nvar _ = p.B{Name: 1}",
			[]string{"type A struct, Name int"},
		},
		{"a name that is only spelt", "func F() {}", "func F() { F() } // p.F", []string{"func F()"}},
		{"a type that is only inferred", "type T struct{ A int }\nfunc F() T { return T{} }", "var _ = p.F().A", []string{"type T struct"}},
		{
			"fields read, set and shown", "type T struct{ A, B, C int; d int }", "func f(t p.T) { t.A = 1; _ = p.T{B: t.A} }",
			[]string{"type T struct, C int"},
		},
		{"fields by position", "type T struct{ A int }", "var _ = p.T{1}", []string{"type T struct, A int"}},
		{
			"methods called, as values and as expressions", "type T int\nfunc (T) M() {}\nfunc (*T) N() {}\nfunc (T) O() {}\nfunc (T) P() {}",
			"var t p.T\nvar _ = t.M\nvar _ = (*p.T).N\nfunc f() { t.O() }",
			[]string{"method (T) P()"},
		},
		{
			"a method through an interface", "type T int\nfunc (T) String() string { return \"\" }",
			"var s interface{ String() string } = p.T(1)\nvar _ = s.String()",
			[]string{"method (T) String() string"},
		},
		{
			"the same method of another type", "type T int\nfunc (T) M() {}\ntype U int\nfunc (U) M() {}", "func f(p.U) { p.T(1).M() }",
			[]string{"method (U) M()"},
		},
		{"methods of an interface", "type I interface { M(); N() }", "func f(i p.I) { i.M() }", []string{"type I interface, N()"}},
		{
			"an interface implemented, not called", "type I interface { M() }", "type t int\nfunc (t) M() {}\nvar _ p.I = t(1)",
			[]string{"type I interface, M()"},
		},
		{
			"the method of what is embedded", "type T struct{}\nfunc (*T) M() {}\ntype U struct{ T }", "func f(u *p.U) { u.T.M() }\nvar _ p.T",
			[]string{"method (*U) M()"},
		},
		{
			"the method that embedding gives", "type T struct{}\nfunc (*T) M() {}\ntype U struct{ T }", "func f(u p.U) { u.M() }\nvar _ p.T",
			[]string{"method (*T) M()", "type U struct, embedded T"},
		},
		{
			"generic types", "type T[A any] struct{ F A; G A }\nfunc (*T[A]) M(A) {}\nfunc (*T[A]) N() {}\ntype U[A any] struct{ *T[A] }",
			"func f(t *p.T[int], u p.U[string]) { t.M(t.F); u.N(); _ = u.T }",
			[]string{"method (*T[A any]) N()", "method (U[A any]) M(A)", "type T[A any] struct, G A"},
		},
		{"an alias of the consumer's", "type T struct{}\nfunc (*T) M() {}", "type alias = p.T\nfunc f(a *alias) { a.M() }", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			library, _ := check(t, "package p\n"+tt.library, nil)
			_, info := check(t, "package consumer\nimport \"p\"\n"+tt.consumer+"\nvar _ = p.Imported", library)
			u := newUses()
			u.add(info)
			var unused []string
			for _, line := range each([]*packages.Package{{Types: library}}, u.without) {
				unused = append(unused, line[len("pkg p, "):])
			}
			assert.Equal(t, tt.unused, unused)
		})
	}
}

type importer struct{ library *types.Package }

func (i importer) Import(string) (*types.Package, error) { return i.library, nil }

func check(t *testing.T, source string, library *types.Package) (*types.Package, *types.Info) {
	t.Helper()
	if library == nil {
		source += "\nconst Imported = 1 // so that every consumer uses what it imports"
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "source.go", source, 0)
	require.NoError(t, err)
	info := &types.Info{Uses: make(map[*ast.Ident]types.Object), Selections: make(map[*ast.SelectorExpr]*types.Selection)}
	p, err := (&types.Config{Importer: importer{library}}).Check(file.Name.Name, fset, []*ast.File{file}, info)
	require.NoError(t, err)
	return p, info
}

// Modules on the disk: tests count as uses, and packages that no one imports are listed.
func TestUnused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"library/go.mod":          "module example.com/library\n\ngo 1.26.0\n",
		"library/p.go":            "package p\n\nfunc F() {}\n\nfunc G() {}\n\nfunc H() {}\n",
		"library/q/q.go":          "package q\n\nfunc F() {}\n",
		"library/internal/r/r.go": "package r\n\nfunc F() {}\n",
		"consumer/go.mod":         "module example.com/consumer\n\ngo 1.26.0\n\nrequire example.com/library v0.0.0\n\nreplace example.com/library => ../library\n",
		"consumer/main.go":        "package main\n\nimport p \"example.com/library\"\n\nfunc main() { p.F() }\n",
		"consumer/main_test.go":   "package main\n\nimport (\n\t\"testing\"\n\n\tp \"example.com/library\"\n)\n\nfunc TestG(*testing.T) { p.G() }\n",
		"broken/go.mod":           "module example.com/broken\n\ngo 1.26.0\n",
		"broken/main.go":          "package main\n\nfunc main() { none() }\n",
	} {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	pkgs, err := public([]string{filepath.Join(dir, "library")})
	require.NoError(t, err)
	assert.Equal(t, []string{"pkg p, func F()", "pkg p, func G()", "pkg p, func H()", "pkg q, func F()"}, each(pkgs, surface))

	lines, err := unused(pkgs, filepath.Join(dir, "consumer"))
	require.NoError(t, err)
	assert.Equal(t, []string{"pkg p, func H()", "pkg q, func F()"}, lines)

	_, err = unused(pkgs, filepath.Join(dir, "broken"))
	assert.ErrorContains(t, err, "undefined: none")
}
