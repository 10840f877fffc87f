package tidy

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
)

// packageComments wants "Package x …" in one file of each package, or "Command x …" for a program.
func packageComments(t *Tree) []Finding {
	var out []Finding
	for _, pkg := range t.Packages {
		files := pkg.code()
		if len(files) == 0 { // a folder that holds nothing but tests says in one of them what it tests
			files = pkg.Files
		}
		name := strings.TrimSuffix(files[0].AST.Name.Name, "_test")
		want := "Package " + name + " "
		if name == "main" {
			want = "Command " + path.Base(pkg.Dir) + " "
		}
		documented := slices.ContainsFunc(files, func(f *File) bool { return strings.HasPrefix(f.AST.Doc.Text(), want) })
		if !documented {
			out = append(out, Finding{Path: pkg.Dir, Text: fmt.Sprintf(
				"no package comment: one file must start with %q and say in that sentence what the package does, and then what it must not know", "// "+want+"…")})
		}
	}
	return out
}

// names refuses the words that stand where a noun is missing.
func names(t *Tree) []Finding {
	empty := []string{"util", "utils", "common", "helper", "helpers", "manager", "base", "misc", "shared"}
	var out []Finding
	for _, pkg := range t.Packages {
		if slices.Contains(empty, path.Base(pkg.Dir)) {
			out = append(out, Finding{Path: pkg.Dir, Text: "name the package after what it holds"})
		}
		for _, file := range pkg.Files {
			stem := strings.TrimSuffix(strings.TrimSuffix(path.Base(file.Path), ".go"), "_test")
			if slices.Contains(empty, stem) {
				out = append(out, Finding{Path: file.Path, Text: "name the file after the noun that it holds"})
			}
		}
	}
	return out
}

func noInit(t *Tree) []Finding {
	var out []Finding
	for _, pkg := range t.Packages {
		for _, file := range pkg.Files {
			for _, decl := range file.AST.Decls {
				if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
					out = append(out, Finding{file.Path, t.line(fn), "func init(): build the value in a constructor and pass it"})
				}
			}
		}
	}
	return out
}

// noWallClock looks at calls and mentions alike: a time.Now handed over as a function is the wall clock too.
func noWallClock(t *Tree) []Finding {
	banned := []string{"Now", "Since", "Until", "After", "Tick", "NewTimer", "NewTicker", "AfterFunc", "Sleep"}
	var out []Finding
	for _, pkg := range t.Packages {
		if pkg.Dir == "internal/clock" || covers("e2e/...", pkg.Dir) || covers("bench/...", pkg.Dir) {
			continue // where time comes from, and the programs that stand outside the server and live in real time
		}
		for _, file := range pkg.code() {
			for _, use := range uses(file, "time", banned) {
				out = append(out, Finding{file.Path, t.line(use),
					"time." + use.Sel.Name + ": take a clock.Clock and ask it"})
			}
		}
	}
	return out
}

// rawBSON keeps the driver's documents out of the server. Tests speak with them as clients do.
func rawBSON(t *Tree) []Finding {
	var out []Finding
	for _, pkg := range t.Packages {
		if pkg.Dir == "internal/bson" || !covers("internal/...", pkg.Dir) && pkg.Dir != "." {
			continue
		}
		for _, file := range pkg.code() {
			for _, spec := range file.AST.Imports {
				if spec.Path.Value == `"go.mongodb.org/mongo-driver/v2/bson"` {
					out = append(out, Finding{file.Path, t.line(spec), "imports the driver's bson: use internal/bson, or add there what it lacks"})
				}
			}
		}
	}
	return out
}

func noPrinting(t *Tree) []Finding {
	var out []Finding
	for _, pkg := range t.Packages {
		if !covers("internal/...", pkg.Dir) && pkg.Dir != "." {
			continue
		}
		for _, file := range pkg.code() {
			printing := uses(file, "fmt", []string{"Print", "Printf", "Println"})
			printing = append(printing, uses(file, "log", nil)...)
			for _, use := range printing {
				out = append(out, Finding{file.Path, t.line(use), use.X.(*ast.Ident).Name + "." + use.Sel.Name})
			}
		}
	}
	return out
}

// uses finds the mentions of an imported package's members; no names means all of them.
func uses(file *File, importPath string, members []string) []*ast.SelectorExpr {
	local := localName(file.AST, importPath)
	if local == "" {
		return nil
	}
	var out []*ast.SelectorExpr
	ast.Inspect(file.AST, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		// An identifier that resolves to something in the file is a variable that hides the package.
		if x, ok := sel.X.(*ast.Ident); ok && x.Name == local && x.Obj == nil {
			if members == nil || slices.Contains(members, sel.Sel.Name) {
				out = append(out, sel)
			}
		}
		return true
	})
	return out
}

func localName(file *ast.File, importPath string) string {
	for _, spec := range file.Imports {
		if got, err := strconv.Unquote(spec.Path.Value); err != nil || got != importPath {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		if last := path.Base(importPath); len(last) < 2 || last[0] != 'v' || strings.Trim(last[1:], "0123456789") != "" {
			return last
		}
		return path.Base(path.Dir(importPath)) // what comes behind it is the major version
	}
	return ""
}

const maxFileLines = 800

// longFiles are the hand-written files that may be longer, each with the reason why a cut would make it worse.
func longFiles() map[string]string {
	return map[string]string{}
}

func fileLength(t *Tree) []Finding {
	var out []Finding
	allowed := longFiles()
	for _, pkg := range t.Packages {
		for _, file := range pkg.Files {
			_, excused := allowed[file.Path]
			if file.Lines > maxFileLines && !file.Generated && !excused {
				out = append(out, Finding{Path: file.Path, Text: fmt.Sprintf("%d lines, %d at most", file.Lines, maxFileLines)})
			}
			if file.Lines <= maxFileLines && excused {
				out = append(out, Finding{Path: file.Path, Text: "is short enough now: take it out of longFiles in internal/tidy/rules.go"})
			}
		}
	}
	return out
}
