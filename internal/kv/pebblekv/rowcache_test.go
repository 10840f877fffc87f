package pebblekv

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/overlay"
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
	e, err := Open("db", Options{FS: vfs.NewMem(), RowCacheBytes: cacheShards * 1024})
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
	if _, kept := e.commits.rows.get(e.commits.rows.hash(pairKey(4, 0)), pairKey(4, 0), e.commits.sequence.Load()); !kept {
		t.Error("a key beside the range is no longer kept")
	}
}

// A value from within a deleted range is kept if who brings it has seen the deletion, and then for those who have.
func TestRowCacheOfferWithinARange(t *testing.T) {
	h := newRowCache(1 << 20)
	key := []byte("key")
	h.changeRange(overlay.Range{Start: []byte("a"), End: []byte("z")}, 5)
	for _, c := range []struct {
		offered, read uint64
		want          bool
	}{{4, 9, false}, {5, 4, false}, {5, 5, true}} {
		h.offer(h.hash(key), key, []byte("value"), c.offered)
		if _, kept := h.get(h.hash(key), key, c.read); kept != c.want {
			t.Errorf("offered at %d, read at %d: kept %v", c.offered, c.read, kept)
		}
	}
}

// More ranges than are listed leave nothing behind that they have deleted, and all else kept.
func TestRowCacheManyRanges(t *testing.T) {
	h := newRowCache(1 << 30)
	key := func(i int) []byte { return fmt.Appendf(nil, "%06d/key", i) }
	const keys = 40 * maxRanges
	for i := range keys {
		h.offer(h.hash(key(i)), key(i), []byte{'v'}, 1)
	}
	for sequence := range uint64(3*maxRanges + maxRanges/2) {
		first := 10 * int(sequence)
		h.changeRange(overlay.Range{Start: key(first), End: key(first + 3)}, sequence+2)
		h.offer(h.hash(key(first+1)), key(first+1), []byte{'v'}, 1) // by an old reader
		if n := len(h.listed()); n > maxRanges {
			t.Fatalf("%d ranges are listed", n)
		}
	}
	for i := range keys {
		_, kept := h.get(h.hash(key(i)), key(i), 1<<20)
		if deleted := i%10 < 3 && i < 35*maxRanges; kept == deleted {
			t.Fatalf("key %d: kept %v, deleted %v", i, kept, deleted)
		}
	}
}

// What ends piece by piece fills the list only at first, and nothing beside it is forgotten for it.
func TestRowCacheGrowingRange(t *testing.T) {
	h := newRowCache(1 << 20)
	for sequence := range uint64(5 * maxRanges) {
		start, end := fmt.Appendf(nil, "swept/%06d", 10*sequence), fmt.Appendf(nil, "swept/%06d", 10*sequence+5)
		h.changeRange(overlay.Range{Start: start, End: end}, sequence+2)
		if n := len(h.listed()); n == 0 || n > maxRanges {
			t.Fatalf("%d ranges are listed", n)
		}
	}
	for name, want := range map[string]bool{"swept/000000": false, "swept/010002": false, "swept/999999": true, "other": true} {
		key := []byte(name)
		h.offer(h.hash(key), key, []byte{'v'}, 1)
		if _, kept := h.get(h.hash(key), key, 1); kept != want {
			t.Errorf("%s: kept %v", name, kept)
		}
	}
}

