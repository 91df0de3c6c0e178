// Command api prints the public surface of the modules in the given directories. Each exported name is one line with
// its type, and the lines are sorted, so a change of the surface is a change of lines. Packages under internal and
// examples have no public surface.
//
// With -undocumented, it prints the exported names without a comment instead, and exits with 1 if there are any. With
// -broken FILE, it reads an earlier surface from FILE, and prints what is gone or changed since. It exits with 0 then:
// the caller decides whether the changes are allowed.
package main

import (
	"flag"
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/go/types/typeutil"
)

func main() {
	comments := flag.Bool("undocumented", false, "print the exported names that have no comment")
	earlier := flag.String("broken", "", "print what is gone or changed since the surface in this `file`")
	flag.Parse()
	pkgs, err := public(flag.Args())
	var lines []string
	switch {
	case err != nil:
	case *comments:
		lines = each(pkgs, undocumented)
	case *earlier != "":
		lines, err = since(*earlier, each(pkgs, surface))
	default:
		lines = each(pkgs, surface)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "api:", err)
		os.Exit(1)
	}
	for _, line := range lines {
		fmt.Println(line)
	}
	if *comments && len(lines) > 0 {
		os.Exit(1)
	}
}

// public loads the packages that users of the modules can import.
func public(dirs []string) ([]*packages.Package, error) {
	var found []*packages.Package
	for _, dir := range dirs {
		pkgs, err := load(dir, false)
		if err != nil {
			return nil, err
		}
		for _, p := range pkgs {
			if p.Name != "main" && !slices.ContainsFunc(strings.Split(p.PkgPath, "/"), hidden) {
				found = append(found, p)
			}
		}
	}
	return found, nil
}

func load(dir string, tests bool) ([]*packages.Package, error) {
	config := &packages.Config{Dir: dir, Mode: packages.LoadSyntax | packages.NeedDeps, Tests: tests}
	config.Env = append(os.Environ(), "GOWORK=") // of the repository: its modules require each other
	pkgs, err := packages.Load(config, "./...")
	if err != nil {
		return nil, err
	}
	for _, p := range pkgs {
		if len(p.Errors) > 0 {
			return nil, p.Errors[0]
		}
	}
	return pkgs, nil
}

// each collects the lines of all packages.
func each(pkgs []*packages.Package, list func(*packages.Package) []string) []string {
	var lines []string
	for _, p := range pkgs {
		lines = append(lines, list(p)...)
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

func surface(p *packages.Package) []string {
	var lines []string
	for _, e := range entries(p.Types) {
		lines = append(lines, e.line)
	}
	return lines
}

func entries(p *types.Package) []entry {
	l := listing{pkg: p}
	for _, name := range p.Scope().Names() {
		if token.IsExported(name) {
			l.object(p.Scope().Lookup(name))
		}
	}
	return l.entries
}

func hidden(element string) bool { return element == "internal" || element == "examples" }

// entry is a line of the surface, and its object.
type entry struct {
	line string
	what types.Object // nil if a program cannot refer to it
	of   types.Object // the type that has the method; with embedding, another type declares it
}

// listing collects the lines of one package.
type listing struct {
	pkg     *types.Package
	entries []entry
}

func (l *listing) add(what, of types.Object, format string, args ...any) {
	l.entries = append(l.entries, entry{"pkg " + l.pkg.Name() + ", " + fmt.Sprintf(format, args...), what, of})
}

func (l *listing) object(o types.Object) {
	switch o := o.(type) {
	case *types.Const:
		value := o.Val().ExactString()
		if o.Val().Kind() == constant.Float {
			value = o.Val().String()
		}
		l.add(o, nil, "const %s %s = %s", o.Name(), l.text(o.Type()), value)
	case *types.Var:
		l.add(o, nil, "var %s %s", o.Name(), l.text(o.Type()))
	case *types.Func:
		l.add(o, nil, "func %s%s", o.Name(), l.signature(o))
	case *types.TypeName:
		l.typeName(o)
	}
}

func (l *listing) typeName(o *types.TypeName) {
	if o.IsAlias() {
		l.add(o, nil, "type %s = %s", o.Name(), l.text(types.Unalias(o.Type())))
		return
	}
	named, ok := o.Type().(*types.Named)
	if !ok {
		return
	}
	name := o.Name() + parameters(named.TypeParams(), l.qualify)
	switch under := named.Underlying().(type) {
	case *types.Struct:
		l.add(o, nil, "type %s struct", name)
		l.fields(name, under)
	case *types.Interface:
		l.add(o, nil, "type %s interface", name)
		for m := range under.Methods() {
			if m.Exported() {
				l.add(m, o, "type %s interface, %s%s", name, m.Name(), l.signature(m))
			} else {
				l.add(nil, nil, "type %s interface, and unexported methods", name) // no other package can implement it
			}
		}
		for t := range under.EmbeddedTypes() {
			if _, ok := t.(*types.Union); ok {
				l.add(nil, nil, "type %s interface, one of %s", name, l.text(t))
			}
		}
	default:
		l.add(o, nil, "type %s %s", name, l.text(under))
	}
	if types.IsInterface(named) {
		return
	}
	for _, selection := range typeutil.IntuitiveMethodSet(named, nil) {
		if m := selection.Obj(); m.Exported() {
			l.add(m, o, "method (%s) %s%s", l.text(selection.Recv()), m.Name(), strings.TrimPrefix(l.text(selection.Type()), "func"))
		}
	}
}

func (l *listing) fields(name string, s *types.Struct) {
	unexported := false
	for i := range s.NumFields() {
		f := s.Field(i)
		switch {
		case !f.Exported():
			unexported = true
		case f.Embedded():
			l.add(f, nil, "type %s struct, embedded %s", name, l.text(f.Type()))
		default:
			tag := ""
			if s.Tag(i) != "" {
				tag = " `" + s.Tag(i) + "`"
			}
			l.add(f, nil, "type %s struct, %s %s%s", name, f.Name(), l.text(f.Type()), tag)
		}
	}
	if unexported {
		l.add(nil, nil, "type %s struct, and unexported fields", name)
	}
}

// signature omits the names of parameters, because programs do not depend on them.
func (l *listing) signature(f *types.Func) string {
	s := f.Signature()
	return parameters(s.TypeParams(), l.qualify) + strings.TrimPrefix(l.text(s), "func")
}

func parameters(list *types.TypeParamList, qualify types.Qualifier) string {
	if list.Len() == 0 {
		return ""
	}
	var texts []string
	for p := range list.TypeParams() {
		texts = append(texts, p.Obj().Name()+" "+types.TypeString(p.Constraint(), qualify))
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func (l *listing) text(t types.Type) string { return types.TypeString(nameless(t), l.qualify) }

// nameless removes the names of parameters from a signature.
func nameless(t types.Type) types.Type {
	s, ok := t.(*types.Signature)
	if !ok {
		return t
	}
	strip := func(vars *types.Tuple) *types.Tuple {
		var bare []*types.Var
		for v := range vars.Variables() {
			bare = append(bare, types.NewParam(token.NoPos, nil, "", nameless(v.Type())))
		}
		return types.NewTuple(bare...)
	}
	return types.NewSignatureType(nil, nil, nil, strip(s.Params()), strip(s.Results()), s.Variadic())
}

func (l *listing) qualify(p *types.Package) string {
	if p == l.pkg {
		return ""
	}
	return p.Name()
}
