package oplog

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/testseed"
)

// TestDelta: what an update is written as.
func TestDelta(t *testing.T) {
	for _, c := range []struct{ old, doc, want string }{
		{"{_id: 1, a: 1}", "{_id: 1, a: 2}", "{u: {a: 2}}"},
		{"{_id: 1, a: 1}", "{_id: 1, a: 1.0}", "{u: {a: 1.0}}"},
		{"{_id: 1, a: 1, b: 2}", "{_id: 1, b: 2}", "{d: {a: false}}"},
		{"{_id: 1}", "{_id: 1, b: 2, c: {}}", "{i: {b: 2, c: {}}}"},
		{"{_id: 1, a: 1, b: 2}", "{_id: 1, b: 2, a: 1}", "{i: {a: 1}}"},
		{"{_id: 1, a: 1, b: 1, c: 1}", "{_id: 1, b: 2, d: 1}", "{d: {a: false, c: false}, u: {b: 2}, i: {d: 1}}"},
		{"{_id: 1, a: {b: 1, c: 'a long string', d: 1}}", "{_id: 1, a: {b: 1, c: 'a long string', d: 2}}", "{sa: {u: {d: 2}}}"},
		{"{_id: 1, a: {d: 1}}", "{_id: 1, a: {d: 2}}", "{u: {a: {d: 2}}}"},
		{"{_id: 1, a: [1, 2, 3, 4, 5]}", "{_id: 1, a: [1, 9, 3, 4, 5]}", "{sa: {a: true, u1: 9}}"},
		{"{_id: 1, a: [1, 2, 3, 4, 5]}", "{_id: 1, a: [1, 2, 3, 4]}", "{sa: {a: true, l: 4}}"},
		{"{_id: 1, a: [1, 2, 3, 4, 5]}", "{_id: 1, a: [1, 2, 3, 4, 5, 6]}", "{sa: {a: true, u5: 6}}"},
		{"{_id: 1, a: [{b: 1, c: 'a long string'}, 5]}", "{_id: 1, a: [{b: 2, c: 'a long string'}, 5]}", "{sa: {a: true, s0: {u: {b: 2}}}}"},
		{"{_id: 1, a: [1]}", "{_id: 1, a: {b: 1}}", "{u: {a: {b: 1}}}"},
	} {
		b := bson.Build()
		appendDiff(b, bson.MustDoc(c.old), bson.MustDoc(c.doc), nil)
		if got := b.Doc().String(); got != bson.MustDoc(c.want).String() {
			t.Errorf("%s to %s:\n got %s\nwant %s", c.old, c.doc, got, c.want)
		}
	}
}

func randomValue(rng *rand.Rand, depth int) bson.Value {
	switch n := rng.IntN(8); {
	case n < 2 && depth < 4:
		return randomDoc(rng, depth+1).Value()
	case n < 4 && depth < 4:
		b := bson.Build().Array("")
		for i := range rng.IntN(6) {
			b.Value(bson.IndexKey(i), randomValue(rng, depth+1))
		}
		return b.End().Doc().Lookup("")
	case n < 6:
		return bson.Int32(rng.Int32N(3))
	}
	return bson.String(strings.Repeat("x", rng.IntN(30)))
}

func randomDoc(rng *rand.Rand, depth int) bson.Doc {
	names := []string{"a", "b", "c", "d", "e"}
	rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	b := bson.Build()
	for _, name := range names[:rng.IntN(len(names)+1)] {
		b.Value(name, randomValue(rng, depth))
	}
	return b.Doc()
}

// mutate is doc with some of its values changed, so that deltas reach into it.
func mutate(rng *rand.Rand, doc bson.Doc, depth int) bson.Doc {
	b := bson.Build()
	for it := doc.Iter(); it.Next(); {
		switch v := it.Value(); {
		case rng.IntN(8) == 0:
		case v.Type == bson.TypeObject && rng.IntN(2) == 0:
			b.Document(it.Key(), mutate(rng, v.Doc(), depth+1))
		case rng.IntN(5) == 0:
			b.Value(it.Key(), randomValue(rng, depth+1))
		default:
			b.Value(it.Key(), v)
		}
	}
	if doc := b.Doc(); rng.IntN(4) > 0 || !doc.Lookup("z").IsMissing() {
		return doc
	}
	return b.Reopen().Int32("z", 1).Doc()
}

