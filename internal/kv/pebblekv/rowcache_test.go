package pebblekv

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/kv"
)

// pairs is a store in which each commit gives all keys of one group the same, larger number.
type pairs struct {
	*testing.T
	engine *Engine
	acked  [pairGroups]atomic.Uint64
}

const (
	pairGroups = 20
	pairKeys   = 3
	pairRounds = 3000
)

func pairKey(group, i int) []byte { return fmt.Appendf(nil, "pair/%d/%d", group, i) }

// Readers of any age see all keys of a group alike, and nothing older than what was acknowledged before they began.
func TestRowCacheValuesAreOfOneView(t *testing.T) {
	e, err := Open("db", Options{FS: vfs.NewMem(), RowCacheBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	p := &pairs{T: t, engine: e}
	var all sync.WaitGroup
	var done atomic.Bool
	for range 4 {
		all.Go(func() {
			for !done.Load() {
				p.read()
			}
		})
	}
	var writers sync.WaitGroup
	for w := range 2 {
		writers.Go(func() {
			for range pairRounds {
				p.write(w)
			}
		})
	}
	writers.Wait()
	done.Store(true)
	all.Wait()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// write adds one to a group of its own half; each fourth time it deletes the group's range too.
func (p *pairs) write(half int) {
	group := rand.IntN(pairGroups/2)*2 + half
	next := p.acked[group].Load() + 1
	txn, err := p.engine.Begin()
	if err != nil {
		p.Error(err)
		return
	}
	for i := range pairKeys {
		set := txn.Set
		if group%4 < 2 {
			set = txn.SetCached
		}
		set(pairKey(group, i), binary.BigEndian.AppendUint64(nil, next))
	}
	if rand.IntN(4) == 0 {
		txn.DeleteRange(pairKey(group, 0), pairKey(group, pairKeys))
	}
	if err := txn.Commit(context.Background(), kv.Buffered); err != nil {
		p.Error(err)
	}
	p.acked[group].Store(next)
}

func (p *pairs) read() {
	group := rand.IntN(pairGroups)
	least := p.acked[group].Load()
	s, err := p.engine.Snapshot()
	if err != nil {
		p.Error(err)
		return
	}
	defer s.Close()
	var seen [pairKeys]uint64
	for i := range seen {
		seen[i] = p.get(s, pairKey(group, i))
	}
	if seen[0] < least || seen[1] != seen[0] || seen[2] != seen[0] {
		p.Errorf("group %d reads %d where %d was acknowledged", group, seen, least)
	}
}

func (p *pairs) get(r kv.Reader, key []byte) uint64 {
	value, err := r.Get(key)
	if errors.Is(err, kv.ErrNotFound) {
		return 0
	}
	if err != nil {
		p.Error(err)
		return 0
	}
	return binary.BigEndian.Uint64(value)
}

// A deleted range takes what is kept of it along.
func TestRowCacheValuesOfADeletedRange(t *testing.T) {
	e, err := Open("db", Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	p := &pairs{T: t, engine: e}
	p.write(0)
	for range 2 { // the second finds it kept
		if n := p.all(); n != pairKeys {
			t.Fatalf("%d keys before, want %d", n, pairKeys)
		}
	}
	if err := e.DeleteRange([]byte("pair/"), []byte("pair0")); err != nil {
		t.Fatal(err)
	}
	if n := p.all(); n != 0 {
		t.Fatalf("%d keys are left", n)
	}
}

// A transaction's deleted range takes what is kept of it along and leaves the rest kept; what a reader brings that began
// before is not kept.
func TestRowCacheValuesOfATransactionsRange(t *testing.T) {
	e, err := Open("db", Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	p := &pairs{T: t, engine: e}
	for range 50 * pairGroups {
		p.write(0)
	}
	for range 2 {
		if n := p.all(); n != pairKeys*pairGroups/2 {
			t.Fatalf("%d keys before", n)
		}
	}
	old, err := e.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	txn, err := e.Begin()
	if err != nil {
		t.Fatal(err)
	}
	txn.DeleteRange(pairKey(0, 0), pairKey(0, 1))
	txn.DeleteRange(pairKey(2, 0), pairKey(2, pairKeys))
	txn.Set(pairKey(2, 1), binary.BigEndian.AppendUint64(nil, 1))
	if err := txn.Commit(context.Background(), kv.Buffered); err != nil {
		t.Fatal(err)
	}
	for _, key := range [][]byte{pairKey(0, 0), pairKey(2, 0)} {
		if n := p.get(old, key); n == 0 {
			t.Errorf("an old reader lost %s", key)
		}
	}
	if n := p.all(); n != pairKeys*pairGroups/2-pairKeys {
		t.Errorf("%d keys are left", n)
	}
	if _, kept := e.commits.rows.Get(e.commits.rows.Hash(pairKey(4, 0)), pairKey(4, 0), e.commits.sequence.Load()); !kept {
		t.Error("a key beside the range is no longer kept")
	}
}

// A commit keeps what it sets as cached, few keys or many, and nothing else.
func TestCommitKeepsRowCache(t *testing.T) {
	e, err := Open("db", Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for _, keys := range []int{2, 1000} {
		txn, err := e.BeginBlind()
		if err != nil {
			t.Fatal(err)
		}
		for i := range keys {
			txn.SetCached(benchKey(i), []byte("row"))
			txn.Set(benchKey(keys+i), []byte("not"))
		}
		if err := txn.Commit(context.Background(), kv.Synced); err != nil {
			t.Fatal(err)
		}
		for i := range 2 * keys {
			value, kept := e.commits.rows.Get(e.commits.rows.Hash(benchKey(i)), benchKey(i), e.commits.sequence.Load())
			if want := i < keys; kept != want || kept && string(value) != "row" {
				t.Fatalf("%d of %d keys: %q, kept %v", i, keys, value, kept)
			}
		}
	}
}

// all counts the keys that are there.
func (p *pairs) all() (n int) {
	s, err := p.engine.Snapshot()
	if err != nil {
		p.Fatal(err)
	}
	defer s.Close()
	for group := range pairGroups {
		for i := range pairKeys {
			if p.get(s, pairKey(group, i)) > 0 {
				n++
			}
		}
	}
	return n
}
