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
func TestHotValuesAreOfOneView(t *testing.T) {
	e, err := Open("db", Options{FS: vfs.NewMem(), HotBytes: hotShards * 1024})
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

// write adds one to a group of its own half.
func (p *pairs) write(half int) {
	group := rand.IntN(pairGroups/2)*2 + half
	next := p.acked[group].Load() + 1
	txn, err := p.engine.Begin()
	if err != nil {
		p.Error(err)
		return
	}
	for i := range pairKeys {
		txn.Set(pairKey(group, i), binary.BigEndian.AppendUint64(nil, next))
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
func TestHotValuesOfADeletedRange(t *testing.T) {
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

// What is kept stays within its budget, and what is used stays longer.
func TestHotBudget(t *testing.T) {
	h := newHot(hotShards * 4096)
	for i := range 10_000 {
		key := fmt.Appendf(nil, "key/%d", i)
		h.offer(h.hash(key), append(key, make([]byte, 100)...), len(key), 1)
		if first := []byte("key/0"); i > 0 {
			if _, ok := h.get(h.hash(first), first, 1); !ok {
				t.Fatalf("a value in use is gone after %d others", i)
			}
		}
	}
	for i := range h.shards {
		if n := h.shards[i].bytes; n > h.budget {
			t.Errorf("shard %d holds %d bytes, more than %d", i, n, h.budget)
		}
	}
}
