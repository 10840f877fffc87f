package cursor

import (
	"context"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/memory"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// keeper is a source that keeps memory until it is closed, or asked to part with it if it can.
type keeper struct {
	memory  memory.Account
	shrinks bool
	closed  bool
}

func newKeeper(t *testing.T, g *memory.Governor, n int64, shrinks bool) *keeper {
	t.Helper()
	k := &keeper{shrinks: shrinks}
	k.memory.Open(g, memory.Cursors)
	if !k.memory.Take(n) {
		t.Fatal("no memory")
	}
	return k
}

func (*keeper) Next(context.Context) (bson.Doc, error) { return nil, nil }
func (*keeper) Park()                                  {}
func (k *keeper) Held() int64                          { return k.memory.Used() }
func (k *keeper) Close() error                         { k.closed = true; k.memory.Close(); return nil }

func (k *keeper) Shrink() error {
	if k.shrinks {
		k.memory.Close()
	}
	return nil
}

// When memory is short the sources of idle cursors part with theirs; those that cannot end, the longest idle first.
func TestCursorsGiveWay(t *testing.T) {
	fake := clock.NewFake(time.Unix(0, 0))
	g := memory.New(40<<20, clock.Wall(), nil)
	defer g.Close()
	r := NewRegistry(fake, g)
	add := func(shrinks bool) (*Cursor, *keeper) {
		k := newKeeper(t, g, 8<<20, shrinks)
		c := &Cursor{NS: "d.c", Source: k}
		if err := r.Add(c); err != nil {
			t.Fatal(err)
		}
		fake.Advance(sacrificeAfter)
		return c, k
	}
	oldest, kept := add(false)
	later, keptToo := add(false)
	able, shrunk := add(true)
	inUse, busy := add(true)
	if _, err := r.Take(inUse.ID, "d.c", "", false); err != nil {
		t.Fatal(err)
	}

	var a memory.Account
	a.Open(g, memory.Operators)
	if err := a.Wait(t.Context(), 9<<20); err != nil {
		t.Fatal(err)
	}
	if shrunk.Held() != 0 || shrunk.closed || kept.closed || busy.Held() == 0 {
		t.Errorf("shrunk %+v, kept %+v, busy %+v", shrunk, kept, busy)
	}
	if _, err := r.Take(able.ID, "d.c", "", false); err != nil {
		t.Error(err)
	}
	if err := a.Wait(t.Context(), 8<<20); err != nil {
		t.Fatal(err)
	}
	if !kept.closed || keptToo.closed {
		t.Errorf("the longest idle %v, the other %v", kept.closed, keptToo.closed)
	}
	if _, err := r.Take(oldest.ID, "d.c", "", false); !mongoerr.Is(err, mongoerr.ExceededMemoryLimit) {
		t.Error(err)
	}
	if _, err := r.Take(later.ID, "d.c", "", false); err != nil || r.Sacrificed() != 1 {
		t.Errorf("%v, %d ended", err, r.Sacrificed())
	}
}

// A batch ends early where there is no memory for more, but for the only one.
func TestBatchEndsEarly(t *testing.T) {
	g := memory.New(2<<20, clock.Wall(), nil)
	for _, single := range []bool{false, true} {
		var reply memory.Account
		reply.Open(g, memory.Replies)
		c := &Cursor{Source: &endless{doc: bson.Build().Binary("pad", 0, make([]byte, 10<<10)).Doc()}, Single: single}
		more, err := c.Batch(t.Context(), bson.Build().Array("batch"), 0, &reply)
		n, _ := c.Returned()
		if single != mongoerr.Is(err, mongoerr.ExceededMemoryLimit) || !single && (!more || n == 0 || n > 200) {
			t.Errorf("single %v: %d documents, more %v, %v", single, n, more, err)
		}
		if reply.Used() > 2<<20 {
			t.Errorf("%d bytes", reply.Used())
		}
		reply.Close()
		if s := g.Stats(); s.Used != s.By[memory.Buffers] {
			t.Errorf("%d bytes left, of which %d are kept", s.Used, s.By[memory.Buffers])
		}
	}
}

type endless struct {
	held
	doc bson.Doc
}

func (e *endless) Next(context.Context) (bson.Doc, error) { return e.doc, nil }

// What the parsed command of an idle cursor takes ends with the cursor, too.
func TestParsedCommandsGiveWay(t *testing.T) {
	fake := clock.NewFake(time.Unix(0, 0))
	g := memory.New(40<<20, clock.Wall(), nil)
	defer g.Close()
	r := NewRegistry(fake, g)
	k := newKeeper(t, g, 0, false)
	c := &Cursor{NS: "d.c", Source: k, ParsedBytes: 30 << 20}
	if err := r.Add(c); err != nil {
		t.Fatal(err)
	}
	fake.Advance(sacrificeAfter)
	var a memory.Account
	a.Open(g, memory.Operators)
	if err := a.Wait(t.Context(), 20<<20); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Take(c.ID, "d.c", "", false); err == nil || !k.closed {
		t.Errorf("it lives on: %v", err)
	}
	a.Close()
	if n := g.Stats().Used; n != 0 {
		t.Errorf("%d bytes stay taken", n)
	}
}
