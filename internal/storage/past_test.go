package storage

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/oplog"
	"github.com/ebbdb/ebb/internal/storage/past"
)

// recall is the state as of a time, nil where it is too old.
func (f *fixture) recall(at oplog.Timestamp) *Past {
	f.t.Helper()
	p, err := f.Recall(context.Background(), at, f.Now())
	if mongoerr.Is(err, mongoerr.SnapshotTooOld) {
		return nil
	}
	f.must(err)
	return p
}

func (f *fixture) remember() *Past {
	f.t.Helper()
	p, err := f.Remember(context.Background(), f.Now())
	f.must(err)
	return p
}

// idsIn are the _ids that a state has of a collection; "none" where that is not there, "gone" where the state is held no more.
func (f *fixture) idsIn(p *Past, ns namespace.NS) string {
	f.t.Helper()
	v, err := f.ViewPast(context.Background(), p, f.Now())
	if mongoerr.Is(err, mongoerr.SnapshotTooOld) {
		return "gone"
	}
	f.must(err)
	defer func() { f.must(v.Close()) }()
	r, ok := v.Collection(ns)
	if !ok {
		return "none"
	}
	var ids []string
	f.must(r.each(func(rec Record) error { ids = append(ids, rec.Doc.Lookup("_id").Text()); return nil }))
	if n, err := r.Count(); err != nil || int(n) != len(ids) {
		f.t.Errorf("%d are counted of %d: %v", n, len(ids), err)
	}
	return strings.Join(ids, " ")
}

// TestPasts: a state is there by the time that was told, and by each at which nothing had happened since or has yet.
func TestPasts(t *testing.T) {
	f := logged(t)
	f.must(f.insert(testNS, "{_id: 1}"))
	wrote := f.LastLogged()
	told := f.remember()
	if told.At() <= wrote || told.At() > f.ClusterTime() {
		t.Errorf("told %d behind %d, at %d", told.At(), wrote, f.ClusterTime())
	}
	if f.remember() != told {
		t.Error("nothing has happened, and it is another state")
	}
	f.must(f.insert(testNS, "{_id: 2}"))
	second := f.LastLogged()
	if second <= told.At() {
		t.Errorf("%d was written behind what was told as %d", second, told.At())
	}
	f.must(f.insert(testNS, "{_id: 3}"))
	last := f.LastLogged()
	for at, want := range map[oplog.Timestamp]string{told.At(): "1", wrote: "1", last: "1 2 3"} {
		if p := f.recall(at); p == nil || p.At() != at || f.idsIn(p, testNS) != want {
			t.Errorf("at %d: %v", at, p)
		}
	}
	for _, at := range []oplog.Timestamp{second, wrote - 1, 1} {
		if p := f.recall(at); p != nil {
			t.Errorf("at %d, when nobody had asked: %s", at, f.idsIn(p, testNS))
		}
	}

	// The catalogue is that of the time, and what was dropped is there.
	_, err := f.DropCollection(context.Background(), testNS)
	f.must(err)
	f.must(f.insert(testNS, "{_id: 9}"))
	if got := f.idsIn(f.recall(told.At()), testNS) + ", " + f.idsIn(f.remember(), testNS); got != "1, 9" {
		t.Error(got)
	}
}

// TestPastsAmongNotes: a note changes nothing, so that a state is that of the times on both its sides; only so many are looked through.
func TestPastsAmongNotes(t *testing.T) {
	f := logged(t)
	note := func() { f.must(f.LogNote(context.Background(), bson.MustDoc("{msg: 'periodic noop'}"))) }
	f.must(f.insert(testNS, "{_id: 1}"))
	wrote := f.LastLogged()
	note()
	f.remember()
	for range 3 {
		note()
	}
	last := f.LastLogged()
	f.must(f.insert(testNS, "{_id: 2}"))
	for at := wrote; at <= last; at++ {
		if p := f.recall(at); p == nil || f.idsIn(p, testNS) != "1" {
			t.Errorf("at %d of %d to %d: %v", at, wrote, last, p)
		}
	}
	now := f.LastLogged()
	note()
	if p := f.recall(now); p == nil || f.idsIn(p, testNS) != "1 2" {
		t.Errorf("at %d, before a note: %v", now, p)
	}
	told := f.remember().At()
	for range maxNotes + 1 {
		note()
	}
	if p := f.recall(now + 1); p == nil {
		t.Error("a state is not found before many notes")
	}
	if f.recall(told) == nil || f.recall(f.LastLogged()) == nil {
		t.Error("neither what was told, nor what is")
	}
}

