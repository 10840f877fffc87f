package tidy

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// level is one storey of the house. Its packages may import one another (Go itself refuses circles) and everything
// below, nothing above.
type level struct {
	name     string
	packages []string // folders; "x/..." is x and all below it
}

// house is the table of levels, lowest first. A new package goes into the lowest level that lies above all it imports.
func house() []level {
	return []level{
		{"machine", []string{"internal/host", "internal/serverlog", "internal/dbpath", "internal/netrange", "internal/testseed", "internal/testheap", "internal/register", "internal/standin", "internal/spill"}},
		{"values", []string{"internal/clock", "internal/handover", "internal/certificate/...", "internal/mongoerr", "internal/ordering", "internal/bson/...", "internal/javascript", "internal/memory", "internal/throttle", "internal/yield", "internal/namespace", "internal/auth/privilege", "internal/auth/role", "internal/auth/scram", "internal/auth/patience", "internal/auth/ldap/...", "internal/auth/oidc/...", "internal/fieldpath", "internal/collation", "internal/pcre", "internal/geo", "internal/keystring", "internal/resumetoken", "internal/textsearch/...", "internal/vectorsearch", "internal/fulltext/..."}},
		{"language", []string{"internal/changestream", "internal/expr", "internal/match", "internal/accumulator", "internal/projection", "internal/update", "internal/sortpattern"}},
		{"pipeline", []string{"internal/pipeline"}},
		{"definitions", []string{"internal/index", "internal/catalog", "internal/ttl/policy"}},
		{"engine", []string{"internal/kv/..."}},
		{"layout", []string{"internal/storage/layout", "internal/storage/expiryorder", "internal/storage/recordset", "internal/storage/walk", "internal/storage/multikey", "internal/storage/visibility", "internal/storage/expiryclock", "internal/storage/header", "internal/storage/oplog", "internal/storage/meaning", "internal/storage/diskspace", "internal/storage/placement", "internal/storage/publication", "internal/storage/witness", "internal/storage/indexwrite", "internal/storage/catalogchange", "internal/storage/history", "internal/storage/preimage", "internal/storage/past", "internal/storage/logwatch", "internal/storage/ownership", "internal/storage/due", "internal/storage/build", "internal/storage/indexplan", "internal/storage/expiry", "internal/storage/garbage", "internal/storage/duplicate", "internal/storage/ttlchange", "internal/storage/salvage", "internal/storage/validation"}},
		{"storage", []string{"internal/storage"}},
		{"reclaim", []string{"internal/storage/sweeper", "internal/storage/memberlog"}},
		{"definition changes", []string{"internal/storage/loosen", "internal/storage/indexddl"}},
		{"plans", []string{"internal/plancache", "internal/planner", "internal/exec", "internal/query"}},
		{"services", []string{"internal/auth", "internal/audit", "internal/operation", "internal/parameter", "internal/failpoint", "internal/establishment", "internal/ttl", "internal/session", "internal/replset", "internal/cursor", "internal/writegate", "internal/checkpoint", "internal/raftlog"}},
		{"protocol", []string{"internal/wire", "internal/peer"}},
		{"commands", []string{"internal/command"}},
		{"members", []string{"internal/member", "internal/router"}},
		{"doors", []string{"internal/backup", "internal/backup/place", "internal/backup/repository", "internal/server", "internal/console", "internal/metrics", "internal/trace", "internal/config", "internal/compat"}},
		{"root", []string{"."}},
		{"on top of the root", []string{"ebbtest", "cmd/...", "tests/...", "e2e/...", "bench/...", "internal/tidy"}},
	}
}

func levelOf(table []level, dir string) (int, bool) {
	for i, l := range table {
		if slices.ContainsFunc(l.packages, func(pattern string) bool { return covers(pattern, dir) }) {
			return i, true
		}
	}
	return 0, false
}

func covers(pattern, dir string) bool {
	tree, ok := strings.CutSuffix(pattern, "/...")
	return dir == tree || ok && strings.HasPrefix(dir, tree+"/")
}

// levels holds for what is built into the program. A test may import what Go lets it.
func levels(t *Tree) []Finding {
	var out []Finding
	table := house()
	for _, pkg := range t.Packages {
		own, known := levelOf(table, pkg.Dir)
		if !known {
			out = append(out, Finding{Path: pkg.Dir, Text: "has no level: add it to the table in internal/tidy/levels.go, " +
				"in the lowest level that lies above everything it imports (and draw it in docs/architecture.md)"})
			continue
		}
		for _, file := range pkg.code() {
			for _, spec := range file.AST.Imports {
				target, ours := ownPackage(spec.Path.Value)
				other, known := levelOf(table, target)
				if !ours || !known || other <= own {
					continue
				}
				out = append(out, Finding{file.Path, t.line(spec), fmt.Sprintf(
					"imports %s, which is above it (%q over %q): let the upper package pass in what is needed, or move the shared idea down",
					called(target), table[other].name, table[own].name)})
			}
		}
	}
	return out
}

// levelRows holds the table to the tree: a row for a folder that is gone hides what comes to stand there.
func levelRows(t *Tree) []Finding {
	if !t.isWhole() {
		return nil
	}
	return staleRows(t, house())
}

func staleRows(t *Tree, table []level) (out []Finding) {
	for _, l := range table {
		for _, pattern := range l.packages {
			if !slices.ContainsFunc(t.Packages, func(pkg *Package) bool { return covers(pattern, pkg.Dir) }) {
				out = append(out, Finding{Path: "internal/tidy/levels.go", Text: fmt.Sprintf("level %q has %s, and there is no such package: take it out", l.name, pattern)})
			}
		}
	}
	return out
}

func called(dir string) string {
	if dir == "." {
		return "the root package"
	}
	return dir
}

// ownPackage turns a quoted import path into the folder of this tree that it names.
func ownPackage(quoted string) (dir string, ours bool) {
	imported, err := strconv.Unquote(quoted)
	if err != nil {
		return "", false
	}
	rest, ours := strings.CutPrefix(imported, Module)
	if !ours || rest != "" && rest[0] != '/' {
		return "", false
	}
	return path.Join(".", rest), true
}
