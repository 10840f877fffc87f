package tidy

import (
	"fmt"
	"maps"
	"slices"
)

// wallPackages are the folders whose code may ask the real clock, each with what it is about. All others take a clock.Clock.
func wallPackages() map[string]string {
	return map[string]string{
		"internal/clock":              "where it comes from",
		".":                           "the default of Options.Clock, and what sockets, disks and memory are given",
		"cmd/ebb":                     "the program's own clock, signals and its log",
		"ebbtest":                     "when a test's clock begins",
		"internal/backup/place":       "real sockets",
		"internal/command":            "how long a real client waits for an answer to hello",
		"internal/exec":               "real processors, which operations share",
		"internal/javascript":         "real processors and worker processes",
		"internal/kv/pebblekv":        "a real disk: syncs, room, removal",
		"internal/kv/tikvkv":          "a lease in a real cluster, over a real network",
		"internal/kv/tikvkv/tikvtest": "how much a process gets to run",
		"internal/peer":               "real sockets",
		"internal/raftlog":            "a real disk: room for the log",
		"internal/server":             "real sockets and threads",
		"internal/throttle":           "real processors and disks, which work in the background shares with clients",
		"internal/ttl":                "real processors, which sweeps share with clients",
		"internal/yield":              "real sockets and processors",
	}
}

// wallAtTheEdge looks at calls and mentions of clock.Wall alike. Tests may ask it for how long they wait at most.
func wallAtTheEdge(t *Tree) []Finding {
	out, used := wallIn(t, wallPackages())
	if t.isWhole() {
		out = append(out, staleWall(wallPackages(), used)...)
	}
	return out
}

func wallIn(t *Tree, allowed map[string]string) (out []Finding, used map[string]bool) {
	used = map[string]bool{}
	for _, pkg := range t.Packages {
		if covers("e2e/...", pkg.Dir) || covers("bench/...", pkg.Dir) {
			continue // which stand outside the server
		}
		for _, file := range pkg.code() {
			found := uses(file, Module+"/internal/clock", []string{"Wall"})
			used[pkg.Dir] = used[pkg.Dir] || len(found) > 0
			if allowed[pkg.Dir] != "" {
				continue
			}
			for _, use := range found {
				out = append(out, Finding{file.Path, t.line(use), "clock.Wall: take a clock.Clock; or say in wallPackages of internal/tidy/clocks.go what in the real world this is about"})
			}
		}
	}
	return out, used
}

// staleWall holds the list of packages that may to those that do.
func staleWall(allowed map[string]string, used map[string]bool) (out []Finding) {
	for _, dir := range slices.Sorted(maps.Keys(allowed)) {
		if !used[dir] && dir != "internal/clock" {
			out = append(out, Finding{Path: "internal/tidy/clocks.go", Text: fmt.Sprintf("%s may ask the real clock and does not: take it out", dir)})
		}
	}
	return out
}
