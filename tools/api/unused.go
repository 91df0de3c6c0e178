package main

import (
	"go/types"
	"slices"

	"golang.org/x/tools/go/packages"
)

// unused lists the lines of the public packages that the module in a directory does not use, not even in its tests.
func unused(pkgs []*packages.Package, dir string) ([]string, error) {
	consumer, err := load(dir, true)
	if err != nil {
		return nil, err
	}
	u := newUses()
	for _, p := range consumer {
		u.add(p.TypesInfo)
	}
	// Objects are comparable only within one load, so use the packages that the module imports. The module uses nothing
	// of the others.
	imported := make(map[string]*packages.Package)
	packages.Visit(consumer, nil, func(p *packages.Package) { imported[p.PkgPath] = p })
	pkgs = slices.Clone(pkgs)
	for i, p := range pkgs {
		if q := imported[p.PkgPath]; q != nil {
			pkgs[i] = q
		}
	}
	return each(pkgs, u.without), nil
}

// uses are the objects that a program refers to. It compares objects, not names, because two types may each have a
// field Name.
type uses struct {
	named    map[types.Object]bool
	selected map[selected]bool
}

// selected is a method as a program calls it: on the type that embeds it, not on the type that declares it.
type selected struct{ of, method types.Object }

func newUses() *uses { return &uses{make(map[types.Object]bool), make(map[selected]bool)} }

func (u *uses) add(info *types.Info) {
	for _, o := range info.Uses {
		u.named[origin(o)] = true
	}
	for _, s := range info.Selections {
		recv := types.Unalias(s.Recv())
		if p, ok := recv.(*types.Pointer); ok {
			recv = types.Unalias(p.Elem())
		}
		if named, ok := recv.(*types.Named); ok {
			u.selected[selected{named.Origin().Obj(), origin(s.Obj())}] = true
		}
	}
}

func (u *uses) without(p *packages.Package) []string {
	var lines []string
	for _, e := range entries(p.Types) {
		switch {
		case e.what == nil:
		case e.of == nil && u.named[origin(e.what)]:
		case e.of != nil && u.selected[selected{e.of, origin(e.what)}]:
		default:
			lines = append(lines, e.line)
		}
	}
	return lines
}

// origin returns the generic declaration of an object that each instance of a generic type has.
func origin(o types.Object) types.Object {
	switch o := o.(type) {
	case *types.Func:
		return o.Origin()
	case *types.Var:
		return o.Origin()
	default:
		return o
	}
}
