// Package tidy is the law of the tree, checked by a test: who may import whom, what every package says of itself, where
// time and state may live. It reads sources as text and knows nothing of what the program does.
//
// Every rule says in words what is wrong, why it is a rule and what to do instead, so that whoever breaks one need not
// read this package first.
package tidy

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Module is the import path of the tree's root.
const Module = "github.com/ebbdb/ebb"

// Finding is one breach of a rule.
type Finding struct {
	Path string // slash-separated, from the root of the tree
	Line int    // 0: the whole file or package
	Text string
}

func (f Finding) String() string {
	if f.Line == 0 {
		return f.Path + ": " + f.Text
	}
	return fmt.Sprintf("%s:%d: %s", f.Path, f.Line, f.Text)
}

// File is one parsed Go file.
type File struct {
	Path      string
	Lines     int
	Test      bool // *_test.go
	Generated bool
	AST       *ast.File
}

// Package is the Go files of one folder.
type Package struct {
	Dir   string // "." for the root
	Files []*File
}

// Tree is everything the rules look at.
type Tree struct {
	Root     fs.FS
	Fset     *token.FileSet
	Packages []*Package
	Broken   []Finding // files that do not parse
}

// Load reads the tree below root. Folders that are not the project's own sources are left out: dependencies, build
// output, test data, and whatever git does not see because its name starts with a dot or an underscore.
func Load(root fs.FS) (*Tree, error) {
	t := &Tree{Root: root, Fset: token.NewFileSet()}
	byDir := map[string]*Package{}
	err := fs.WalkDir(root, ".", func(p string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && foreign(p):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(p) != ".go":
			return nil
		}
		file, err := t.parse(p)
		if err != nil {
			t.Broken = append(t.Broken, Finding{Path: p, Text: "does not parse: " + err.Error()})
			return nil
		}
		dir := path.Dir(p)
		if byDir[dir] == nil {
			byDir[dir] = &Package{Dir: dir}
			t.Packages = append(t.Packages, byDir[dir])
		}
		byDir[dir].Files = append(byDir[dir].Files, file)
		return nil
	})
	return t, err
}

func foreign(dir string) bool {
	name := path.Base(dir)
	if dir == "." {
		return false
	}
	if dir == "data" || dir == "bin" { // where the server and the Makefile put theirs
		return true
	}
	return name == "node_modules" || name == "target" || name == "testdata" || name[0] == '.' || name[0] == '_'
}

func (t *Tree) parse(p string) (*File, error) {
	src, err := fs.ReadFile(t.Root, p)
	if err != nil {
		return nil, err
	}
	parsed, err := parser.ParseFile(t.Fset, p, src, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	return &File{
		Path:      p,
		Lines:     strings.Count(string(src), "\n"),
		Test:      strings.HasSuffix(p, "_test.go"),
		Generated: ast.IsGenerated(parsed),
		AST:       parsed,
	}, nil
}

// isWhole says whether this is a module, not some of its files: tables of exceptions are held to what there is.
func (t *Tree) isWhole() bool {
	_, err := fs.Stat(t.Root, "go.mod")
	return err == nil
}

// rule is one law: what it finds, and the reason that is printed once under its findings.
type rule struct {
	name  string
	why   string
	check func(*Tree) []Finding
}

func rules() []rule {
	return []rule{
		{"levels", "data flows one way; a package that imports upward ties a knot nobody can untie later", levels},
		{"ways", "a map that names what is gone leads nowhere, and one that names a thing twice does not say where it is", ways},
		{"level rows", "a row for what is gone lets something else move in unseen", levelRows},
		{"package comments", "a package is one idea, and its first sentence says which", packageComments},
		{"names", "a name like that says that no idea was found for the package", names},
		{"no init", "what runs before main cannot be passed, ordered or tested; tables are values handed to whoever needs them", noInit},
		{"no wall clock", "time is data: it comes from internal/clock, so that a test can turn it", noWallClock},
		{"wall clock at the edge", "what reads the real clock cannot be tested with a turned one; only what is about real disks, sockets, processors and people may", wallAtTheEdge},
		{"no sleeps in tests", "a test that sleeps is slow on a good day and fails on a bad one; turn a fake clock, or wait for what tells that it is done", noSleeps},
		{"seeds", "a random test that fails must be run again as it was", seeds},
		{"locks", "who waits for a lock waits for a disk then; do the slow work before or behind, or say in heldLocks of internal/tidy/locks.go why not", locks},
		{"no changing package variables", "two servers in one process must not share anything; state lives in what Open builds", noPackageState},
		{"raw BSON", "unmarshalling a document costs a hundred times what walking its bytes does; internal/bson walks", rawBSON},
		{"no printing", "a library that prints cannot be embedded; log through the slog.Logger that was passed", noPrinting},
		{"file length", "a file holds one noun; find the second one and give it its own file", fileLength},
		{"differences", "a difference from MongoDB that no test holds is a rumour", differences},
	}
}

// Check applies every rule and returns what is wrong, ready to print.
func Check(t *Tree) []string {
	var out []string
	report := func(name, why string, findings []Finding) {
		if len(findings) == 0 {
			return
		}
		slices.SortFunc(findings, func(a, b Finding) int {
			return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Text, b.Text))
		})
		var text strings.Builder
		fmt.Fprintf(&text, "%s (%s)", name, why)
		for _, f := range findings {
			text.WriteString("\n  " + f.String())
		}
		out = append(out, text.String())
	}
	report("sources", "nothing can be said of a file that Go cannot read", t.Broken)
	for _, r := range rules() {
		report(r.name, r.why, r.check(t))
	}
	return out
}

// code is every file of the package that is not a test.
func (p *Package) code() []*File {
	return slices.DeleteFunc(slices.Clone(p.Files), func(f *File) bool { return f.Test })
}

func (t *Tree) line(n ast.Node) int { return t.Fset.Position(n.Pos()).Line }