// TestDeltaMakesTheDocument: whatever is changed, the delta makes the new document out of the old one.
func TestDeltaMakesTheDocument(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 0))
	for range 20_000 {
		old := randomDoc(rng, 0)
		doc := mutate(rng, old, 0)
		if rng.IntN(4) == 0 {
			doc = randomDoc(rng, 0)
		}
		b := bson.Build()
		appendDiff(b, old, doc, nil)
		delta := b.Doc()
		if got, err := Apply(old, delta); err != nil || string(got) != string(doc) {
			t.Fatalf("%s\nto  %s\nby  %s\nis  %s, %v", old, doc, delta, got, err)
		}
	}
}

// TestNotADelta: what is no delta of the document is refused.
func TestNotADelta(t *testing.T) {
	old := bson.MustDoc("{a: 1, b: [1, {c: 1}], d: {e: 1}}")
	for _, text := range []string{
		"{u: 1}", "{x: {}}", "{'': {}}", "{sa: {u: {b: 1}}}", "{sb: {u: {b: 1}}}", "{sd: {a: true, u0: 1}}", "{sb: {a: true, l: 3}}", "{sb: {a: true, l: -1}}", "{sb: {a: true, l: 'x'}}",
		"{sb: {a: true, u9000000: 1}}", "{sb: {a: true, 'u-1': 1}}", "{sb: {a: true, ux: 1}}", "{sb: {a: true, s0: {u: {a: 1}}}}", "{sb: {a: true, s1: 1}}", "{sb: {a: true, '1': {}}}", "{sb: {a: true, '': {}}}",
	} {
		if doc, err := Apply(old, bson.MustDoc(text)); err == nil {
			t.Errorf("%s makes %s", text, doc)
		}
	}
}

// TestDeepDelta: documents within documents are looked into so far, at a cost that does not explode.
func TestDeepDelta(t *testing.T) {
	nest := func(inner bson.Doc) bson.Doc {
		for range 150 {
			inner = bson.Build().Document("a", inner).String("b", "a string that is longer than a delta").Doc()
		}
		return inner
	}
	b := bson.Build()
	appendDiff(b, nest(bson.MustDoc("{x: 1}")), nest(bson.MustDoc("{x: 2}")), nil)
	depth := 0
	for d := b.Doc(); !d.Lookup("sa").IsMissing(); d = d.Lookup("sa").Doc() {
		depth++
	}
	if depth != maxDiffDepth {
		t.Errorf("the delta reaches %d deep, want %d", depth, maxDiffDepth)
	}
}

var testUUID = [16]byte{1, 2, 3}

// lines are entries with timestamps 100, 101 and so on, in words.
func lines(l *Log, c Circumstances) string {
	var out []string
	var previous OpTime
	for i, e := range l.Entries(nil, c, []byte("head")) {
		own := NewTimestamp(5, uint32(i+1))
		e.Fill(e.Stored, own, previous)
		previous = OpTime{own, c.Term}
		text := bson.Doc(e.Stored[len("head"):]).String()
		if len(text) > 700 {
			text = fmt.Sprint(len(text)/1000, " kB: ", text[:60], " ... ", text[len(text)-180:])
		}
		out = append(out, text)
	}
	return strings.Join(out, "\n")
}

