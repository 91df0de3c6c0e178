package webdelivery_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/operations"
)

// sequence is one sequence that the package returns.
type sequence struct {
	of   string // the function or method, as sequencesInSource spells it
	name string // of the operation
	make func(ctx context.Context, c *webdelivery.Client) iter.Seq2[string, error]
}

// sequences returns those of internal/operations, Scan and Result.All, each with at least three items in
// inReliableService. TestEverySequenceIsTried names a missing one.
func sequences() []sequence {
	declared := map[string]string{}
	for _, method := range operations.Methods() {
		declared[method.Name] = method.Go
	}
	all := []sequence{{"Scan", "", func(ctx context.Context, c *webdelivery.Client) iter.Seq2[string, error] {
		rows := webdelivery.Scan[event](c.Stats.Events.All(ctx, lastHour(eventsAsked)))
		return idsOf(rows, func(e event) string { return e.IP.String() })
	}}, {"Result.All", "", func(ctx context.Context, c *webdelivery.Client) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			result, err := c.Stats.Events.Query(ctx, lastHour(eventsAsked))
			if err != nil {
				yield("", err)
				return
			}
			idsOf(result.All(), webdelivery.Row.String)(yield)
		}
	}}}
	for _, op := range operations.All() {
		if !op.IsSequence() {
			continue
		}
		all = append(all, sequence{declared[op.Name], op.String(), func(ctx context.Context, c *webdelivery.Client) iter.Seq2[string, error] {
			items := op.Sequence(ctx, c, &operations.Use{List: reliableList, Show: func(...any) {}})
			return idsOf(items, func(item any) string { return fmt.Sprint(item) })
		}})
	}
	return all
}

// sequencesInSource returns the exported functions, methods and fields of the module's public packages with an
// iter.Seq or iter.Seq2.
func sequencesInSource(t *testing.T) []string {
	t.Helper()
	var names []string
	files := token.NewFileSet()
	givesOne := func(node ast.Node) (found bool) {
		ast.Inspect(node, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if ok {
				name, isName := selector.X.(*ast.Ident)
				found = found || isName && name.Name == "iter" && strings.HasPrefix(selector.Sel.Name, "Seq")
			}
			return true
		})
		return found
	}
	for _, folder := range []string{".", "filters", "webdeliverytest"} {
		paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
		require.NoError(t, err)
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			text, err := fs.ReadFile(os.DirFS("."), filepath.ToSlash(path))
			require.NoError(t, err)
			file, err := parser.ParseFile(files, path, text, 0)
			require.NoError(t, err)
			for _, declaration := range file.Decls {
				switch d := declaration.(type) {
				case *ast.FuncDecl:
					if !d.Name.IsExported() || d.Type.Results == nil || !givesOne(d.Type.Results) {
						continue
					}
					name := d.Name.Name
					if d.Recv != nil {
						receiver := strings.Trim(string(text[files.Position(d.Recv.List[0].Type.Pos()).Offset:files.Position(d.Recv.List[0].Type.End()).Offset]), "*")
						receiver, _, _ = strings.Cut(receiver, "[")
						if !ast.IsExported(receiver) {
							continue
						}
						name = receiver + "." + name
					}
					names = append(names, name)
				case *ast.GenDecl:
					for _, spec := range d.Specs {
						if s, ok := spec.(*ast.TypeSpec); ok && s.Name.IsExported() && givesOne(s.Type) {
							names = append(names, s.Name.Name)
						}
					}
				}
			}
		}
	}
	return names
}

func TestEverySequenceIsTried(t *testing.T) {
	t.Parallel()
	var listed []string
	for _, s := range sequences() {
		if !slices.Contains(listed, s.of) {
			listed = append(listed, s.of)
		}
	}
	assert.ElementsMatch(t, sequencesInSource(t), listed)
}

