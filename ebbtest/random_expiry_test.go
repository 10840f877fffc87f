package ebbtest_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

// tryFor makes the test longer: go test ./ebbtest -run RandomExpiry -timeout 0 -args -for 1h
var (
	tryFor    = flag.Duration("for", 0, "for how long to try random operations")
	trySeed   = flag.Uint64("seed", 0, "the first seed of random operations, 0 for any, or with no -for for the usual one")
	tryReplay = flag.String("replay", "", "a file with the lines of a run that failed, to run them again")
)

const (
	fewestRuns = 4
	// usualSeed is the first of fewestRuns seeds that have waves and restarts among them; of so few runs any others may meet
	// too little by chance.
	usualSeed = 3
	// fairRuns are enough to say what any runs should meet.
	fairRuns  = 100
	runLength = 500 // operations
	shrinkFor = 2 * time.Minute
)

// TestRandomExpiry does things at random to a whole server while time moves, and compares what it answers with lists of
// documents filtered by their deadlines. A run that fails is made shorter, and printed as lines for -replay.
func TestRandomExpiry(t *testing.T) {
	if *tryReplay != "" {
		replay(t, *tryReplay)
		return
	}
	seed := *trySeed
	switch {
	case seed != 0:
	case *tryFor == 0:
		seed = usualSeed
	default:
		seed = rand.Uint64() >> 16
	}
	started, runs, sent, all := time.Now(), uint64(0), 0, met{}
	for ; runs < fewestRuns || time.Since(started) < *tryFor; runs++ {
		r := randomRun(seed + runs)
		sent += r.sent
		all.add(r.met)
		if r.failed == "" {
			continue
		}
		t.Errorf("seed %d: %s", seed+runs, r.failed)
		t.Log("made shorter, to be run again with -replay:\n" + strings.Join(r.shrink(), "\n"))
		break
	}
	t.Logf("seed %d: %d runs, %d operations and looks\n%v", seed, runs, sent, all)
	fair := runs >= fairRuns || seed == usualSeed
	if missed := all.missed(int(runs)); fair && !t.Failed() && len(missed) > 0 {
		t.Errorf("the generator is of no use:\n%s", strings.Join(missed, "\n"))
	}
}

// TestReplays runs again what has failed once: the files of replays.
func TestReplays(t *testing.T) {
	files, err := filepath.Glob("replays/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { replay(t, file) })
	}
}

func replay(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if r := runLines(lines[0] == "folder", lines[1:]); r.failed != "" {
		t.Errorf("line %d: %s\n%s", len(r.lines)+1, r.lines[len(r.lines)-1], r.failed)
	}
}

// ran is a run: its lines, and what was wrong at the last.
type ran struct {
	folder bool
	lines  []string
	failed string
	sent   int
	met    met
}

// begin makes a trial that ends with the run.
func (r *ran) begin() (x *trial, end func()) {
	dir := ""
	if r.folder {
		var err error
		if dir, err = os.MkdirTemp("", "ebb-expiry-"); err != nil {
			panic(err)
		}
	}
	x = newTrial(dir)
	return x, func() {
		if r.failed == "" {
			x.countAll()
		}
		r.sent, r.met = x.sent, x.met
		x.stop()
		if dir != "" {
			os.RemoveAll(dir)
		}
	}
}

// try runs a line and keeps it, if it made sense.
func (r *ran) try(x *trial, line string) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case wrong:
			r.failed = string(p)
		default:
			r.failed = fmt.Sprintf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	r.lines = append(r.lines, line)
	if !x.line(line) {
		r.lines = r.lines[:len(r.lines)-1]
	}
}

func randomRun(seed uint64) *ran {
	random := rand.New(rand.NewPCG(seed, 11))
	r := &ran{folder: random.IntN(5) == 0}
	x, end := r.begin()
	defer end()
	d := &dice{r: random, truth: x.truth, folder: r.folder, ids: 12 + random.IntN(30), waves: random.IntN(2) == 0}
	for i := 0; i < runLength && r.failed == ""; i++ {
		r.try(x, d.next())
		if r.failed == "" && random.IntN(5) == 0 {
			r.try(x, fmt.Sprintf("look %d", i))
		}
	}
	if r.failed == "" {
		r.try(x, "look 0")
	}
	if r.failed == "" {
		r.try(x, "validate")
	}
	return r
}

func runLines(folder bool, lines []string) *ran {
	r := &ran{folder: folder}
	x, end := r.begin()
	defer end()
	for _, line := range lines {
		if r.try(x, line); r.failed != "" {
			break
		}
	}
	return r
}

// kind is what a failure is about, whatever the documents.
func kind(failed string) string {
	for _, words := range []string{"shows a document twice", "not there", "come to its end", "goes on", "and too many", " is ", "are", "validate", "before", "answers", "no reply", "panic"} {
		if strings.Contains(failed, words) {
			return words
		}
	}
	return ""
}

// shrink leaves out what lines it can while something stays wrong.
func (r *ran) shrink() []string {
	started, best := time.Now(), r.lines
	for size := len(best) / 2; size > 0; size /= 2 {
		for at := 0; at < len(best) && time.Since(started) < shrinkFor; {
			fewer := append(append([]string(nil), best[:at]...), best[min(at+size, len(best)):]...)
			if again := runLines(r.folder, fewer); kind(again.failed) == kind(r.failed) {
				best = again.lines
			} else {
				at += size
			}
		}
	}
	return append([]string{map[bool]string{true: "folder", false: "memory"}[r.folder]}, best...)
}
