package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"sort"

	"golang.org/x/tools/go/packages"
)

// switches is the source that the changed files call.
//
//go:embed switches.go.txt
var switches []byte

// mutant is one change.
type mutant struct {
	id           int // from 1
	file         string
	line, column int
	change       string // description of the change
	tests        []int  // the tests that reach it
	fate         fate
}

// source is a file to change. A change never adds a line, so line numbers stay the same.
type source struct {
	dir, name, pkg string
	fset           *token.FileSet
	file           *ast.File
	info           *types.Info
	text           []byte

	edits   []edit
	mutants *[]*mutant
}

// edit inserts text at a place, or replaces the text there.
type edit struct {
	at, until int
	text      string
	closing   bool
	order     int
}

// load parses and type-checks the files of a package.
func load(dir string, names []string) ([]*source, error) {
	pkgs, err := packages.Load(&packages.Config{Dir: dir, Mode: packages.LoadSyntax | packages.NeedDeps | packages.NeedImports}, ".")
	if err != nil {
		return nil, err
	}
	p := pkgs[0]
	if len(p.Errors) > 0 {
		return nil, p.Errors[0]
	}
	var sources []*source
	for i, path := range p.CompiledGoFiles {
		if !slices.Contains(names, filepath.Base(path)) {
			continue
		}
		text, err := os.ReadFile(path) //nolint:gosec // the code to change
		if err != nil {
			return nil, err
		}
		sources = append(sources, &source{
			dir: filepath.Dir(path), name: filepath.Base(path), pkg: p.Name,
			fset: p.Fset, file: p.Syntax[i], info: p.TypesInfo, text: text,
		})
	}
	if len(sources) != len(names) {
		return nil, fmt.Errorf("%d of the %d files are in %s", len(sources), len(names), dir)
	}
	return sources, nil
}

// mutate returns the changed text and adds its mutants.
func (s *source) mutate(mutants *[]*mutant) []byte {
	s.mutants = mutants
	ast.PreorderStack(s.file, nil, func(n ast.Node, stack []ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			return n.Tok == token.VAR // constants, types and imports have no code that runs
		case *ast.BlockStmt:
			s.statements(n.List, stack)
		case *ast.CaseClause:
			s.statements(n.Body, stack)
			s.conditionsOf(n, stack)
		case *ast.CommClause:
			s.statements(n.Body, stack)
		case *ast.IfStmt:
			s.condition(n.Cond)
		case *ast.ForStmt:
			if n.Cond != nil {
				s.condition(n.Cond)
			}
		case *ast.ReturnStmt:
			s.returned(n, stack)
		case *ast.BinaryExpr:
			s.binary(n)
		case *ast.Ident:
			s.boolean(n)
		}
		return true
	})
	return s.apply()
}

// statements creates mutants that leave out one statement: an assignment, call, defer, send or jump.
func (s *source) statements(list []ast.Stmt, stack []ast.Node) {
	for _, stmt := range list {
		switch stmt := stmt.(type) {
		case *ast.AssignStmt:
			if stmt.Tok == token.DEFINE {
				continue
			}
		case *ast.ExprStmt:
			if call, ok := stmt.X.(*ast.CallExpr); ok && s.source(call.Fun) == "panic" {
				continue // the compiler may require it at the end of a function
			}
		case *ast.ReturnStmt:
			if len(stmt.Results) > 0 || hasResults(stack) {
				continue
			}
		case *ast.IncDecStmt, *ast.DeferStmt, *ast.SendStmt, *ast.BranchStmt:
		default:
			continue
		}
		s.wrap(stmt, "leave out "+s.source(stmt), "if !mutantIs(%d) { ", " }")
	}
}

func hasResults(stack []ast.Node) bool { f := function(stack); return f != nil && f.Results != nil }

// function returns the innermost function around a node.
func function(stack []ast.Node) *ast.FuncType {
	for _, n := range slices.Backward(stack) {
		switch n := n.(type) {
		case *ast.FuncLit:
			return n.Type
		case *ast.FuncDecl:
			return n.Type
		}
	}
	return nil
}

// conditionsOf negates the conditions of a switch without a tag.
func (s *source) conditionsOf(n *ast.CaseClause, stack []ast.Node) {
	if len(stack) < 2 {
		return
	}
	if sw, ok := stack[len(stack)-2].(*ast.SwitchStmt); ok && sw.Tag == nil {
		for _, c := range n.List {
			s.condition(c)
		}
	}
}

// condition negates a condition. If it compares or combines, its operator is changed elsewhere.
func (s *source) condition(cond ast.Expr) {
	if _, ok := ast.Unparen(cond).(*ast.BinaryExpr); !ok {
		s.wrap(cond, "negate "+s.source(cond), "((", ") != mutantIs(%d))")
	}
}

// returned replaces one result by its zero value.
func (s *source) returned(n *ast.ReturnStmt, stack []ast.Node) {
	f := function(stack)
	if f == nil || f.Results == nil || f.Results.NumFields() != len(n.Results) {
		return
	}
	var kinds []ast.Expr
	for _, field := range f.Results.List {
		for range max(1, len(field.Names)) {
			kinds = append(kinds, field.Type)
		}
	}
	for i, result := range n.Results {
		text := s.source(result)
		if slices.Contains([]string{"nil", "0", `""`, "true", "false"}, text) {
			continue
		}
		kind := s.source(kinds[i])
		if lit, ok := result.(*ast.CompositeLit); ok && len(lit.Elts) == 0 {
			continue
		}
		s.wrap(result, fmt.Sprintf("return the zero %s for %s", kind, text), "mutantZero["+kind+"](%d, ", ")")
	}
}