// A sequence keeps no state between loops. Each loop yields all items: one loop after the other, several at the same
// time, after a loop that ended early, or with iter.Pull2. A loop that ends early leaves nothing running; otherwise
// the bubble would fail.
func TestSequencesCanBeRangedOverAgain(t *testing.T) {
	t.Parallel()
	for _, s := range sequences() {
		t.Run(strings.TrimSpace(s.of+" "+s.name), func(t *testing.T) {
			t.Parallel()
			inReliableService(t, setup{}, func(f *fixture) {
				all := s.make(f.Context(), f.client)
				want, err := gather(all)
				require.NoError(f, err)
				require.GreaterOrEqual(f, len(want), 3)
				again, err := gather(all)
				require.NoError(f, err)
				assert.Equal(f, want, again)

				var loops sync.WaitGroup
				for i := range 12 {
					loops.Go(func() {
						switch i % 4 {
						case 0: // the loop ends early
							for item, err := range all {
								assert.NoError(f, err)
								assert.Equal(f, want[0], item)
								break
							}
						case 1: // pulled, and ended early
							next, stop := iter.Pull2(all)
							for _, item := range want[:2] {
								got, err, ok := next()
								assert.True(f, ok)
								assert.NoError(f, err)
								assert.Equal(f, item, got)
							}
							stop()
							_, _, ok := next()
							assert.False(f, ok)
						case 2: // pulled to the end
							next, stop := iter.Pull2(all)
							defer stop()
							var got []string
							for item, err, ok := next(); ok; item, err, ok = next() {
								assert.NoError(f, err)
								got = append(got, item)
							}
							assert.Equal(f, want, got)
						default:
							got, err := gather(all)
							assert.NoError(f, err)
							assert.Equal(f, want, got)
						}
					})
				}
				loops.Wait()
			})
		})
	}
}

// Within a loop over a sequence, a second loop can range over it.
func TestSequencesInSequences(t *testing.T) {
	t.Parallel()
	for _, s := range sequences() {
		t.Run(strings.TrimSpace(s.of+" "+s.name), func(t *testing.T) {
			t.Parallel()
			inReliableService(t, setup{}, func(f *fixture) {
				all := s.make(f.Context(), f.client)
				want, err := gather(all)
				require.NoError(f, err)
				var outer []string
				for item, err := range all {
					require.NoError(f, err)
					outer = append(outer, item)
					inner, err := gather(all)
					require.NoError(f, err)
					require.Equal(f, want, inner)
				}
				assert.Equal(f, want, outer)
			})
		})
	}
}

// Each loop reads the collection as it is at that time. In an earlier version, a sequence with ReadAhead kept the
// length from the first loop.
func TestSequencesReadAnew(t *testing.T) {
	t.Parallel()
	for _, s := range sequences() {
		if !strings.HasSuffix(s.of, ".AllEntries") {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			inReliableService(t, setup{}, func(f *fixture) {
				all := s.make(f.Context(), f.client)
				for _, entries := range [][]string{{"198.51.100.1"}, {"198.51.100.2", "198.51.100.3", "198.51.100.4"}, {}, {"198.51.100.5"}} {
					_, err := f.client.NetworkLists.ClearEntries(f.Context(), reliableList)
					require.NoError(f, err)
					_, err = f.client.NetworkLists.AddEntries(f.Context(), reliableList, entries)
					require.NoError(f, err)
					got, err := gather(all)
					require.NoError(f, err)
					assert.Len(f, got, len(entries), fmt.Sprint(entries))
				}
			})
		})
	}
}

// The caller may change the query of a sequence later: that changes nothing in a loop that is under way.
func TestSequencesKeepTheirQuery(t *testing.T) {
	t.Parallel()
	inReliableService(t, setup{}, func(f *fixture) {
		query := lastHour(eventsAsked)
		query.SortBy = []webdelivery.Sort{webdelivery.Asc(webdelivery.DimClientIP)}
		all := f.client.Stats.Events.All(f.Context(), query)
		want, err := gather(idsOf(all, webdelivery.Row.String))
		require.NoError(f, err)
		query.Dimensions[0], query.SortBy[0] = webdelivery.DimDomain, webdelivery.Desc(webdelivery.DimDomain)
		got, err := gather(idsOf(all, webdelivery.Row.String))
		require.NoError(f, err)
		assert.Equal(f, want, got)
	})
}
