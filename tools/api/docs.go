package main

import (
	"go/ast"
	"go/token"

	"golang.org/x/tools/go/packages"
)

// undocumented lists the places of exported names without their own comment. godoclint checks neither fields nor
// methods of interfaces, and accepts the comment of a group for each of its constants.
func undocumented(p *packages.Package) []string {
	d := &docs{fset: p.Fset, files: p.Syntax}
	d.packageComment()
	for _, file := range p.Syntax {
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if decl.Recv == nil || ast.IsExported(receiver(decl.Recv.List[0].Type)) {
					d.need([]*ast.Ident{decl.Name}, decl.Doc)
				}
			case *ast.GenDecl:
				d.group(decl)
			}
		}
	}
	return d.missing
}

type docs struct {
	fset    *token.FileSet
	files   []*ast.File
	missing []string
}

func (d *docs) packageComment() {
	for _, file := range d.files {
		if commented(file.Doc) {
			return
		}
	}
	if len(d.files) > 0 {
		d.add("package "+d.files[0].Name.Name, d.files[0].Package)
	}
}

func (d *docs) group(decl *ast.GenDecl) {
	var own *ast.CommentGroup // without parentheses, the comment of a declaration is that of its name
	if !decl.Lparen.IsValid() {
		own = decl.Doc
	}
	for _, spec := range decl.Specs {
		switch spec := spec.(type) {
		case *ast.ValueSpec:
			d.need(spec.Names, own, spec.Doc, spec.Comment)
		case *ast.TypeSpec:
			d.need([]*ast.Ident{spec.Name}, own, spec.Doc)
			if spec.Name.IsExported() {
				d.members(spec.Type)
			}
		}
	}
}

// members returns the fields of a struct, including the fields of its fields, and the methods of an interface.
func (d *docs) members(t ast.Expr) {
	switch t := t.(type) {
	case *ast.StructType:
		for _, f := range t.Fields.List {
			names := f.Names
			if len(names) == 0 {
				names = []*ast.Ident{{Name: receiver(f.Type), NamePos: f.Pos()}}
			}
			d.need(names, f.Doc, f.Comment)
			d.members(f.Type)
		}
	case *ast.InterfaceType:
		for _, m := range t.Methods.List {
			d.need(m.Names, m.Doc, m.Comment)
		}
	}
}

func (d *docs) need(names []*ast.Ident, comments ...*ast.CommentGroup) {
	if commented(comments...) {
		return
	}
	for _, name := range names {
		if name.IsExported() {
			d.add(name.Name, name.Pos())
		}
	}
}

func (d *docs) add(name string, at token.Pos) {
	d.missing = append(d.missing, d.fset.Position(at).String()+": "+name+" has no comment")
}

// commented returns whether there is a comment. A directive alone, such as //nolint, does not count.
func commented(groups ...*ast.CommentGroup) bool {
	for _, g := range groups {
		if g != nil && g.Text() != "" {
			return true
		}
	}
	return false
}

// receiver returns the name of a type without pointer, package and type parameters.
func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.Ident:
		return t.Name
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.SelectorExpr:
		return t.Sel.Name
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	default:
		return ""
	}
}
