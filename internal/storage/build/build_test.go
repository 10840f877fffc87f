package build

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/keystring"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/spill"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestSorter: more runs than are merged at once, in order and all there.
func TestSorter(t *testing.T) {
	s := newSorter(t.TempDir(), 200)
	defer s.close()
	const n = 2000
	for i := range n {
		key := fmt.Appendf(nil, "%06d", i*7919%n)
		must(t, s.add(key, []byte{byte(i)}, key[:i%3]))
	}
	if len(s.runs) <= spill.MaxRuns {
		t.Fatalf("only %d runs", len(s.runs))
	}
	must(t, s.finish())
	for i := range n {
		e, ok, err := s.next()
		must(t, err)
		if !ok || string(e.key) != fmt.Sprintf("%06d", i) || len(e.id) != 1 {
			t.Fatalf("entry %d is %q, %v", i, e.key, ok)
		}
	}
	if _, ok, err := s.next(); ok || err != nil {
		t.Fatal("there is more", err)
	}
}

func keyOf(n int32) []byte { return keystring.Append(nil, bson.Int32(n), false) }

// TestUnique: of the records that share a unique key one gets it, the others wait, and one of those follows when it goes; who shares
// one is told before.
func TestUnique(t *testing.T) {
	table := func() *Table {
		d := &index.Definition{ID: 3, Name: "a", Unique: true, Key: bson.MustDoc(`{a: 1}`), Fields: []index.Field{{Path: "a"}}}
		c := &catalog.Collection{NS: namespace.NS{DB: "test", Coll: "c"}}
		made := NewTable(layout.Entries{Definition: d, IDLength: layout.SequenceLength}, c, Options{TempDir: t.TempDir(), MemoryBytes: 1 << 20})
		t.Cleanup(made.Close)
		for id, n := range []int32{5, 5, 7, 5} {
			must(t, made.sort(keyOf(n), layout.SequenceID(uint64(id)), nil))
		}
		must(t, made.Finish())
		return made
	}
	var shared []uint64
	must(t, table().Shared(func(id layout.RecordID, begins bool) (bool, error) {
		if begins != (len(shared) == 0) {
			t.Errorf("%v begins a key: %v", id, begins)
		}
		shared = append(shared, id.Number())
		return true, nil
	}))
	if !slices.Equal(shared, []uint64{0, 1, 3}) {
		t.Errorf("%d share a key", shared)
	}

	b, steps := table(), 0
	next := b.Source(func() error { steps++; return nil })
	var entries int64
	for {
		key, value, ok, err := next()
		must(t, err)
		if !ok {
			break
		}
		entries++
		id, _, err := layout.SplitID(value)
		must(t, err)
		if want := map[string]uint64{string(keyOf(5)): 0, string(keyOf(7)): 2}[string(key[layout.TableLength:])]; id.Number() != want {
			t.Errorf("%x is of %s", key, id)
		}
	}
	if entries != 2 || b.Count != entries || steps != 4 {
		t.Errorf("%d entries, counted %d, of %d", entries, b.Count, steps)
	}
	if err := b.CheckWaiting(); !mongoerr.Is(err, mongoerr.DuplicateKey) {
		t.Errorf("two wait: %v", err)
	}
	p := place{there: true, value: b.entryValue(nil, layout.SequenceID(0), nil)}
	for i, c := range []struct {
		row  layout.SideRow
		want uint64
	}{
		{layout.SideRow{KeyString: keyOf(5), ID: layout.SequenceID(0)}, 1},            // the holder goes
		{layout.SideRow{Put: true, KeyString: keyOf(5), ID: layout.SequenceID(9)}, 1}, // another comes
		{layout.SideRow{KeyString: keyOf(5), ID: layout.SequenceID(3)}, 1},            // one that waits goes
		{layout.SideRow{KeyString: keyOf(5), ID: layout.SequenceID(1)}, 9},
	} {
		must(t, b.applyHolder(&p, c.row))
		if id, _, err := layout.SplitID(p.value); err != nil || !p.there || id.Number() != c.want {
			t.Errorf("row %d: %s has the key (%v)", i, id, err)
		}
	}
	must(t, b.CheckWaiting())
}