// Ranges that touch become one; the others stay as they are, in order.
func TestRanges(t *testing.T) {
	var l ranges
	for i, step := range []struct{ start, end, want string }{
		{"d", "f", "d-f:1"},
		{"a", "b", "a-b:2 d-f:1"},
		{"x", "z", "a-b:2 d-f:1 x-z:3"},
		{"d", "g", "a-b:2 d-g:4 x-z:3"},
		{"g", "h", "a-b:2 d-h:5 x-z:3"},
		{"e", "f", "a-b:2 d-h:6 x-z:3"},
		{"c", "d", "a-b:2 c-h:7 x-z:3"},
		{"b", "y", "a-z:8"},
	} {
		l = l.with(overlay.Range{Start: []byte(step.start), End: []byte(step.end)}, uint64(i+1))
		var got []string
		for _, r := range l {
			got = append(got, fmt.Sprintf("%s-%s:%d", r.Start, r.End, r.sequence))
		}
		if text := strings.Join(got, " "); text != step.want {
			t.Fatalf("step %d: %s, want %s", i+1, text, step.want)
		}
	}
	for key, want := range map[string]uint64{"a": 8, "q": 8, "Z": 0, "z": 0, "zz": 0} {
		if got := l.find([]byte(key)); got != want {
			t.Errorf("%s is deleted at %d, want %d", key, got, want)
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

// What is kept stays within its budget, and what is used stays longer.
func TestRowCacheBudget(t *testing.T) {
	h := newRowCache(cacheShards * 4096)
	for i := range 10_000 {
		key := fmt.Appendf(nil, "key/%d", i)
		h.offer(h.hash(key), key, make([]byte, 100), 1)
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

// What is written enters where there is room or an older value of its key, and drives nothing else out.
func TestRowCacheWrite(t *testing.T) {
	h := newRowCache(cacheShards * 4096)
	key := func(i int) []byte { return fmt.Appendf(nil, "key/%d", i) }
	kept := func(i int, at uint64) bool { _, ok := h.get(h.hash(key(i)), key(i), at); return ok }
	h.write(key(0), make([]byte, 100), 7)
	if !kept(0, 7) || kept(0, 6) {
		t.Error("what was written at 7 is for those who began then, and not before")
	}
	for i := range 10_000 {
		h.offer(h.hash(key(i)), key(i), make([]byte, 100), 9)
	}
	var there []int
	for i := range 10_000 {
		if kept(i, 9) {
			there = append(there, i)
		}
	}
	for i := range 10_000 {
		h.write(key(20_000+i), make([]byte, 100), 10)
	}
	for _, i := range there {
		if !kept(i, 10) {
			t.Fatalf("what was written drove out %d", i)
		}
	}
	written := there[len(there)-1]
	h.write(key(written), make([]byte, 200), 11)
	if value, ok := h.get(h.hash(key(written)), key(written), 11); !ok || len(value) != 200 {
		t.Errorf("a value in the place of an older one: %d bytes, %v", len(value), ok)
	}
	h.write(key(written), make([]byte, maxCachedValue+1), 12)
	if kept(written, 12) {
		t.Error("the older value of what is too large is still kept")
	}
}

// What a reader was given stays as it is, whatever comes after it.
func TestRowCacheValuesStay(t *testing.T) {
	h := newRowCache(cacheShards * 1024)
	type given struct{ value, was []byte }
	var all []given
	for i := range 5000 {
		key, value := fmt.Appendf(nil, "key/%d", i%300), binary.BigEndian.AppendUint64(nil, uint64(i))
		if i%2 == 0 {
			h.write(key, value, uint64(i))
		} else if kept, ok := h.offer(h.hash(key), key, value, uint64(i)); ok {
			all = append(all, given{kept, value})
		}
		if got, ok := h.get(h.hash(key), key, uint64(i)); ok {
			all = append(all, given{got, value})
		}
	}
	for _, g := range all {
		_ = append(g.value, "and more that was appended"...)
	}
	for _, g := range all {
		if string(g.value) != string(g.was) {
			t.Fatalf("a value that was %x is %x", g.was, g.value)
		}
	}
	if len(all) < 5000 {
		t.Errorf("only %d values were kept", len(all))
	}
}

// What was taken out does not come back when its chunk goes.
func TestRowCacheChangeStays(t *testing.T) {
	h := newRowCache(cacheShards * 1024)
	key := func(i int) []byte { return fmt.Appendf(nil, "key/%d", i) }
	const first = 1000
	for i := range first {
		h.offer(h.hash(key(i)), key(i), []byte{'v'}, 1)
		h.get(h.hash(key(i)), key(i), 1)
		h.change(key(i), 2)
	}
	for i := first; i < 20*first; i++ {
		h.offer(h.hash(key(i)), key(i), []byte{'v'}, 2)
	}
	for i := range first {
		if _, kept := h.get(h.hash(key(i)), key(i), 2); kept {
			t.Fatalf("%d is kept", i)
		}
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
			value, kept := e.commits.rows.get(e.commits.rows.hash(benchKey(i)), benchKey(i), e.commits.sequence.Load())
			if want := i < keys; kept != want || kept && string(value) != "row" {
				t.Fatalf("%d of %d keys: %q, kept %v", i, keys, value, kept)
			}
		}
	}
}

// What is written and expires in turn takes the memory of what is there, not of all there has been.
func TestRowCacheShrinks(t *testing.T) {
	const each, live = 4000, 3
	h := newRowCache(1 << 30)
	h.chunk = 4096
	record := func(i int) []byte { return fmt.Appendf(nil, "record/%08d", i) }
	id := func(i int) []byte { return fmt.Appendf(nil, "id/%08d", i) }
	size := 0
	for wave := range 20 {
		sequence := uint64(2*wave + 1)
		for i := wave * each; i < (wave+1)*each; i++ {
			h.write(record(i), make([]byte, 100), sequence)
			h.write(id(i), record(i), sequence)
			size += sizeOf(record(i), make([]byte, 100)) + sizeOf(id(i), record(i))
		}
		if wave < live {
			continue
		}
		gone := wave - live
		for i := gone * each; i < (gone+1)*each; i++ {
			h.change(id(i), sequence+1)
		}
		h.changeRange(overlay.Range{Start: record(gone * each), End: record((gone + 1) * each)}, sequence+1)
	}
	h.wait()
	bytes := 0
	for i := range h.shards {
		bytes += h.shards[i].bytes
	}
	if most := size / 20 * (live + 1) * 6 / 5; bytes > most {
		t.Errorf("%d bytes are kept of %d, want at most %d", bytes, size, most)
	}
	for i := range 20 * each {
		_, kept := h.get(h.hash(record(i)), record(i), 100)
		if want := i >= (20-live)*each; kept != want {
			t.Fatalf("%d: kept %v, want %v", i, kept, want)
		}
	}
}

// A chunk is looked through in steps, of so many entries each, and goes when all of it was; one that counts ends that.
func TestRowCacheShrinksInSteps(t *testing.T) {
	const entries, step = 20_000, 7
	h := newRowCache(1 << 30)
	h.chunk = 2048
	key := func(i int) []byte { return fmt.Appendf(nil, "record/%08d", i) }
	for i := range entries {
		h.write(key(i), make([]byte, 20), 1)
	}
	list := h.listed().with(overlay.Range{Start: key(0), End: key(entries / 2)}, 2)
	h.ranges.Store(&list)
	looked := 0
	for i := range h.shards {
		for more := true; more; {
			var n int
			n, more = h.shards[i].shrink(h, step)
			if looked += n; n > step {
				t.Fatalf("%d entries were looked at", n)
			}
		}
	}
	kept := 0
	for i := range h.shards {
		kept += h.shards[i].full
	}
	// What lies before the first that counts in its chunk stays in the table.
	if most := entries/2 + cacheShards*h.chunk/entryLength(key(0), make([]byte, 20)); looked != entries/2 || kept < entries/2 || kept > most {
		t.Errorf("%d entries were looked at, and %d are kept", looked, kept)
	}
	for i := range entries {
		if _, kept := h.get(h.hash(key(i)), key(i), 100); kept != (i >= entries/2) {
			t.Fatalf("%d: kept %v", i, kept)
		}
	}
}

// What is stale stands for nothing, however the table changes: values come and go, are asked for, and expire in waves, while the
// numbers of chunks begin anew.
func TestRowCacheStale(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	h := newRowCache(cacheShards << 16)
	h.chunk = 1 << 10
	start := uint32(placeMask - 40)
	for i := range h.shards {
		h.shards[i].publish(start, h.shards[i].view.Load().table)
	}
	key := func(wave, i int) []byte { return fmt.Appendf(nil, "record/%03d/%05d", wave, i) }
	const waves, each = 60, 2000
	want := map[string]uint64{} // the sequence with which a key was written last
	sequence := uint64(1)
	for wave := range waves {
		for i := range each {
			h.write(key(wave, i), binary.BigEndian.AppendUint64(nil, sequence), sequence)
			want[string(key(wave, i))] = sequence
			if n := rng.IntN(each); n%4 == 0 { // one of a wave before, which may have expired
				old := key(max(0, wave-rng.IntN(4)), n)
				h.write(old, binary.BigEndian.AppendUint64(nil, sequence), sequence)
				want[string(old)] = sequence
			} else if n%7 == 0 {
				h.change(key(wave, n), sequence)
				delete(want, string(key(wave, n)))
			}
		}
		sequence++
		h.changeRange(overlay.Range{Start: key(max(0, wave-3), 0), End: key(wave, rng.IntN(each))}, sequence)
		switch rng.IntN(4) {
		case 0, 1:
			h.wait()
		case 2:
			h.settle(h.listed(), sequence)
		}
		sequence++
		for n := wave - 4; n <= wave; n++ {
			for i := range each {
				k := key(max(0, n), i)
				value, kept := h.get(h.hash(k), k, sequence)
				if kept && (want[string(k)] == 0 || binary.BigEndian.Uint64(value) != want[string(k)] || h.deleted(k) > want[string(k)]) {
					t.Fatalf("seed %d: wave %d: %s is %x, want what was written at %d", seed, wave, k, value, want[string(k)])
				}
			}
		}
	}
	h.wait()
	for i := range h.shards {
		s := &h.shards[i]
		if s.view.Load().first == start {
			t.Errorf("nothing of shard %d went", i)
		}
		if n := s.full - s.view.Load().table.count(func(place) bool { return true }); n != 0 {
			t.Errorf("seed %d: shard %d counts %d slots too many", seed, i, n)
		}
		if stale := s.view.Load().table.count(func(p place) bool { return p.chunk(s.view.Load().first) >= len(s.chunks) }); stale > s.stale {
			t.Errorf("seed %d: shard %d has %d stale slots, and counts %d", seed, i, stale, s.stale)
		}
	}
}

// A chunk does not get a number that stale slots have.
func TestRowCacheStaleNumbers(t *testing.T) {
	h := newRowCache(cacheShards << 20)
	h.chunk = 256
	s := &h.shards[0]
	s.mu.Lock()
	defer s.mu.Unlock()
	key := func(i int) []byte { return fmt.Appendf(nil, "record/%05d", i) }
	short := func(i int) uint32 { return uint32(i) * 0x9e3779b9 }
	value := make([]byte, 100)
	const stale = 200
	for i := range stale {
		s.add(short(i), key(i), value, 1, h.chunk)
	}
	for len(s.chunks) > 1 {
		s.passed = 2 // as many as there are in a chunk
		s.popStale()
	}
	for i := stale; s.view.Load().first < 2*placeMask; i++ {
		s.add(short(i), key(i), value, 1, h.chunk)
		if len(s.chunks) > 3 {
			s.evict(h.chunk)
		}
		for n := 0; s.view.Load().first&placeMask < stale && n < stale-2; n++ {
			if e, _ := s.view.Load().find(short(n)); e != nil {
				t.Fatalf("%d: under the stale hash %d lies %q", i, n, e)
			}
		}
	}
}

// A store that is closed does not wait until all memory is given back.
func TestRowCacheStops(t *testing.T) {
	const entries = 8 * shrunkAtOnce
	h := newRowCache(1 << 30)
	h.chunk = 2048
	for i := range entries {
		h.write(fmt.Appendf(nil, "record/%08d", i), make([]byte, 20), 1)
	}
	close(h.quit)
	h.changeRange(overlay.Range{Start: []byte("record/"), End: []byte("record0")}, 2)
	h.wait()
	kept := 0
	for i := range h.shards {
		kept += h.shards[i].full
	}
	if kept < entries-2*shrunkAtOnce {
		t.Errorf("%d of %d were taken out", entries-kept, entries)
	}
}
