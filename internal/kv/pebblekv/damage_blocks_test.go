package pebblekv_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
)

// kindBlock is a block of a table.
type kindBlock struct {
	kind  string
	start int
	end   int // behind its trailer
}

// blocksOf are the blocks of a table's file, of each kind.
func blocksOf(t *testing.T, disk vfs.FS, path string) (list []kindBlock) {
	t.Helper()
	file, err := disk.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	readable, err := sstable.NewSimpleReadable(file)
	if err != nil {
		t.Fatal(err)
	}
	o := &pebble.Options{}
	o.EnsureDefaults()
	r, err := sstable.NewReader(context.Background(), readable, o.MakeReaderOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	l, err := r.Layout()
	if err != nil {
		t.Fatal(err)
	}
	add := func(kind string, h block.Handle, trailer int) {
		if h.Length > 0 {
			list = append(list, kindBlock{kind, int(h.Offset), int(h.Offset+h.Length) + trailer})
		}
	}
	for _, h := range l.Data {
		add("data", h.Handle, block.TrailerLen)
	}
	for _, h := range l.Index {
		add("index", h, block.TrailerLen)
	}
	for _, h := range l.Filter {
		add("filter", h.Handle, block.TrailerLen)
	}
	add("top-level index", l.TopIndex, block.TrailerLen)
	add("range deletions", l.RangeDel, block.TrailerLen)
	add("properties", l.Properties, block.TrailerLen)
	add("metaindex", l.MetaIndex, block.TrailerLen)
	add("footer", l.Footer, 0)
	return list
}

func numberKey(prefix string, n int) string { return fmt.Sprintf("%s%05d", prefix, n) }

// largest is the largest table.
func largest(f files) (path string) {
	for p, b := range f {
		if strings.HasSuffix(p, ".sst") && len(b) > len(f[path]) {
			path = p
		}
	}
	return path
}

const (
	numberedKeys = 1500
	blockBytes   = 32 << 10
)

// numberedStore is a closed store whose keys lie in one table.
func numberedStore(t *testing.T, prefix string, further func(*pebblekv.Engine, content)) (files, content) {
	t.Helper()
	disk, want, r := vfs.NewMem(), content{}, rand.New(rand.NewPCG(5, 5))
	e := open(t, "db", pebblekv.Options{FS: disk, Clock: clock.NewFake(time.Unix(0, 0))}) // the reclaimer stays away
	put(t, e, want, func(txn kv.Txn) {
		for n := range numberedKeys {
			key, v := numberKey(prefix, n), value(r)
			txn.Set([]byte(key), []byte(v))
			want[key] = v
		}
	})
	if err := errors.Join(e.Flush(), e.CompactAll([]byte{0}, []byte{255})); err != nil {
		t.Fatal(err)
	}
	further(e, want)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return readFiles(t, disk, "db"), want
}

func put(t *testing.T, e *pebblekv.Engine, want content, f func(kv.Txn)) {
	t.Helper()
	txn := begin(t, e)
	f(txn)
	if err := txn.Commit(context.Background(), kv.Synced); err != nil {
		t.Fatal(err)
	}
}

func deleteNumbered(txn kv.Txn, want content, start, end string) {
	txn.DeleteRange([]byte(start), []byte(end))
	maps.DeleteFunc(want, func(key, _ string) bool { return start <= key && key < end })
}

// checkServes: what is not told to be damaged is as it was.
func checkServes(t *testing.T, e *pebblekv.Engine, want content, when string) (damaged bool) {
	t.Helper()
	corrupt, err := serves(e, want)
	if err != nil {
		t.Errorf("%s: SILENT LOSS: %v", when, err)
	}
	if corrupt != nil {
		checkReadOnly(t, e)
	}
	return corrupt != nil
}

// TestCutOfDamage: who cuts a range out of a table and cannot read what is left of it beside the range does not take it for empty.
// Nothing is dropped, and the damage is told.
func TestCutOfDamage(t *testing.T) {
	for _, c := range []struct {
		name       string
		start, end int
	}{{"left of the range", 1000, 99999}, {"right of the range", 0, 500}} {
		for _, excises := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, excised %v", c.name, excises), func(t *testing.T) {
				sound, want := numberedStore(t, "k", func(*pebblekv.Engine, content) {})
				start, end := numberKey("k", c.start), numberKey("k", c.end)
				path := largest(sound)
				b := bytes.Clone(sound[path])
				beside := len(b) * max(c.start, 500) / numberedKeys
				for _, block := range blocksOf(t, sound.disk(t), path) { // the one beside the range, and its neighbours
					if block.kind == "data" && block.start < beside+blockBytes && block.end > beside-blockBytes {
						clear(b[block.start:block.end])
					}
				}
				disk := sound.with(path, b).disk(t)
				o := pebblekv.Options{FS: disk, Clock: clock.NewFake(time.Unix(0, 0))}
				e := open(t, "db", o)
				put(t, e, want, func(txn kv.Txn) { deleteNumbered(txn, want, start, end) })
				if err := e.Flush(); err != nil {
					t.Fatal(err)
				}
				e.Settle(40)
				if excises {
					if gone, _, err := e.Excise([]byte(start), []byte(end)); gone || !errors.Is(err, kv.ErrCorrupt) {
						t.Errorf("it was excised: %v, %v", gone, err)
					}
				}
				for turn := range 2 {
					if !checkServes(t, e, want, fmt.Sprint("turn ", turn)) {
						t.Error("nothing is damaged")
					}
					if err := e.Close(); err != nil {
						t.Fatal(err)
					}
					e = open(t, "db", o)
				}
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// TestDamagedBlocks puts zeros in the place of blocks of each kind, or of a part of one, has what is left compacted, cut and read,
// and opened again: what was acknowledged is there, or the store says that it is damaged, or it is refused.
func TestDamagedBlocks(t *testing.T) {
	for _, index := range []struct{ name, prefix string }{{"one level", "k"}, {"two levels", strings.Repeat("k", 3<<10)}} {
		t.Run("index of "+index.name, func(t *testing.T) {
			key := func(n int) string { return numberKey(index.prefix, n) }
			sound, want := numberedStore(t, index.prefix, func(e *pebblekv.Engine, want content) {
				put(t, e, want, func(txn kv.Txn) {
					deleteNumbered(txn, want, key(700), key(900))
					txn.Set([]byte(key(800)), []byte("new"))
					want[key(800)] = "new"
				})
				if err := e.Flush(); err != nil {
					t.Fatal(err)
				}
			})
			kinds := map[string]int{}
			for _, path := range slices.Sorted(maps.Keys(sound)) {
				if !strings.HasSuffix(path, ".sst") {
					continue
				}
				for n, block := range blocksOf(t, sound.disk(t), path) {
					middle := (block.start + block.end) / 2
					for v, part := range [][2]int{{block.start, block.end}, {block.end - 5, block.end}, {middle, min(middle+374, block.end)}} {
						if *damageRounds < 100 && (v != kinds[block.kind]%3 || block.kind == "data" && n%6 > 0) {
							continue // all of them take long: the search for a flipped bit does
						}
						b := bytes.Clone(sound[path])
						if clear(b[part[0]:part[1]]); bytes.Equal(b, sound[path]) {
							continue
						}
						what := fmt.Sprintf("%s, %s, zeros from %d to %d", filepath.Base(path), block.kind, part[0], part[1])
						checkDamagedBlock(t, sound.with(path, b).disk(t), what, maps.Clone(want), key)
					}
					kinds[block.kind]++
				}
			}
			if kinds["range deletions"] == 0 || (kinds["top-level index"] > 0) != (index.name == "two levels") {
				t.Error(kinds)
			}
		})
	}
}

func checkDamagedBlock(t *testing.T, disk vfs.FS, what string, want content, key func(int) string) {
	t.Helper()
	o := pebblekv.Options{FS: disk, Clock: clock.NewFake(time.Unix(0, 0))}
	e, err := pebblekv.Open("db", o)
	for turn := 0; err == nil && turn < 2; turn++ {
		e.Settle(20)
		if turn == 0 {
			start, end := key(1200), key(99999)
			if e.DeleteRange([]byte(start), []byte(end)) == nil {
				maps.DeleteFunc(want, func(key, _ string) bool { return start <= key && key < end })
				if err := e.Flush(); err != nil {
					t.Error(what, err)
				}
				e.Settle(20)
				if _, _, err := e.Excise([]byte(start), []byte(end)); err != nil && !errors.Is(err, kv.ErrCorrupt) && !errors.Is(err, kv.ErrReadOnly) {
					t.Error(what, err)
				}
			}
			_ = e.CompactAll([]byte{0}, []byte{255}) // which fails where it meets the damage
		}
		checkServes(t, e, want, fmt.Sprint(what, ", turn ", turn))
		if err := e.Close(); err != nil {
			t.Error(what, err)
		}
		e, err = pebblekv.Open("db", o)
	}
	if err == nil {
		err = e.Close()
	}
	if err != nil && !strings.Contains(err.Error(), "damaged") && !strings.Contains(err.Error(), ".sst") {
		t.Errorf("%s: refused with %v", what, err)
	}
}
