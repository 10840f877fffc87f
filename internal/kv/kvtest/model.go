package kvtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sort"
	"strconv"
	"testing"

	"github.com/ebbdb/ebb/internal/kv"
)

// seedVariable makes a failed random run repeatable.
const seedVariable = "EBB_KVTEST_SEED"

const (
	modelSteps = 4000
	modelKeys  = 40
	modelTxns  = 5
)

// model does what the contract says, naively: a view is a copy of everything.
type model struct {
	data     map[string]string
	counters map[string]int64
	claims   map[string]int // key → commit that claimed it last
	commits  int
}

// modelTxn is a transaction and what it should see.
type modelTxn struct {
	txn      kv.Txn
	begin    int
	data     map[string]string
	counters map[string]int64
	ranges   [][2]string
	writes   map[string]*string
	adds     map[string]int64
	claims   []string
	walks    []modelWalk
}

// modelWalk is an iterator and what it walks over.
type modelWalk struct {
	it      kv.Iterator
	entries []string // keys
	data    map[string]string
	at      int // -1 when it stands nowhere
	fresh   bool
}

// checkModel runs random interleavings of a few transactions against the model.
func checkModel(t *testing.T, s *Store) {
	seed := rand.Uint64()
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		noError(t, err)
	}
	t.Logf("again with: %s=%d go test -run '%s'", seedVariable, seed, t.Name())
	r := &modelRun{t: t, s: s, rng: rand.New(rand.NewPCG(seed, 0))}
	r.model = model{data: map[string]string{}, counters: map[string]int64{}, claims: map[string]int{}}
	for range modelSteps {
		r.step()
	}
	for _, m := range r.open {
		r.closeWalks(m)
		m.txn.Rollback()
	}
	view := snap(t, s)
	defer view.Close()
	r.compare(view, r.model.data, r.model.counters)
}

type modelRun struct {
	t     *testing.T
	s     *Store
	rng   *rand.Rand
	model model
	open  []*modelTxn
}

func (r *modelRun) step() {
	if len(r.open) < modelTxns && r.rng.IntN(4) == 0 {
		r.open = append(r.open, r.begin())
		return
	}
	switch dice := r.rng.IntN(400); {
	case dice == 0:
		r.deleteRange()
		return
	case dice == 1 && r.s.Reopen != nil && len(r.open) == 0:
		r.s.Engine = r.s.Reopen(r.t)
		return
	}
	if len(r.open) == 0 {
		return
	}
	i := r.rng.IntN(len(r.open))
	m := r.open[i]
	switch r.rng.IntN(13) {
	case 0, 1, 2, 3:
		r.write(m)
	case 4:
		key := r.key()
		m.claims = append(m.claims, key)
		m.txn.Claim([]byte(key))
	case 5:
		key, delta := r.counter(), r.rng.Int64N(100)-50
		m.adds[key] += delta
		m.counters[key] += delta
		m.txn.Add([]byte(key), delta)
	case 6:
		r.compareKey(m)
	case 7, 8, 9:
		r.walk(m)
	case 10:
		if r.rng.IntN(3) == 0 {
			r.compare(m.txn, m.data, m.counters)
		}
	case 11:
		r.end(m)
		r.open = slices.Delete(r.open, i, i+1)
	case 12:
		r.deleteOwnRange(m)
	}
}

func (r *modelRun) key() string     { return fmt.Sprintf("k%02d", r.rng.IntN(modelKeys)) }
func (r *modelRun) counter() string { return fmt.Sprintf("n%d", r.rng.IntN(4)) }

func (r *modelRun) begin() *modelTxn {
	return &modelTxn{
		txn: begin(r.t, r.s), begin: r.model.commits,
		data: maps.Clone(r.model.data), counters: maps.Clone(r.model.counters),
		writes: map[string]*string{}, adds: map[string]int64{},
	}
}

func (r *modelRun) write(m *modelTxn) {
	key := r.key()
	if r.rng.IntN(3) == 0 {
		m.txn.Delete([]byte(key))
		delete(m.data, key)
		m.writes[key] = nil
		return
	}
	value := fmt.Sprint(r.rng.IntN(1000))
	m.txn.Set([]byte(key), []byte(value))
	m.data[key] = value
	m.writes[key] = &value
}

func (r *modelRun) deleteRange() {
	from, to := r.key(), r.key()
	noError(r.t, r.s.DeleteRange([]byte(from), []byte(to)))
	maps.DeleteFunc(r.model.data, func(key, _ string) bool { return from <= key && key < to })
}

// deleteOwnRange: the transaction sees nothing of it.
func (r *modelRun) deleteOwnRange(m *modelTxn) {
	if !r.s.Capabilities().RangeDeletes {
		return
	}
	from, to := r.key(), r.key()
	if r.rng.IntN(8) == 0 {
		from, to = r.counter(), r.counter()
	}
	m.txn.DeleteRange([]byte(from), []byte(to))
	m.ranges = append(m.ranges, [2]string{from, to})
}

