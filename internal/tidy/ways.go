package tidy

import (
	"errors"
	"fmt"
	"go/ast"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

const architecturePage = "docs/architecture.md"

// ways looks that each function in a table of docs/architecture.md that begins with a row "| function |" is there, and stands in one
// row of that table: `folder.Function` or `folder.Type.Function`, the folder below internal.
func ways(t *Tree) (out []Finding) {
	page, err := fs.ReadFile(t.Root, architecturePage)
	if errors.Is(err, fs.ErrNotExist) && !t.isWhole() {
		return nil
	}
	if err != nil {
		return []Finding{{Path: architecturePage, Text: err.Error()}}
	}
	row := regexp.MustCompile("^\\| `([^`]+)` \\|")
	var seen map[string]bool // nil outside of a table
	tables := 0
	for i, line := range strings.Split(string(page), "\n") {
		switch found := row.FindStringSubmatch(line); {
		case strings.HasPrefix(line, "| function |"):
			seen = map[string]bool{}
			tables++
		case !strings.HasPrefix(line, "|"):
			seen = nil
		case seen == nil || found == nil:
		case seen[found[1]]:
			out = append(out, Finding{architecturePage, i + 1, found[1] + " stands in the table twice"})
		default:
			seen[found[1]] = true
			if !t.hasFunction(found[1]) {
				out = append(out, Finding{architecturePage, i + 1, "there is no function " + found[1]})
			}
		}
	}
	if tables == 0 && t.isWhole() {
		out = append(out, Finding{Path: architecturePage, Text: "has no table of functions (\"| function | …\"): was the form changed?"})
	}
	return out
}

// hasFunction says whether there is one, in code that is built into the program.
func (t *Tree) hasFunction(name string) bool {
	dir, rest := path.Split(name)
	parts := strings.Split(rest, ".")
	if len(parts) < 2 {
		return false
	}
	dir, function := path.Join("internal", dir, parts[0]), strings.Join(parts[1:], ".")
	return slices.ContainsFunc(t.Packages, func(pkg *Package) bool {
		return pkg.Dir == dir && slices.ContainsFunc(pkg.code(), func(f *File) bool {
			return slices.ContainsFunc(f.AST.Decls, func(d ast.Decl) bool {
				fn, ok := d.(*ast.FuncDecl)
				return ok && functionName(fn) == function
			})
		})
	})
}

// functionName is a function's name, behind that of the type whose method it is.
func functionName(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	of := fn.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if generic, ok := of.(*ast.IndexExpr); ok {
		of = generic.X
	}
	return fmt.Sprintf("%s.%s", of, fn.Name.Name)
}
