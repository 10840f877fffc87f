package pebblekv_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
)

// book notes which commit put what there.
type book struct {
	mu      sync.Mutex
	records map[[2]int]uint64 // worker and number of the record: the commit's number
	loads   []uint64          // the number of each
}

func (b *book) Now() int64         { return 1 }
func (b *book) Appears(*kv.Commit) {}

func (b *book) Visible(*kv.Commit) {}

func (b *book) Ordered(c *kv.Commit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.Table != nil {
		b.loads = append(b.loads, c.Number)
		return
	}
	c.Each(func(op kv.Op) {
		if op.Key[0] == 'a' {
			b.records[[2]int{int(op.Key[1]), int(binary.BigEndian.Uint32(op.Key[2:]))}] = c.Number
		}
	})
}

const loadedPairs = 50

func load(t *testing.T, e *pebblekv.Engine, n int) {
	i := 0
	err := e.Load(context.Background(), func() (key, value []byte, ok bool, err error) {
		i++
		return fmt.Appendf(nil, "l%06d-%03d", n, i), make([]byte, 100), i <= loadedPairs, nil
	})
	if err != nil {
		t.Error(err)
	}
}

// copyOut copies a checkpoint to a folder in memory, as whoever backs up does.
func copyOut(t *testing.T, c kv.Checkpoint) vfs.FS {
	t.Helper()
	disk := vfs.NewMem()
	if err := disk.MkdirAll("db", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, f := range c.Files() {
		b := make([]byte, f.Bytes)
		if _, err := c.ReadAt(f.Name, b, 0); err != nil && f.Bytes > 0 {
			t.Fatal(err)
		}
		if err := c.Check(t.Context(), f.Name); err != nil {
			t.Fatal(err)
		}
		file, err := disk.Create(disk.PathJoin("db", f.Name), vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		_, err = file.Write(b)
		if err := errors.Join(err, file.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return disk
}

// TestCheckpoint takes checkpoints beside writers, loads and what is excised: each has all commits up to one, and none that came later,
// and what was committed before it was asked for is there.
func TestCheckpoint(t *testing.T) {
	const workers, taken = 4, 12
	for _, kind := range []string{"memory", "disk"} {
		t.Run(kind, func(t *testing.T) {
			o := pebblekv.Options{MemTableBytes: 256 << 10, CommitKey: []byte("zz")}
			dir := t.TempDir()
			if kind == "memory" {
				o.FS, dir = vfs.NewMem(), "db"
			}
			e := open(t, dir, o)
			b := &book{records: map[[2]int]uint64{}}
			e.Observe(b)
			var acknowledged [workers]atomic.Int64
			quit := make(chan struct{})
			var wg sync.WaitGroup
			for w := range workers {
				wg.Go(func() {
					for n := 0; commitOnce(t, e, w, n, &acknowledged[w]); n++ {
						select {
						case <-quit:
							return
						default:
						}
					}
				})
			}
			wg.Go(func() {
				for n := 0; ; n++ {
					load(t, e, n)
					select {
					case <-quit:
						return
					default:
					}
				}
			})
			for range taken {
				var promised [workers]int64
				for w := range promised {
					promised[w] = acknowledged[w].Load()
				}
				c, err := e.Checkpoint(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				checkCheckpoint(t, c, b, promised[:])
				if err := c.Remove(); err != nil {
					t.Fatal(err)
				}
			}
			close(quit)
			wg.Wait()
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func checkCheckpoint(t *testing.T, c kv.Checkpoint, b *book, promised []int64) {
	t.Helper()
	disk := copyOut(t, c)
	checkAfterCrash(t, disk, promised)
	e := open(t, "db", pebblekv.Options{FS: disk, CommitKey: []byte("zz")})
	defer e.Close()
	number, _ := c.Last()
	if got, _ := e.Last(); got != number {
		t.Fatalf("the checkpoint says that its last commit is %d, and in it is %d", number, got)
	}
	view, err := e.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	for w := range promised {
		_, last := countKeys(t, view, []byte{'a', byte(w)})
		if last >= 0 && b.records[[2]int{w, int(last)}] > number {
			t.Fatalf("record %d of worker %d is of commit %d, after %d", last, w, b.records[[2]int{w, int(last)}], number)
		}
		if next := b.records[[2]int{w, int(last) + 1}]; next != 0 && next <= number {
			t.Fatalf("record %d of worker %d is missing: commit %d, and the last is %d", last+1, w, next, number)
		}
	}
	want := 0
	for _, n := range b.loads {
		if n <= number {
			want += loadedPairs
		}
	}
	if got, _ := countKeys(t, view, []byte("l")); got != int64(want) {
		t.Fatalf("%d pairs were loaded up to commit %d, and %d are there", want, number, got)
	}
}

// TestCheckpointIsPrivate: only the owner gets at a checkpoint, and what is left of one goes when the store is opened again.
func TestCheckpointIsPrivate(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir, pebblekv.Options{})
	set(t, e, "a", kv.Synced)
	c, err := e.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	err = filepath.WalkDir(filepath.Join(dir, "checkpoints"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
		seen++
		return err
	})
	if err != nil || seen < len(c.Files()) {
		t.Fatalf("%d files seen, %v", seen, err)
	}
	if _, err := c.ReadAt("../EBB-FORMAT", make([]byte, 1), 0); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("a file that is not the checkpoint's: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = open(t, dir, pebblekv.Options{})
	if _, err := os.Stat(filepath.Join(dir, "checkpoints")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("what was left of the checkpoint is still there: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCheckpointFindsDamage: a table whose bytes have changed is named.
func TestCheckpointFindsDamage(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir, pebblekv.Options{})
	defer e.Close()
	for i := range 500 {
		set(t, e, fmt.Sprintf("%06d", i), kv.Unsynced)
	}
	c, err := e.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tables := 0
	for _, f := range c.Files() {
		if !f.Table {
			continue
		}
		tables++
		path := filepath.Join(dir, f.Name)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[100] ^= 1
		if err := os.WriteFile(path, b, 0o600); err != nil { // the table has two names, and this changes it under both
			t.Fatal(err)
		}
		if err := c.Check(t.Context(), f.Name); !errors.Is(err, kv.ErrCorrupt) || !strings.Contains(err.Error(), f.Name) {
			t.Fatalf("a damaged table: %v", err)
		}
	}
	if tables == 0 {
		t.Fatal("there is no table")
	}
}

// TestCheckpointOfLittle: beside tables, which whoever backs up has most of already, a checkpoint is small, however much was written before it: what is in
// memory is made tables of, and no log is copied that holds more than what came meanwhile.
func TestCheckpointOfLittle(t *testing.T) {
	e, err := pebblekv.OpenMemory(pebblekv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	value := make([]byte, 1000)
	written := 0
	write := func(n int) {
		for range n {
			written++
			txn, err := e.Begin()
			if err != nil {
				t.Fatal(err)
			}
			txn.Set(fmt.Appendf(nil, "k%06d", written), value)
			if err := txn.Commit(t.Context(), kv.Buffered); err != nil {
				t.Fatal(err)
			}
		}
	}
	beside := func() (bytes int64) {
		c, err := e.Checkpoint(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Remove()
		for _, f := range c.Files() {
			if !f.Table {
				bytes += f.Bytes
			}
		}
		return bytes
	}
	for _, n := range []int{5000, 0, 1, 100} {
		write(n)
		if got := beside(); got > 16<<10 {
			t.Errorf("after %d writes a checkpoint has %d bytes beside its tables", n, got)
		}
	}
}
