package webdelivery_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// harmless are types of other packages that call no code of the user's.
var harmless = []string{
	"context.Context", "http.Header", "io.Reader", "json.Number", "json.RawMessage", "netip.Addr", "netip.Prefix", "slog.Value",
	"time.Duration", "time.Time", "fmt.State",
}

// Parameters, fields and methods that are functions, interfaces, or types of other packages can bring code of the
// user's into a client. Each is in the table of TestCodeOfUsers, or here with the reason why it need not be.
func TestEveryWayInForCodeOfUsers(t *testing.T) {
	t.Parallel()
	tried := map[string][]string{
		"WithHTTPClient client *http.Client": {inTransport, inBody, inClose, inDialer, inJar},
		"WithLogger logger *slog.Logger":     {inEnabled, inHandle},
		"WithPurgeLimiter limiter Limiter":   {inWait},
		"Limiter.Wait":                       {inWait},
		"PermitLimiter.Acquire":              {inAcquire},
		"PermitLimiter.Limiter":              {inWait},
		"Permit.Done":                        {inDone, inDoneOverdue},
		"pauser.Pause":                       {inPause},
		"QueueOptions.OnStats":               {inOnStats},
		"PurgeQueue.PurgeFrom take func(context.Context) ([][]PurgeURI, error)": {inTake},
		"OnProgress f func(Progress)":                                           {inOnProgress},
		"OnSummary f func(StreamSummary)":                                       {inOnSummary},
		"Client.Do in any":                                                      {inMarshal},
		"Client.Do out any":                                                     {inUnmarshal},
		"Scan T any":                                                            {inScan},
		"Scan rows iter.Seq2[Row, error]":                                       {inRows},
		"Collect seq iter.Seq2[T, error]":                                       {inRows},
	}
	var found []string
	for _, name := range waysIn(t) {
		if strings.HasSuffix(name, "Option") || name == "DimensionsOf T any" || name == "Collect T any" {
			continue // an option has a parameter that no user can name; DimensionsOf and Collect call nothing of T
		}
		found = append(found, name)
		for _, place := range tried[name] {
			assert.Contains(t, places, place)
		}
	}
	assert.Equal(t, slices.Sorted(maps.Keys(tried)), found, "TestCodeOfUsers tries what is set by these")
}

// waysIn returns them, from the source of the package.
func waysIn(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var found []string
	declared := map[string]ast.Expr{}
	var parsed []*ast.File
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		parsed = append(parsed, f)
		ast.Inspect(f, func(n ast.Node) bool {
			if d, ok := n.(*ast.TypeSpec); ok {
				declared[d.Name.Name] = d.Type
			}
			return true
		})
	}
	// calls reports whether a value of the type may lead to code of the user's.
	var calls func(e ast.Expr) bool
	calls = func(e ast.Expr) bool {
		switch e := e.(type) {
		case *ast.FuncType:
			return true
		case *ast.InterfaceType:
			return !slices.ContainsFunc(e.Methods.List, func(m *ast.Field) bool { return len(m.Names) > 0 && !m.Names[0].IsExported() })
		case *ast.SelectorExpr:
			return !slices.Contains(harmless, types.ExprString(e)) && types.ExprString(e) != "filters.Expr" // only package filters implements it
		case *ast.Ident:
			switch under := declared[e.Name].(type) {
			case *ast.FuncType, *ast.InterfaceType:
				return calls(under)
			}
			return e.Name == "any"
		case *ast.StarExpr:
			return calls(e.X)
		case *ast.Ellipsis:
			return calls(e.Elt)
		case *ast.ArrayType:
			return calls(e.Elt)
		case *ast.MapType:
			return calls(e.Key) || calls(e.Value)
		case *ast.ChanType:
			return true
		case *ast.IndexExpr:
			return calls(e.X)
		case *ast.IndexListExpr:
			return calls(e.X)
		default:
			return false
		}
	}
	fields := func(owner string, list *ast.FieldList, parameters bool) {
		if list == nil {
			return
		}
		for _, field := range list.List {
			if !calls(field.Type) {
				continue
			}
			names := field.Names
			if len(names) == 0 { // embedded
				names = []*ast.Ident{{Name: types.ExprString(field.Type)}}
			}
			for _, name := range names {
				switch {
				case parameters:
					found = append(found, owner+" "+name.Name+" "+types.ExprString(field.Type))
				case name.IsExported():
					found = append(found, owner+"."+name.Name)
				}
			}
		}
	}
	for _, f := range parsed {
		for _, decl := range f.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				name, visible := d.Name.Name, d.Name.IsExported()
				if d.Recv != nil {
					receiver := strings.TrimPrefix(types.ExprString(d.Recv.List[0].Type), "*")
					receiver, _, _ = strings.Cut(receiver, "[")
					name, visible = receiver+"."+name, visible && ast.IsExported(receiver)
				}
				if visible {
					fields(name, d.Type.TypeParams, true)
					fields(name, d.Type.Params, true)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					s, ok := spec.(*ast.TypeSpec)
					if !ok {
						continue
					}
					switch typ := s.Type.(type) {
					case *ast.StructType:
						if s.Name.IsExported() {
							fields(s.Name.Name, typ.Fields, false)
						}
					case *ast.InterfaceType: // also interfaces that are only queried
						if calls(typ) {
							fields(s.Name.Name, typ.Methods, false)
						}
					}
				}
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
