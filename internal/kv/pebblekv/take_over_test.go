package pebblekv_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/crashdisk"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
	"github.com/ebbdb/ebb/internal/testseed"
)

// TestTakeOverCrash takes the power away before each step that a disk is asked for while the store takes over tables, alone and
// beside writers. Afterwards the store holds what the Commits up to its last number have written, and nothing of a later one.
func TestTakeOverCrash(t *testing.T) {
	for _, writers := range []int{0, 3} {
		t.Run(fmt.Sprint(writers, " writers"), func(t *testing.T) { takeOverCrash(t, writers) })
	}
}

func takeOverCrash(t *testing.T, writers int) {
	const rounds = 6
	told := &marks{of: map[uint64]string{}}
	c := &crasher{disk: crashdisk.New(), rng: rand.New(rand.NewPCG(testseed.Of(t), 0)), told: told}
	o := pebblekv.Options{FS: errorfs.Wrap(c.disk, c), CommitKey: []byte("number"), MemTableBytes: 64 << 10}
	e := open(t, "db", o)
	e.Observe(told)

	var group sync.WaitGroup
	quit := make(chan struct{})
	for w := range writers {
		group.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-quit:
					return
				default:
					mark(t, e, fmt.Sprintf("c%d-%05d", w, n), kv.Durability(n%3))
				}
			}
		})
	}
	for n := range rounds {
		mark(t, e, fmt.Sprintf("a%d", n), kv.Buffered)
		c.during(func() {
			if err := e.Load(context.Background(), marking(fmt.Sprintf("l%d", n))); err != nil {
				t.Error(err)
			}
		})
		mark(t, e, fmt.Sprintf("b%d", n), kv.Buffered)
		c.during(func() {
			if err := replaceMark(e, fmt.Sprintf("r%d", n)); err != nil {
				t.Error(err)
			}
		})
	}
	close(quit)
	group.Wait()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	between := 0
	for _, left := range c.left {
		o.FS = left.disk
		again := open(t, "db", o)
		last, _ := again.Last()
		if got, want := marksIn(t, again), told.upTo(last); !slices.Equal(got, want) {
			t.Errorf("before %s: the last commit is %d; there are\n%q, and that one has left\n%q", left.before, last, got, want)
		}
		if last < left.visible {
			between++
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			break
		}
	}
	t.Logf("%d crashes, %d of which lost commits that were not synced", len(c.left), between)
	if len(c.left) < rounds*20 || between == 0 {
		t.Error("the power was hardly ever taken away while something was under way")
	}
}

// crasher takes copies of a disk as a crash would leave it, before what is asked of it.
type crasher struct {
	disk *crashdisk.Disk
	told *marks
	on   atomic.Bool
	mu   sync.Mutex // guards what follows
	rng  *rand.Rand
	left []leftover
}

type leftover struct {
	disk    vfs.FS
	before  string
	visible uint64
}

// during takes them while f runs.
func (c *crasher) during(f func()) {
	c.on.Store(true)
	f()
	c.on.Store(false)
}

// MaybeError is errorfs.Injector's. There is none.
func (c *crasher) MaybeError(op errorfs.Op) error {
	if !c.on.Load() || op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	percent := []int{0, 50, 100}[c.rng.IntN(3)]
	visible := c.told.last.Load()
	left := c.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: c.rng})
	c.left = append(c.left, leftover{disk: left, visible: visible, before: fmt.Sprintf("%d of %s, with %d %% of what was not synced", op.Kind, op.Path, percent)})
	return nil
}

func (c *crasher) String() string { return "crasher" }

// marks are what each Commit has left, by its number.
type marks struct {
	mu sync.Mutex // guards of
	of map[uint64]string

	last atomic.Uint64
}

func (m *marks) Now() int64         { return 1000 }
func (m *marks) Ordered(*kv.Commit) {}

func (m *marks) Appears(*kv.Commit) {}

func (m *marks) Visible(c *kv.Commit) {
	m.last.Store(c.Number)
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.Table != nil {
		m.of[c.Number] = string(c.Table.Start)
		return
	}
	c.Each(func(op kv.Op) { m.of[c.Number] = string(op.Key) })
}

// upTo is what the Commits up to a number have left.
func (m *marks) upTo(number uint64) (out []string) {
	for n := range maps.Keys(m.of) {
		if n <= number {
			out = append(out, m.of[n])
		}
	}
	slices.Sort(out)
	return out
}

func mark(t *testing.T, e kv.Engine, key string, d kv.Durability) {
	txn, err := e.Begin()
	if err != nil {
		t.Error(err)
		return
	}
	txn.Set([]byte(key), make([]byte, 300))
	if err := txn.Commit(context.Background(), d); err != nil {
		t.Error(err)
	}
}

// marking gives one key to Load.
func marking(key string) func() (k, v []byte, ok bool, err error) {
	given := false
	return func() ([]byte, []byte, bool, error) {
		ok := !given
		given = true
		return []byte(key), nil, ok, nil
	}
}

func replaceMark(e kv.Engine, key string) error {
	r, err := e.Replace([]byte(key))
	if err != nil {
		return err
	}
	defer r.Discard()
	return errors.Join(r.Set([]byte(key), nil), r.Seal([]byte(key+"\xff")), r.Commit(context.Background()))
}

func marksIn(t *testing.T, e kv.Engine) (out []string) {
	t.Helper()
	view, err := e.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	it, err := view.NewIter(kv.IterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for it.Next() {
		if key := string(it.Key()); key != "number" {
			out = append(out, key)
		}
	}
	if err := errors.Join(it.Err(), it.Close(), view.Close()); err != nil {
		t.Fatal(err)
	}
	return out
}
