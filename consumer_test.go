package webdelivery_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/operations"
)

// testdata/consumer calls every method of a client. make api-check checks that it uses all other names too; that
// takes longer.
func TestTheConsumerCallsEveryMethod(t *testing.T) {
	t.Parallel()
	const path = "github.com/webdelivery/webdelivery-go"
	files := token.NewFileSet()
	packages := onlyThis{}
	packages[path], _ = check(t, files, ".", path, packages)
	_, selections := check(t, files, "testdata/consumer", "consumer", packages)

	called := map[string]bool{}
	for _, selection := range selections {
		if method, ok := selection.Obj().(*types.Func); ok {
			called[nameOfMethod(method)] = true
		}
	}
	for _, method := range operations.Methods() {
		assert.True(t, called[method.Go], "testdata/consumer does not call %s", method.Go)
	}
}

// check reads the package of a folder without its tests. It leaves imports of other packages empty: the selections
// and the types of these packages are known without them.
func check(t *testing.T, files *token.FileSet, folder, path string, packages types.Importer) (*types.Package, map[*ast.SelectorExpr]*types.Selection) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	require.NoError(t, err)
	var sources []*ast.File
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") {
			source, err := parser.ParseFile(files, name, nil, 0)
			require.NoError(t, err)
			sources = append(sources, source)
		}
	}
	info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}}
	config := types.Config{Importer: packages, Error: func(error) {}}
	checked, _ := config.Check(path, files, sources, info)
	require.NotNil(t, checked)
	return checked, info.Selections
}

// onlyThis contains the packages that are read; every other package is empty.
type onlyThis map[string]*types.Package

// Import implements [types.Importer].
func (p onlyThis) Import(path string) (*types.Package, error) {
	if p[path] == nil {
		empty := types.NewPackage(path, path[strings.LastIndexByte(path, '/')+1:])
		empty.MarkComplete()
		return empty, nil
	}
	return p[path], nil
}

// nameOfMethod returns the receiver's type and the name, as in operations.Method.
func nameOfMethod(method *types.Func) string {
	receiver := method.Origin().Signature().Recv()
	if receiver == nil {
		return method.Name()
	}
	of := receiver.Type()
	if pointer, ok := of.(*types.Pointer); ok {
		of = pointer.Elem()
	}
	if named, ok := of.(*types.Named); ok {
		return named.Obj().Name() + "." + method.Name()
	}
	return method.Name()
}