func (r *modelRun) end(m *modelTxn) {
	r.closeWalks(m)
	if r.rng.IntN(6) == 0 {
		m.txn.Rollback()
		return
	}
	conflicts := slices.ContainsFunc(m.claims, func(key string) bool { return r.model.claims[key] > m.begin })
	err := m.txn.Commit(context.Background(), kv.Durability(r.rng.IntN(2)))
	if conflicts {
		if !errors.Is(err, kv.ErrConflict) {
			r.t.Fatalf("commit: %v, want a write conflict", err)
		}
		return
	}
	noError(r.t, err)
	r.model.commits++
	for _, key := range m.claims {
		r.model.claims[key] = r.model.commits
	}
	for _, span := range m.ranges {
		maps.DeleteFunc(r.model.data, func(key, _ string) bool { return span[0] <= key && key < span[1] })
		maps.DeleteFunc(r.model.counters, func(key string, _ int64) bool { return span[0] <= key && key < span[1] })
	}
	for key, value := range m.writes {
		if value == nil {
			delete(r.model.data, key)
		} else {
			r.model.data[key] = *value
		}
	}
	for key, delta := range m.adds {
		r.model.counters[key] += delta
	}
}

func (r *modelRun) compareKey(m *modelTxn) {
	key := r.key()
	get := m.txn.Get
	if r.rng.IntN(2) == 0 {
		get = m.txn.Probe
	}
	got, err := get([]byte(key))
	want, ok := m.data[key]
	if ok != (err == nil) || string(got) != want {
		r.t.Fatalf("get %s: %q, %v; want %q, %v", key, got, err, want, ok)
	}
}

func (r *modelRun) compare(reader kv.Reader, data map[string]string, counters map[string]int64) {
	r.t.Helper()
	want := ""
	for _, key := range slices.Sorted(maps.Keys(data)) {
		want += " " + key + "=" + data[key]
	}
	if want != "" {
		want = want[1:]
	}
	haveWithin(r.t, reader, kv.IterOptions{Lower: []byte("k"), Upper: []byte("l")}, want)
	for i := range 4 {
		key := fmt.Sprintf("n%d", i)
		haveCount(r.t, reader, key, counters[key])
	}
}

// walk opens an iterator within random bounds, or moves an open one and looks where it stands.
func (r *modelRun) walk(m *modelTxn) {
	if len(m.walks) == 0 || len(m.walks) < 3 && r.rng.IntN(8) == 0 {
		m.walks = append(m.walks, r.openWalk(m))
	}
	w := &m.walks[r.rng.IntN(len(m.walks))]
	for range 1 + r.rng.IntN(6) {
		r.move(w)
	}
	if r.rng.IntN(10) == 0 {
		noError(r.t, w.it.Close())
		m.walks = slices.DeleteFunc(m.walks, func(other modelWalk) bool { return other.it == w.it })
	}
}

func (r *modelRun) openWalk(m *modelTxn) modelWalk {
	o := kv.IterOptions{Lower: []byte("k"), Upper: []byte("l")}
	if r.rng.IntN(2) == 0 {
		o.Lower = []byte(r.key())
	}
	if r.rng.IntN(2) == 0 {
		o.Upper = []byte(r.key())
	}
	it, err := m.txn.NewIter(o)
	noError(r.t, err)
	w := modelWalk{it: it, data: maps.Clone(m.data), at: -1, fresh: true}
	for key := range w.data {
		if key >= string(o.Lower) && key < string(o.Upper) {
			w.entries = append(w.entries, key)
		}
	}
	sort.Strings(w.entries)
	clear(o.Lower) // the iterator has its own copy
	clear(o.Upper)
	return w
}

func (r *modelRun) move(w *modelWalk) {
	key := r.key()
	var name string
	var moved bool
	last := len(w.entries) - 1
	if r.rng.IntN(6) == 0 { // some of which may be met
		var keys [][]byte
		for range 1 + r.rng.IntN(20) {
			keys = append(keys, []byte(r.key()))
		}
		w.it.Ahead(keys, r.rng.IntN(2) == 0)
		for _, key := range keys { // they are the caller's
			clear(key)
		}
	}
	switch r.rng.IntN(8) {
	case 0:
		name, moved = "First", w.it.First()
		w.at = min(0, last)
	case 1:
		name, moved = "Last", w.it.Last()
		w.at = last
	case 2:
		name, moved = "SeekGE "+key, w.it.SeekGE([]byte(key))
		w.at = sort.SearchStrings(w.entries, key)
	case 3:
		name, moved = "SeekLT "+key, w.it.SeekLT([]byte(key))
		w.at = sort.SearchStrings(w.entries, key) - 1
	case 4, 5:
		name, moved = "Next", w.it.Next()
		if w.fresh || w.at >= 0 {
			w.at++
		}
	default:
		name, moved = "Prev", w.it.Prev()
		if w.fresh {
			w.at = len(w.entries)
		}
		w.at = max(w.at-1, -1)
	}
	w.fresh = false
	if w.at > last {
		w.at = -1
	}
	r.compareWalk(name, moved, w)
}

func (r *modelRun) compareWalk(name string, moved bool, w *modelWalk) {
	r.t.Helper()
	noError(r.t, w.it.Err())
	if moved != (w.at >= 0) || w.it.Valid() != moved {
		r.t.Fatalf("%s: moved %v, valid %v, want position %d of %v", name, moved, w.it.Valid(), w.at, w.entries)
	}
	if !moved {
		return
	}
	want := w.entries[w.at]
	value, err := w.it.Value()
	noError(r.t, err)
	if !bytes.Equal(w.it.Key(), []byte(want)) || string(value) != w.data[want] {
		r.t.Fatalf("%s: stands on %s=%s, want %s=%s", name, w.it.Key(), value, want, w.data[want])
	}
}

func (r *modelRun) closeWalks(m *modelTxn) {
	for _, w := range m.walks {
		noError(r.t, w.it.Close())
	}
	m.walks = nil
}