func same(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// TestEntries: the shapes of entries, fields in MongoDB's order.
func TestEntries(t *testing.T) {
	ns := namespace.NS{DB: "d", Coll: "c"}
	plain := Circumstances{Term: 3, Wall: 5000}
	insert := func(l *Log) { l.Insert(ns, testUUID, bson.MustDoc("{_id: 1, a: 1}")) }
	var l Log
	if l.Entries(nil, plain, nil) != nil {
		t.Error("nothing has entries")
	}
	const ui = `UUID("01020300-0000-0000-0000-000000000000")`
	const tail = `ts: Timestamp(5, 1), t: 3, v: 2, wall: new Date(5000)`
	one := func(want string, add func(l *Log)) {
		t.Helper()
		var l Log
		add(&l)
		same(t, lines(&l, plain), want)
	}
	one(`{ op: "i", ns: "d.c", ui: `+ui+`, o: { _id: 1, a: 1 }, o2: { _id: 1 }, `+tail+` }`, insert)
	one(`{ op: "u", ns: "d.c", ui: `+ui+`, o: { $v: 2, diff: { u: { a: 2 } } }, o2: { _id: 1 }, `+tail+` }`, func(l *Log) {
		l.Update(ns, testUUID, bson.MustDoc("{_id: 1, a: 1}"), bson.MustDoc("{_id: 1, a: 2}"), Telling{})
	})
	for _, form := range []Form{Shorter, Whole} {
		one(`{ op: "u", ns: "d.c", ui: `+ui+`, o: { _id: 1, b: 2 }, o2: { _id: 1 }, `+tail+` }`, func(l *Log) {
			l.Update(ns, testUUID, bson.MustDoc("{_id: 1, a: 1}"), bson.MustDoc("{_id: 1, b: 2}"), Telling{Form: form})
		})
	}
	one(`{ op: "d", ns: "d.c", ui: `+ui+`, o: { _id: 1 }, `+tail+` }`, func(l *Log) { l.Delete(ns, testUUID, bson.MustDoc("{_id: 1, a: 1}")) })
	one(`{ op: "c", ns: "d.$cmd", ui: `+ui+`, o: { drop: "c" }, o2: { numRecords: 5 }, `+tail+` }`, func(l *Log) {
		l.Command("d", &testUUID, bson.MustDoc("{drop: 'c'}"), bson.MustDoc("{numRecords: 5}"))
	})
	one(`{ op: "n", ns: "", o: { msg: "new primary" }, `+tail+` }`, func(l *Log) { l.Note(bson.MustDoc("{msg: 'new primary'}")) })

	for range 2 { // what is shorter whole is whole behind another operation, too
		l.Update(ns, testUUID, bson.MustDoc("{_id: 1, a: 1}"), bson.MustDoc("{_id: 1, b: 2}"), Telling{Form: Shorter})
	}
	const whole = `{ op: "u", ns: "d.c", ui: ` + ui + `, o: { _id: 1, b: 2 }, o2: { _id: 1 } }`
	same(t, lines(&l, plain), `{ op: "c", ns: "admin.$cmd", o: { applyOps: [ `+whole+`, `+whole+` ] }, `+tail+` }`)

	l = Log{}
	insert(&l)
	l.Delete(ns, testUUID, bson.MustDoc("{_id: 1}"))
	const both = `o: { applyOps: [ { op: "i", ns: "d.c", ui: ` + ui + `, o: { _id: 1, a: 1 }, o2: { _id: 1 } }, { op: "d", ns: "d.c", ui: ` + ui + `, o: { _id: 1 } } ] }`
	same(t, lines(&l, plain), `{ op: "c", ns: "admin.$cmd", `+both+`, `+tail+` }`)
	txn := plain
	txn.Session, txn.TxnNumber, txn.Transaction = bson.MustDoc("{id: 1}"), 7, true
	same(t, lines(&l, txn), `{ lsid: { id: 1 }, txnNumber: 7, op: "c", ns: "admin.$cmd", `+both+`, `+tail+`, prevOpTime: { ts: Timestamp(0, 0), t: -1 } }`)
	l = Log{}
	retried := txn
	retried.Transaction = false
	l.Statement(2, NoImage)
	insert(&l)
	same(t, lines(&l, retried), `{ lsid: { id: 1 }, txnNumber: 7, op: "i", ns: "d.c", ui: `+ui+`, o: { _id: 1, a: 1 }, o2: { _id: 1 }, stmtId: 2, `+tail+`, prevOpTime: { ts: Timestamp(0, 0), t: -1 } }`)
}

// TestLargeTransaction: what is too much for one entry is a chain of them, each of which names the one before.
func TestLargeTransaction(t *testing.T) {
	var l Log
	for i := range 5 {
		l.Insert(namespace.NS{DB: "d", Coll: "c"}, testUUID, bson.Build().Int32("_id", int32(i)).String("s", strings.Repeat("x", 6<<20)).Doc())
	}
	txn := Circumstances{Term: 3, Session: bson.MustDoc("{id: 1}"), Transaction: true}
	entries := l.Entries(nil, txn, nil)
	var counts []int
	for _, e := range entries {
		counts = append(counts, bson.Doc(e.Stored).Lookup("o").Doc().Lookup("applyOps").Doc().Count())
	}
	if !slices.Equal(counts, []int{2, 2, 1}) {
		t.Fatal(counts)
	}
	got := strings.Split(lines(&l, txn), "\n")
	for i, want := range []string{
		"partialTxn: true }, ts: Timestamp(5, 1), t: 3, v: 2, wall: new Date(0), prevOpTime: { ts: Timestamp(0, 0), t: -1 } }",
		"partialTxn: true }, ts: Timestamp(5, 2), t: 3, v: 2, wall: new Date(0), prevOpTime: { ts: Timestamp(5, 1), t: 3 } }",
		"count: 5 }, ts: Timestamp(5, 3), t: 3, v: 2, wall: new Date(0), prevOpTime: { ts: Timestamp(5, 2), t: 3 } }",
	} {
		if !strings.HasSuffix(got[i], want) {
			t.Errorf("entry %d: %s", i, got[i])
		}
	}
}

// TestClock: timestamps rise, whatever time does.
func TestClock(t *testing.T) {
	var c Clock
	for _, step := range []struct {
		millis int64
		n      int
		want   Timestamp
	}{{5000, 1, NewTimestamp(5, 1)}, {5999, 3, NewTimestamp(5, 2)}, {6000, 1, NewTimestamp(6, 1)}, {4000, 1, NewTimestamp(6, 2)}, {6000, 1, NewTimestamp(6, 3)}} {
		if got := c.Take(step.millis, step.n); got != step.want {
			t.Errorf("at %d: %d.%d, want %d.%d", step.millis, got.Seconds(), got.Counter(), step.want.Seconds(), step.want.Counter())
		}
	}
	c.Follow(NewTimestamp(9, 9))
	c.Follow(NewTimestamp(8, 9))
	if got := c.Take(9000, 1); got != NewTimestamp(9, 10) {
		t.Errorf("behind 9.9: %d.%d", got.Seconds(), got.Counter())
	}
	c.Show(NewTimestamp(9, 10))
	c.Show(NewTimestamp(9, 9))
	if c.Visible() != NewTimestamp(9, 10) {
		t.Error("what could be seen cannot be seen any more")
	}
	if b := binary.LittleEndian.AppendUint64(nil, uint64(NewTimestamp(1, 2))); binary.LittleEndian.Uint32(b) != 2 {
		t.Error("a timestamp in BSON begins with its counter")
	}
}

// TestReleasedLog: what a Log has made stays when the Log is used for other things.
func TestReleasedLog(t *testing.T) {
	fill := func(l *Log, value string, n int) {
		for i := range n {
			l.Insert(namespace.NS{DB: "d", Coll: "c"}, testUUID, bson.Build().Int32("_id", int32(i)).String("s", value).Doc())
		}
	}
	for _, n := range []int{1, 12, 1200} {
		var l, next Log
		fill(&l, "first", n)
		entries := l.Entries(nil, Circumstances{Term: 3}, nil)
		was := string(entries[0].Stored)
		l.Release()
		l.Release()
		fill(&next, "other", n)
		fill(&l, "third", n)
		if string(entries[0].Stored) != was || strings.Count(was, "first") != n {
			t.Errorf("%d documents: the entry changes", n)
		}
		if l.Len() != n || strings.Count(string(l.Entries(nil, Circumstances{Term: 3}, nil)[0].Stored), "third") != n {
			t.Errorf("%d documents: the Log holds something else", n)
		}
	}
}
