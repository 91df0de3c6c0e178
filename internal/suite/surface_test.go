package suite_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/lists"
	"github.com/webdelivery/webdelivery-go/internal/outcomes"
)

// exportedDecls yields the exported declarations of the package's files, with their comments.
func exportedDecls(t *testing.T) (decls []*ast.GenDecl, funcs []*ast.FuncDecl) {
	t.Helper()
	files, err := os.ReadDir(root)
	require.NoError(t, err)
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path.Join(root, f.Name()), nil, parser.ParseComments)
		require.NoError(t, err)
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.GenDecl:
				decls = append(decls, d)
			case *ast.FuncDecl:
				if d.Name.IsExported() {
					funcs = append(funcs, d)
				}
			}
		}
	}
	return decls, funcs
}

// Types and constants show nothing of the internal packages in go doc. Fields that are not exported may.
func TestNoDeclarationShowsAnInternalPackage(t *testing.T) {
	t.Parallel()
	inner := func(e ast.Expr) (found string) {
		if e == nil {
			return ""
		}
		ast.Inspect(e, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok {
					if info, err := os.Stat(path.Join(root, "internal", x.Name)); err == nil && info.IsDir() {
						found = x.Name + "." + s.Sel.Name
					}
				}
			}
			return true
		})
		return found
	}
	decls, _ := exportedDecls(t)
	for _, d := range decls {
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if !s.Name.IsExported() {
					continue
				}
				if fields, isStruct := s.Type.(*ast.StructType); isStruct {
					for _, f := range fields.Fields.List {
						if len(f.Names) == 0 || f.Names[0].IsExported() {
							assert.Empty(t, inner(f.Type), s.Name.Name)
						}
					}
				} else {
					assert.Empty(t, inner(s.Type), s.Name.Name)
				}
			case *ast.ValueSpec:
				if d.Tok == token.CONST && s.Names[0].IsExported() {
					for _, v := range s.Values {
						assert.Empty(t, inner(v), s.Names[0].Name)
					}
				}
			}
		}
	}
}

// Constants have the values of the internal packages that read them.
func TestConstantsAgree(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []int{int(outcomes.Unknown), int(outcomes.NotApplied), int(outcomes.Applied)},
		[]int{int(webdelivery.OutcomeUnknown), int(webdelivery.OutcomeNotApplied), int(webdelivery.OutcomeApplied)})
	assert.Equal(t, []webdelivery.RemovalLimit{lists.None, lists.All, lists.Default}, []webdelivery.RemovalLimit{webdelivery.RemoveNone, webdelivery.RemoveAll, webdelivery.RemoveDefault})
}

// The comment of a symbol has at most 15 lines. What is longer is a section of a page.
func TestCommentsAreShort(t *testing.T) {
	t.Parallel()
	check := func(name string, c *ast.CommentGroup) {
		if c == nil {
			return
		}
		lines := 0
		for _, line := range c.List {
			if text := strings.TrimPrefix(line.Text, "//"); text != "" && !strings.HasPrefix(text, " [") {
				lines++
			}
		}
		assert.LessOrEqual(t, lines, 15, name)
	}
	decls, funcs := exportedDecls(t)
	for _, f := range funcs {
		check(f.Name.Name, f.Doc)
	}
	for _, d := range decls {
		for _, spec := range d.Specs {
			if s, ok := spec.(*ast.TypeSpec); ok && s.Name.IsExported() {
				check(s.Name.Name, d.Doc)
			}
		}
	}
}