// TestPastsOfFollowers: a store that follows tells the time of its last entry: the next may have any that is later.
func TestPastsOfFollowers(t *testing.T) {
	f := logged(t)
	f.must(f.insert(testNS, "{_id: 1}"))
	f.options.Follows = true
	f.reopen()
	last := f.LastLogged()
	f.HearClusterTime(last + 7)
	told := f.remember()
	f.clock.Advance(time.Second)
	if told.At() != last || f.remember() != told || f.recall(last) != told || f.idsIn(told, testNS) != "1" {
		t.Errorf("told %d behind %d", told.At(), last)
	}
}

// TestPastsEnd: a state is held for the window, however often somebody asks, and there are no more than past.MaxHeld: those that nobody
// asked for go first.
func TestPastsEnd(t *testing.T) {
	f := logged(t)
	f.must(f.insert(testNS, "{_id: 1}"))
	first := f.remember()
	f.must(f.insert(testNS, "{_id: 2}"))
	for range past.DefaultWindow / 1000 {
		f.clock.Advance(time.Second)
		if got := f.idsIn(first, testNS); got != "1" {
			t.Fatal(got)
		}
	}
	f.clock.Advance(time.Millisecond)
	if got := f.idsIn(first, testNS); got != "gone" || f.recall(first.At()) != nil {
		t.Error("it is there beyond the window: " + got)
	}
	f.ForgetPasts(past.DefaultWindow)
	if f.Pasts() != 0 {
		t.Errorf("%d are held", f.Pasts())
	}
	before := f.EngineStats().Snapshots

	kept := f.remember()
	second := kept
	for i := range past.MaxHeld + 10 {
		f.clock.Advance(time.Millisecond)
		if p := f.remember(); i == 0 {
			second = p
		}
		if f.recall(kept.At()) != kept {
			t.Fatal("it was used, and is gone")
		}
	}
	if f.Pasts() != past.MaxHeld || f.idsIn(second, testNS) != "gone" {
		t.Errorf("%d are held, and the oldest is %s", f.Pasts(), f.idsIn(second, testNS))
	}
	if n := f.EngineStats().Snapshots; n > before+1 {
		t.Errorf("nothing was committed, and there are %d snapshots", n)
	}
	f.clock.Advance((past.MinWindow + 1) * time.Millisecond)
	f.ForgetPasts(0)
	if n := f.EngineStats().Snapshots; f.Pasts() != 0 || n > before {
		t.Errorf("%d are held, and there are %d snapshots, not %d", f.Pasts(), n, before)
	}
}

