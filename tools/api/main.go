// Command api prints the public surface of the modules in the given directories. Each exported name is one line with
// its type, and the lines are sorted, so a change of the surface is a change of lines. Packages under internal and
// examples have no public surface.
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
	flag.Parse()
	pkgs, err := public(flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "api:", err)
		os.Exit(1)
	}
	var lines []string
	for _, p := range pkgs {
		lines = append(lines, surface(p)...)
	}
	slices.Sort(lines)
	for _, line := range slices.Compact(lines) {
		fmt.Println(line)
	}
}

// public loads the packages that users of the modules can import.
func public(dirs []string) ([]*packages.Package, error) {
	var found []*packages.Package
	for _, dir := range dirs {
		pkgs, err := load(dir)
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

func load(dir string) ([]*packages.Package, error) {
	config := &packages.Config{Dir: dir, Mode: packages.LoadSyntax | packages.NeedDeps}
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

func surface(p *packages.Package) []string {
	l := listing{pkg: p.Types}
	for _, name := range p.Types.Scope().Names() {
		if token.IsExported(name) {
			l.object(p.Types.Scope().Lookup(name))
		}
	}
	return l.lines
}

func hidden(element string) bool { return element == "internal" || element == "examples" }

// listing collects the lines of one package.
type listing struct {
	pkg   *types.Package
	lines []string
}

func (l *listing) add(format string, args ...any) {
	l.lines = append(l.lines, "pkg "+l.pkg.Name()+", "+fmt.Sprintf(format, args...))
}

func (l *listing) object(o types.Object) {
	switch o := o.(type) {
	case *types.Const:
		value := o.Val().ExactString()
		if o.Val().Kind() == constant.Float {
			value = o.Val().String()
		}
		l.add("const %s %s = %s", o.Name(), l.text(o.Type()), value)
	case *types.Var:
		l.add("var %s %s", o.Name(), l.text(o.Type()))
	case *types.Func:
		l.add("func %s%s", o.Name(), l.signature(o))
	case *types.TypeName:
		l.typeName(o)
	}
}

func (l *listing) typeName(o *types.TypeName) {
	if o.IsAlias() {
		l.add("type %s = %s", o.Name(), l.text(types.Unalias(o.Type())))
		return
	}
	named, ok := o.Type().(*types.Named)
	if !ok {
		return
	}
	name := o.Name() + parameters(named.TypeParams(), l.qualify)
	switch under := named.Underlying().(type) {
	case *types.Struct:
		l.add("type %s struct", name)
		l.fields(name, under)
	case *types.Interface:
		l.add("type %s interface", name)
		for m := range under.Methods() {
			if m.Exported() {
				l.add("type %s interface, %s%s", name, m.Name(), l.signature(m))
			} else {
				l.add("type %s interface, and unexported methods", name) // no other package can implement it
			}
		}
		for t := range under.EmbeddedTypes() {
			if _, ok := t.(*types.Union); ok {
				l.add("type %s interface, one of %s", name, l.text(t))
			}
		}
	default:
		l.add("type %s %s", name, l.text(under))
	}
	if types.IsInterface(named) {
		return
	}
	for _, selection := range typeutil.IntuitiveMethodSet(named, nil) {
		if m := selection.Obj(); m.Exported() {
			l.add("method (%s) %s%s", l.text(selection.Recv()), m.Name(), strings.TrimPrefix(l.text(selection.Type()), "func"))
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
			l.add("type %s struct, embedded %s", name, l.text(f.Type()))
		default:
			tag := ""
			if s.Tag(i) != "" {
				tag = " `" + s.Tag(i) + "`"
			}
			l.add("type %s struct, %s %s%s", name, f.Name(), l.text(f.Type()), tag)
		}
	}
	if unexported {
		l.add("type %s struct, and unexported fields", name)
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
