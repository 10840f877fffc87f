package tidy

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
)

// sleepingTests are the tests that sleep, each with what they wait for in the real world. Each only polls: nothing is concluded
// from the time that has passed.
func sleepingTests() map[string]string {
	return map[string]string{
		"cmd/ebb/full_disk_linux_test.go":           "a process that starts",
		"cmd/ebb/signals_unix_test.go":              "a process that heeds a signal",
		"internal/exec/admission_test.go":           "a goroutine that queues",
		"internal/kv/pebblekv/excise_queue_test.go": "Pebble's flush, which is held",
		"internal/kv/pebblekv/full_disk_test.go":    "files that Pebble removes behind its callers",
		"internal/kv/pebblekv/reclaimer_test.go":    "compactions of Pebble",
		"internal/kv/pebblekv/space_test.go":        "a benchmark of files that go in the background",
		"internal/memory/buffers_test.go":           "a goroutine that waits for memory",
		"internal/server/stall_test.go":             "sockets that fill up",
		"internal/storage/build_bench_test.go":      "a benchmark beside writers",
		"internal/storage/ownership/lock_test.go":   "a goroutine that queues for a lock",
	}
}

// noSleeps looks at all tests but those that stand outside the server, where clients live in real time.
func noSleeps(t *Tree) []Finding {
	allowed, used := sleepingTests(), map[string]bool{}
	var out []Finding
	for _, pkg := range t.Packages {
		if covers("e2e/...", pkg.Dir) || covers("bench/...", pkg.Dir) {
			continue
		}
		for _, file := range pkg.Files {
			if !file.Test {
				continue
			}
			found := uses(file, "time", []string{"Sleep", "Tick", "NewTicker"})
			used[file.Path] = used[file.Path] || len(found) > 0
			if allowed[file.Path] != "" {
				continue
			}
			for _, use := range found {
				out = append(out, Finding{file.Path, t.line(use), "time." + use.Sel.Name + ": turn a clock.Fake or wait on a channel; or say in sleepingTests of internal/tidy/tests.go what is polled"})
			}
		}
	}
	if t.isWhole() {
		for _, path := range slices.Sorted(maps.Keys(allowed)) {
			if !used[path] {
				out = append(out, Finding{Path: path, Text: "sleeps no more: take it out of sleepingTests in internal/tidy/tests.go"})
			}
		}
	}
	return out
}

// seeds looks for tests that draw a seed which nobody can set, in a function that reads no flag for one. Benchmarks may, and
// goroutines that race with others draw single numbers: no seed would bring those back.
func seeds(t *Tree) []Finding {
	var out []Finding
	for _, pkg := range t.Packages {
		if pkg.Dir == "internal/testseed" || covers("bench/...", pkg.Dir) {
			continue
		}
		for _, file := range pkg.Files {
			if !file.Test {
				continue
			}
			for _, decl := range file.AST.Decls {
				fn, ok := decl.(*ast.FuncDecl)
				if !ok || fn.Body == nil || strings.HasPrefix(fn.Name.Name, "Benchmark") || readsSeed(fn) {
					continue
				}
				for _, use := range drawsIn(file, fn) {
					out = append(out, Finding{file.Path, t.line(use), "rand." + use.Sel.Name + " has a seed that nobody can set: take testseed.Of(t), and rand.New of it"})
				}
			}
		}
	}
	return out
}

// drawsIn are the draws of whole numbers from the package's own generator in a function, which is what seeds are made of.
func drawsIn(file *File, fn *ast.FuncDecl) []*ast.SelectorExpr {
	draws := []string{"Uint64", "Uint32", "Uint", "Int64", "Int"}
	return slices.DeleteFunc(uses(file, "math/rand/v2", draws), func(use *ast.SelectorExpr) bool { return use.Pos() < fn.Pos() || use.End() > fn.End() })
}

// readsSeed says whether a function reads a flag whose name says that it is a seed.
func readsSeed(fn *ast.FuncDecl) (reads bool) {
	ast.Inspect(fn, func(n ast.Node) bool {
		star, ok := n.(*ast.StarExpr)
		if !ok {
			return true
		}
		name, ok := star.X.(*ast.Ident)
		reads = reads || ok && strings.Contains(strings.ToLower(name.Name), "seed")
		return true
	})
	return reads
}
