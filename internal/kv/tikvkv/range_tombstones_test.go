package tikvkv_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv/tikvtest"
	"github.com/ebbdb/ebb/internal/testseed"
)

// TestDeletedRanges: transactions that delete ranges, write in them, before and after, small values and long ones, and count there, beside the
// reclaimer, over servers that take the keyspace over from one another. Each view stays as it was; and in the end the cluster holds what is to be seen.
func TestDeletedRanges(t *testing.T) {
	seed := testseed.Of(t)
	for name, splitAt := range map[string][]string{"one region": nil, "several regions": {"k020", "k040", "k070"}} {
		t.Run(name, func(t *testing.T) {
			r := &ranges{T: t, cluster: tikvtest.New(t, splitAt...), clock: tikvtest.ProcessClock(t), random: rand.New(rand.NewPCG(seed, 7)), now: contents{}}
			r.open()
			for range 300 {
				r.step()
			}
			r.closeViews()
			r.reclaimed()
			stored, parts := tikvkv.Stored(r.Engine)
			want, wantParts := 0, 0
			for _, value := range r.now {
				if want++; len(value) > partBytes {
					wantParts += (len(value) + partBytes - 1) / partBytes
				}
			}
			if stored != want || parts != wantParts {
				t.Errorf("%d pairs and %d parts are stored, want %d and %d", stored, parts, want, wantParts)
			}
			r.check(r.Engine, r.now)
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

const (
	rangeKeys = 100
	partBytes = 256 << 10
)

// contents are what is to be seen by key: a value, or the sum of a counter.
type contents map[string]string

type ranges struct {
	*testing.T
	*tikvkv.Engine
	cluster *tikvtest.Cluster
	clock   clock.Clock
	random  *rand.Rand
	now     contents
	views   []kv.Snapshot
	were    []contents
	writes  int
}

func key(i int) string { return fmt.Sprintf("k%03d", i) }

func (r *ranges) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *ranges) open() { r.Engine = r.cluster.Open(r.T, tikvkv.Options{Clock: r.clock}) }

// step is a transaction, or a view that is kept, or a new server.
func (r *ranges) step() {
	r.Helper()
	switch r.random.IntN(20) {
	case 0:
		r.closeViews()
		r.must(r.Close())
		r.open()
		r.check(r.Engine, r.now)
		return
	case 1:
		s, err := r.Snapshot()
		r.must(err)
		r.views, r.were = append(r.views, s), append(r.were, r.copied())
		return
	case 2:
		from, to := r.stretch()
		r.must(r.DeleteRange([]byte(from), []byte(to)))
		r.forget(from, to)
		return
	case 3:
		r.reclaimed()
		return
	}
	txn, err := r.Begin()
	r.must(err)
	if r.random.IntN(3) == 0 {
		from, to := r.stretch()
		txn.DeleteRange([]byte(from), []byte(to))
		r.forget(from, to)
	}
	for range r.random.IntN(12) {
		k := key(r.random.IntN(rangeKeys))
		switch r.random.IntN(8) {
		case 0:
			txn.Delete([]byte(k))
			delete(r.now, k)
		case 1: // a counter has a key of its own
			txn.Add([]byte(k+"n"), 1)
			r.count(k + "n")
		default:
			value := r.value()
			txn.Set([]byte(k), []byte(value))
			r.now[k] = value
		}
	}
	r.must(txn.Commit(context.Background(), kv.Synced))
	if r.random.IntN(4) == 0 {
		r.check(r.Engine, r.now)
	}
	if n := len(r.views); n > 0 {
		i := r.random.IntN(n)
		r.checkView(r.views[i], r.were[i])
	}
}

// value is a small one that no other is like, or, seldom, one that is stored in parts.
func (r *ranges) value() string {
	r.writes++
	text := fmt.Sprint("v", r.writes)
	if r.random.IntN(40) == 0 {
		return text + strings.Repeat("x", partBytes*(1+r.random.IntN(2)))
	}
	return text
}

func (r *ranges) count(k string) {
	n := 0
	if old, ok := r.now[k]; ok {
		_, err := fmt.Sscan(old, &n)
		r.must(err)
	}
	r.now[k] = fmt.Sprint(n + 1)
}

func (r *ranges) stretch() (from, to string) {
	i := r.random.IntN(rangeKeys)
	return key(i), key(i + r.random.IntN(rangeKeys/2))
}

func (r *ranges) forget(from, to string) {
	for k := range r.now {
		if from <= k && k < to {
			delete(r.now, k)
		}
	}
}

func (r *ranges) copied() contents {
	c := contents{}
	for k, v := range r.now {
		c[k] = v
	}
	return c
}

func (r *ranges) closeViews() {
	for i, s := range r.views {
		r.checkView(s, r.were[i])
		r.must(s.Close())
	}
	r.views, r.were = nil, nil
}

func (r *ranges) check(e kv.Engine, want contents) {
	r.Helper()
	s, err := e.Snapshot()
	r.must(err)
	defer s.Close()
	r.checkView(s, want)
}

// checkView reads all in both directions, from somewhere on, and by key.
func (r *ranges) checkView(s kv.Snapshot, want contents) {
	r.Helper()
	var keys []string
	for k := range want {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	it, err := s.NewIter(kv.IterOptions{})
	r.must(err)
	defer it.Close()
	var got []string
	for it.Next() {
		got = append(got, string(it.Key()))
		value, err := it.Value()
		r.must(err)
		if k := string(it.Key()); !strings.HasSuffix(k, "n") && string(value) != want[k] {
			r.Fatalf("%s is %.20q in a walk, want %.20q", k, value, want[k])
		}
	}
	r.must(it.Err())
	if !slices.Equal(got, keys) {
		r.Fatalf("a walk sees %v, want %v", got, keys)
	}
	got = nil
	for ok := it.Last(); ok; ok = it.Prev() {
		got = append(got, string(it.Key()))
	}
	slices.Reverse(got)
	if r.must(it.Err()); !slices.Equal(got, keys) {
		r.Fatalf("a walk back sees %v, want %v", got, keys)
	}
	at := key(r.random.IntN(rangeKeys))
	i, found := slices.BinarySearch(keys, at)
	if ok := it.SeekGE([]byte(at)); ok != (i < len(keys)) || ok && string(it.Key()) != keys[i] {
		r.Fatalf("from %s on the first is %q of %v", at, it.Key(), keys)
	}
	if ok := it.SeekLT([]byte(at)); ok != (i > 0) || ok && string(it.Key()) != keys[i-1] {
		r.Fatalf("before %s the last is %q of %v", at, it.Key(), keys)
	}
	value, err := s.Get([]byte(at))
	if found != (err == nil) || found && string(value) != want[at] || !found && !errors.Is(err, kv.ErrNotFound) {
		r.Fatalf("%s is %.20q, %v; want %.20q", at, value, err, want[at])
	}
	many, err := s.GetMany([][]byte{[]byte(at), []byte(key(3)), []byte(key(50))})
	r.must(err)
	for i, k := range []string{at, key(3), key(50)} {
		if wanted, ok := want[k]; ok != (many[i] != nil) || !bytes.Equal(many[i], []byte(wanted)) {
			r.Fatalf("%s is %.20q among many, want %.20q", k, many[i], wanted)
		}
	}
	counted, err := s.Counter([]byte(at + "n"))
	r.must(err)
	if sum := fmt.Sprint(counted); sum != want[at+"n"] && (counted != 0 || want[at+"n"] != "") {
		r.Fatalf("%s counts %s, want %s", at, sum, want[at+"n"])
	}
}

// reclaimed waits until nothing is hidden any more.
func (r *ranges) reclaimed() {
	r.Helper()
	for began := clock.Monotonic(r.clock); tikvkv.Tombstones(r.Engine) > 0; runtime.Gosched() {
		if clock.Monotonic(r.clock)-began > time.Minute {
			r.Fatalf("%d range tombstones are left after a minute", tikvkv.Tombstones(r.Engine))
		}
	}
}

// TestFormat: a keyspace of the first format is taken over, and one of a later format refused.
func TestFormat(t *testing.T) {
	c := tikvtest.New(t)
	e := c.Open(t, tikvkv.Options{})
	if err := put(e, "a", "1"); err != nil {
		t.Fatal(err)
	}
	if err := tikvkv.SetFormat(e, 1); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = c.Open(t, tikvkv.Options{})
	have(t, e, "a", "1")
	if got, err := tikvkv.Format(e); err != nil || got != 2 {
		t.Errorf("the format is %d, %v", got, err)
	}
	if err := tikvkv.SetFormat(e, 3); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if later, err := tikvkv.OpenStore(t.Context(), c.Store(t), tikvkv.Options{}); err == nil {
		later.Close()
		t.Error("a keyspace of a later format is taken")
	}
}