// TestPastsAreExact: while others write, each state that is told or found has what the oplog tells up to its time, and nothing else.
func TestPastsAreExact(t *testing.T) {
	const writers, each, asked = 3, 60, 40
	f := logged(t)
	f.must(f.insert(testNS, "{_id: 0}"))
	var writing, asking sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for i := range each {
				if err := f.insert(testNS, bson.Build().Int32("_id", int32(1+w*each+i)).Doc().String()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var mu sync.Mutex
	found := map[*Past]int{}
	look := func(p *Past, err error) {
		if mongoerr.Is(err, mongoerr.SnapshotTooOld) {
			return
		}
		if err != nil {
			t.Error(err)
			return
		}
		v, err := f.ViewPast(context.Background(), p, f.Now())
		if err != nil {
			t.Error(err)
			return
		}
		defer v.Close()
		r, _ := v.Collection(testNS)
		n := 0
		if err := r.each(func(Record) error { n++; return nil }); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if was, ok := found[p]; ok && was != n {
			t.Errorf("a state has %d and then %d", was, n)
		}
		found[p] = n
	}
	for w := range uint64(2) {
		asking.Go(func() {
			dice := rand.New(rand.NewPCG(1, w))
			for range asked {
				look(f.Remember(context.Background(), f.Now()))
				at := f.ClusterTime() - oplog.Timestamp(dice.IntN(4))
				if dice.IntN(4) == 0 { // a time that somebody else knows of
					at = f.ClusterTime() + oplog.Timestamp(dice.IntN(3))
					f.HearClusterTime(at)
				}
				look(f.Recall(context.Background(), at, f.Now()))
			}
		})
	}
	writing.Wait()
	asking.Wait()
	docs, ids := f.entries()
	for p, n := range found {
		want := 0
		for i, d := range docs {
			if d.Lookup("op").Str() == "i" && oplog.Timestamp(ids[i].Number()) <= p.At() {
				want++
			}
		}
		if n != want {
			t.Errorf("as of %d there are %d, and the oplog tells of %d", p.At(), n, want)
		}
	}
	if len(found) < asked/4 {
		t.Errorf("no more than %d states were looked at", len(found))
	}
}

// fullDisk is an engine that has no room when it says so.
type fullDisk struct {
	kv.Engine
	isFull bool
}

func (f *fullDisk) Room(bytes int) error {
	if f.isFull {
		return &kv.SpaceError{}
	}
	return f.Engine.Room(bytes)
}

// TestPastsOnAFullDisk: nothing is held that keeps what is deleted from giving its place back.
func TestPastsOnAFullDisk(t *testing.T) {
	f := logged(t)
	disk := &fullDisk{Engine: f.engine}
	f.must(f.Store.Close())
	f.must(f.openOn(disk, f.options))
	f.must(f.insert(testNS, "{_id: 1}"))
	before := f.EngineStats().Snapshots
	told := f.remember()
	f.must(f.insert(testNS, "{_id: 2}"))
	f.TrimPasts(past.DefaultWindow)
	if got := f.idsIn(told, testNS); got != "1" {
		t.Error(got)
	}
	disk.isFull = true
	f.TrimPasts(past.DefaultWindow)
	if got := f.idsIn(told, testNS); got != "gone" || f.EngineStats().Snapshots > before {
		t.Errorf("%s, and there are %d snapshots", got, f.EngineStats().Snapshots)
	}
	if got := f.idsIn(f.remember(), testNS); got != "1 2" {
		t.Error(got)
	}
}

// TestPastsAndRestarts: what was told before a restart is too old behind it, even in the same second, and never what was written since.
func TestPastsAndRestarts(t *testing.T) {
	f := logged(t)
	f.must(f.insert(testNS, "{_id: 1}"))
	told := f.remember().At()
	for range 20 {
		f.clock.Advance(time.Millisecond)
		told = f.remember().At()
	}
	f.reopen()
	f.must(f.insert(testNS, "{_id: 2}"))
	if p := f.recall(told); p != nil {
		t.Errorf("as of %d: %s; %d was written", told, f.idsIn(p, testNS), f.LastLogged())
	}
	if got := f.idsIn(f.remember(), testNS); got != "1 2" {
		t.Error(got)
	}
}

// TestPastsHideByTheirTime: what had not expired at a state's time is there, also when it has been swept since.
func TestPastsHideByTheirTime(t *testing.T) {
	f := logged(t)
	f.hideAll = true
	_, err := f.CreateIndexes(context.Background(), testNS, f.parse(`{key: {d: 1}, name: "d", expireAfterSeconds: 10}`))
	f.must(err)
	f.insertDated(1, f.Now())
	f.insertDated(2, f.Now()+60_000)
	told := f.remember()
	f.clock.Advance(20 * time.Second)
	if got := f.idsIn(f.remember(), testNS) + ", " + f.idsIn(told, testNS); got != "2, 1 2" {
		t.Error(got)
	}
	if got := f.idsIn(f.recall(f.LastLogged()), testNS); got != "1 2" {
		t.Error("as of the last write: " + got)
	}
	c := f.tested()
	n, err := f.deleteDue(context.Background(), c, &c.rules.All()[0], f.Now(), besideWriters)
	if n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if got := f.idsIn(f.remember(), testNS) + ", " + f.idsIn(told, testNS); got != "2, 1 2" {
		t.Error("after the sweep: " + got)
	}
}