var (
	opposites = map[token.Token]string{
		token.EQL: "!=", token.NEQ: "==", token.LSS: ">=", token.GEQ: "<", token.GTR: "<=", token.LEQ: ">",
	}
	boundaries = map[token.Token]string{token.LSS: "<=", token.GTR: ">=", token.LEQ: "<", token.GEQ: ">"}
	neutral    = map[token.Token]string{token.LAND: ") || mutantIs(%d))", token.LOR: ") && !mutantIs(%d))"}
	arithmetic = map[token.Token]struct{ call, other string }{
		token.ADD: {"mutantAdd", "-"}, token.SUB: {"mutantSub", "+"},
		token.MUL: {"mutantMul", "/"}, token.QUO: {"mutantQuo", "*"},
	}
)

func (s *source) binary(n *ast.BinaryExpr) {
	if s.info.Types[n].Value != nil {
		return // the compiler computes it
	}
	x, y, text := s.source(n.X), s.source(n.Y), s.source(n)
	if other, ok := opposites[n.Op]; ok {
		s.wrap(n, fmt.Sprintf("%s: %s for %s", text, other, n.Op), "((", ") != mutantIs(%d))")
	}
	if other, ok := boundaries[n.Op]; ok {
		what := fmt.Sprintf("%s: %s for %s", text, other, n.Op)
		if n.Op == token.LSS || n.Op == token.GTR {
			s.wrap(n, what, "((", ") || mutantIs(%d) && "+x+" == "+y+")")
		} else {
			s.wrap(n, what, "((", ") && !(mutantIs(%d) && "+x+" == "+y+"))")
		}
	}
	if without, ok := neutral[n.Op]; ok {
		s.wrap(n.X, text+": without "+x, "((", without)
		s.wrap(n.Y, text+": without "+y, "((", without)
	}
	if op, ok := arithmetic[n.Op]; ok && s.isNumber(n) {
		id := s.add(n, fmt.Sprintf("%s: %s for %s", text, op.other, n.Op))
		s.put(n.Pos(), n.Pos(), fmt.Sprintf("%s(%d, ", op.call, id), false)
		s.put(n.OpPos, n.OpPos+1, ",", false)
		s.put(n.End(), n.End(), ")", true)
	}
}

func (s *source) isNumber(e ast.Expr) bool {
	basic, ok := s.info.TypeOf(e).Underlying().(*types.Basic)
	return ok && basic.Info()&(types.IsInteger|types.IsFloat) != 0
}

// boolean swaps true and false.
func (s *source) boolean(n *ast.Ident) {
	if s.info.Uses[n] == types.Universe.Lookup("true") || s.info.Uses[n] == types.Universe.Lookup("false") {
		s.wrap(n, "negate "+n.Name, "(", " != mutantIs(%d))")
	}
}

// wrap inserts text before and after a node. One of the two contains the number of the mutant.
func (s *source) wrap(n ast.Node, change, before, after string) {
	id := s.add(n, change)
	if bytes.Contains([]byte(before), []byte("%d")) {
		before = fmt.Sprintf(before, id)
	} else {
		after = numbered(after, id)
	}
	s.put(n.Pos(), n.Pos(), before, false)
	s.put(n.End(), n.End(), after, true)
}

// numbered fills in the number of the mutant. The rest of the text may contain a %.
func numbered(text string, id int) string {
	return string(bytes.Replace([]byte(text), []byte("%d"), fmt.Append(nil, id), 1))
}

func (s *source) add(n ast.Node, change string) int {
	at := s.fset.Position(n.Pos())
	m := &mutant{id: len(*s.mutants) + 1, file: s.name, line: at.Line, column: at.Column, change: oneLine(change)}
	*s.mutants = append(*s.mutants, m)
	return m.id
}

func (s *source) put(at, until token.Pos, text string, closing bool) {
	s.edits = append(s.edits, edit{s.offset(at), s.offset(until), text, closing, len(s.edits)})
}

func (s *source) offset(p token.Pos) int { return s.fset.Position(p).Offset }

func (s *source) source(n ast.Node) string {
	return string(s.text[s.offset(n.Pos()):s.offset(n.End())])
}

// apply returns the changed text. At one place, closing texts come first, the innermost before the others. Then come
// the opening texts, the outermost first.
func (s *source) apply() []byte {
	sort.Slice(s.edits, func(i, j int) bool {
		a, b := s.edits[i], s.edits[j]
		switch {
		case a.at != b.at:
			return a.at < b.at
		case a.closing != b.closing:
			return a.closing
		case a.closing:
			return a.order > b.order
		default:
			return a.order < b.order
		}
	})
	var out bytes.Buffer
	done := 0
	for _, e := range s.edits {
		out.Write(s.text[done:e.at])
		out.WriteString(e.text)
		done = e.until
	}
	out.Write(s.text[done:])
	return out.Bytes()
}

// oneLine shortens code for a list.
func oneLine(text string) string {
	text = string(bytes.Join(bytes.Fields([]byte(text)), []byte(" ")))
	const most = 140
	if len(text) > most {
		text = text[:most] + "..."
	}
	return text
}
