package tidy

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
)

// noPackageState finds package variables that are made to change: those of a type that exists to change (locks, atomics,
// channels, empty maps), and those that some function of the package assigns to. A table that nobody assigns to, an error
// value, a compiled pattern, a sync.Pool or a sync.OnceValue is a constant in all but name.
//
// It reads syntax, not types, so a pointer handed around can escape it; it catches what is written by habit.
func noPackageState(t *Tree) []Finding {
	var out []Finding
	for _, pkg := range t.Packages {
		names, specs := map[string]bool{}, map[any]bool{}
		for _, file := range pkg.code() {
			for _, spec := range packageVars(file.AST) {
				specs[spec] = true
				for i, name := range spec.Names {
					names[name.Name] = name.Name != "_" // var _ Interface = … holds nothing
					if what := mutableBirth(spec, i); what != "" {
						out = append(out, Finding{file.Path, t.line(name), name.Name + " is " + what})
					}
				}
			}
		}
		for _, file := range pkg.code() {
			for _, ident := range assigned(file.AST) {
				switch {
				case ident.Obj != nil && !specs[ident.Obj.Decl]: // a local of some function
				case names[ident.Name]: // of this file, or open in it and so of another file of the package
					out = append(out, Finding{file.Path, t.line(ident), ident.Name + " is a package variable and is assigned to here"})
				case ident.Obj == nil && ident.Name != "_" && imports(file.AST, ident.Name):
					out = append(out, Finding{file.Path, t.line(ident), "assigns to a variable of package " + ident.Name})
				}
			}
		}
	}
	return out
}

func imports(file *ast.File, local string) bool {
	return slices.ContainsFunc(file.Imports, func(spec *ast.ImportSpec) bool {
		imported, err := strconv.Unquote(spec.Path.Value)
		return err == nil && localName(file, imported) == local
	})
}

func packageVars(file *ast.File) []*ast.ValueSpec {
	var out []*ast.ValueSpec
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.VAR {
			continue
		}
		for _, spec := range gen.Specs {
			out = append(out, spec.(*ast.ValueSpec))
		}
	}
	return out
}

// mutableBirth says in words why a variable can only be meant to change, or nothing.
func mutableBirth(spec *ast.ValueSpec, i int) string {
	kind := spec.Type
	if kind == nil && i < len(spec.Values) {
		switch value := spec.Values[i].(type) {
		case *ast.CompositeLit:
			kind = value.Type
		case *ast.CallExpr:
			if made, ok := value.Fun.(*ast.Ident); ok && made.Name == "make" && made.Obj == nil {
				return "made empty, so something fills it later"
			}
		}
	}
	if star, ok := kind.(*ast.StarExpr); ok {
		kind = star.X
	}
	switch kind := kind.(type) {
	case *ast.ChanType:
		return "a channel"
	case *ast.SelectorExpr:
		from, ok := kind.X.(*ast.Ident)
		if !ok {
			return ""
		}
		if from.Name == "atomic" || from.Name == "sync" && slices.Contains([]string{"Mutex", "RWMutex", "Map", "Once", "WaitGroup", "Cond"}, kind.Sel.Name) {
			return "a " + from.Name + "." + kind.Sel.Name
		}
	case *ast.IndexExpr: // atomic.Pointer[T]
		return mutableBirth(&ast.ValueSpec{Type: kind.X}, 0)
	}
	return ""
}

// assigned lists the variables at the root of every left-hand side inside functions: x, x.f, x[i], *x.
func assigned(file *ast.File) []*ast.Ident {
	var out []*ast.Ident
	add := func(target ast.Expr) {
		if ident := rootOf(target); ident != nil {
			out = append(out, ident)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, target := range n.Lhs {
					add(target)
				}
			}
		case *ast.IncDecStmt:
			add(n.X)
		case *ast.RangeStmt:
			if n.Tok == token.ASSIGN {
				add(n.Key)
				add(n.Value)
			}
		case *ast.CallExpr:
			if fn, ok := n.Fun.(*ast.Ident); ok && fn.Obj == nil && (fn.Name == "delete" || fn.Name == "clear") && len(n.Args) > 0 {
				add(n.Args[0])
			}
		}
		return true
	})
	return out
}

func rootOf(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}
