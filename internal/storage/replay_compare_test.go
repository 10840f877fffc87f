package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/header"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// compare brings the second store up to date and compares it with the first.
func (r *replay) compare(when string) {
	r.t.Helper()
	r.Store.garbage.Wait()
	r.deliver()
	differ(r.t, when+": keys", keysOf(r.t, r.engine), keysOf(r.t, r.follower.engine))
	number, at := r.engine.Last()
	if n, a := r.follower.engine.Last(); n != number || a != at {
		r.t.Fatalf("%s: the last commit is %d at %d, and %d at %d there", when, number, at, n, a)
	}
	if own, there := r.LastLogged(), r.follower.LastLogged(); own != there {
		r.t.Fatalf("%s: the oplog ends at %d, and at %d there", when, own, there)
	}
	differ(r.t, when+": in memory", r.memoryOf(r.fixture), r.memoryOf(r.follower.fixture))
	for _, f := range []*fixture{r.fixture, r.follower.fixture} {
		differ(r.t, when+": the catalogue, in memory and stored", entriesOf(f.Store.Catalog()), entriesOf(r.storedCatalog(f)))
	}
	for _, entry := range r.Store.current.Load().catalog.All() {
		if entry.IsView() {
			continue
		}
		r.validate(entry.NS)
		r.follower.validate(entry.NS)
		own, there := r.Store.current.Load().collections[entry.ID], r.follower.Store.current.Load().collections[entry.ID]
		r.checkLookingAhead(own, there)
		if own.order == nil {
			continue
		}
		counted := r.counted(own)
		for _, text := range []string{own.order.Histogram.Differs(counted), own.order.Histogram.Differs(there.order.Histogram), there.order.Histogram.Differs(own.order.Histogram)} {
			if text != "" {
				r.t.Fatalf("%s: the histogram of %s: %s", when, entry.NS, text)
			}
		}
	}
}

func entriesOf(c *catalog.Catalog) (out []string) {
	for _, entry := range c.All() {
		out = append(out, entry.Document().String())
	}
	slices.Sort(out)
	return out
}

// storedCatalog is the catalogue that a start would read.
func (r *replay) storedCatalog(f *fixture) *catalog.Catalog {
	r.t.Helper()
	s, err := f.engine.Snapshot()
	r.must(err)
	c, err := header.ReadCatalog(s, f.parser)
	r.must(errors.Join(err, s.Close()))
	return c
}

// differ tells the first line that differs.
func differ(t *testing.T, what string, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		var a, b string
		if i < len(got) {
			a = got[i]
		}
		if i < len(want) {
			b = want[i]
		}
		if a != b {
			t.Fatalf("%s:\nthe first has  %s\nthe second has %s", what, a, b)
		}
	}
}

func keysOf(t *testing.T, e kv.Engine) (out []string) {
	t.Helper()
	s, err := e.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	it, err := s.NewIter(kv.IterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for it.Next() {
		value, err := it.Value()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%q = %x", it.Key(), value))
	}
	if err := errors.Join(it.Err(), it.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	return out
}

// memoryOf is what a store has in memory that follows from its commits.
func (r *replay) memoryOf(s *fixture) (out []string) {
	r.t.Helper()
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	hold, held := s.HeldAt()
	say("hold %d %v", hold, held)
	v := s.current.Load()
	for _, entry := range v.catalog.All() {
		c := v.collections[entry.ID]
		say("%d %s: %s", entry.ID, entry.NS, entry.Document())
		if c == nil || c.IsView() {
			continue
		}
		_, err := c.state.own.LastNumber() // or it is known to one only
		if err != nil && c.id != nil {
			r.t.Fatal(err)
		}
		committed, reserved := looksAhead(c).Known()
		say("  sequence %d reserved %d", committed, reserved)
		say("  tombstones %v, moving %d", c.state.tombstones.IsSet(), c.state.relocations.UnderWay())
		say("  trimmed %x", c.state.trimmed)
		for _, ix := range c.indexes {
			say("  multikey of %s: %v %v", ix.Name, ix.Multikey.Stored().Bits, pathsOf(ix.Multikey.Stored().Paths))
		}
		if c.order != nil {
			say("  order %d clustered %v", c.order.Number, c.order.Clustered)
			r.countOrder(s, c)
		}
	}
	return out
}

// countOrder counts what a start has forgotten.
func (r *replay) countOrder(s *fixture, c *collection) {
	r.t.Helper()
	for more := !c.order.Histogram.IsKnown(); more; {
		var err error
		more, err = s.CountOrder(context.Background(), c.ID, 1000)
		r.must(err)
	}
}

// counted is the histogram of what there is.
func (r *replay) counted(c *collection) *expiryorder.Histogram {
	r.t.Helper()
	view, err := r.View(context.Background())
	r.must(err)
	histogram, err := countAnew(view.read(c))
	r.must(errors.Join(err, view.Close()))
	histogram.Done()
	return histogram
}

// lookingAhead is what a process that writes alone knows beyond what its commits say.
type lookingAhead interface {
	Known() (committed, reserved uint64)
	TakesForNew(key []byte) bool
}

func looksAhead(c *collection) lookingAhead { return c.state.own.(lookingAhead) }

// checkLookingAhead compares what a writer keeps that looks ahead: it may know of what was never committed, and less of it is enough.
func (r *replay) checkLookingAhead(own, there *collection) {
	r.t.Helper()
	for _, ix := range own.indexes {
		other := there.index(ix.ID)
		for i, seen := range other.Multikey.Seen() {
			if known := ix.Multikey.Seen()[i]; seen&^known != 0 || other.Multikey.Stored().Bits[i]&^seen != 0 {
				r.t.Fatalf("%s: bits seen of %s are %b, and %b there", own.NS, ix.Name, known, seen)
			}
		}
	}
	if own.id == nil {
		return
	}
	last, err := own.state.own.LastNumber()
	r.must(err)
	_, reserved := looksAhead(own).Known()
	if follows, err := there.state.own.LastNumber(); err != nil || follows > max(last, reserved) {
		r.t.Fatalf("%s: the last number given is %d, and %d there, %v", own.NS, last, follows, err)
	}
	for _, f := range []struct {
		engine kv.Engine
		c      *collection
	}{{r.engine, own}, {r.follower.engine, there}} {
		if key := unknownTo(r.t, f.engine, f.c); key != nil {
			r.t.Fatalf("%s: an _id that is there is taken for new: %x", own.NS, key)
		}
	}
}

// unknownTo is an entry of the index on _id that uniqueFloor takes for new; nil where there is none.
func unknownTo(t *testing.T, e kv.Engine, c *collection) (unknown []byte) {
	t.Helper()
	prefix := layout.TableKey(nil, c.id.Definition)
	s, err := e.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	it, err := s.NewIter(kv.IterOptions{Lower: prefix, Upper: layout.After(prefix)})
	if err != nil {
		t.Fatal(err)
	}
	for it.Next() {
		if key := it.Key()[len(prefix):]; looksAhead(c).TakesForNew(key) {
			unknown = bytes.Clone(key)
		}
	}
	if err := errors.Join(it.Err(), it.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	return unknown
}

func pathsOf(s *index.PathSet) (out []string) {
	if s.IsAll() {
		return []string{"all"}
	}
	out = s.Paths()
	slices.Sort(out)
	return out
}
