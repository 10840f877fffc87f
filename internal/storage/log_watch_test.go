package storage

import (
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/logwatch"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

func told(next <-chan struct{}) bool {
	select {
	case <-next:
		return true
	default:
		return false
	}
}

// TestLogWatch: a commit wakes those who follow what it is about, once, and nobody else.
func TestLogWatch(t *testing.T) {
	s := logged(t).Store
	make := func(ns namespace.NS) {
		t.Helper()
		if _, err := s.CreateCollection(t.Context(), ns, bson.EmptyDoc); err != nil {
			t.Fatal(err)
		}
	}
	busy, idle := namespace.NS{DB: "d", Coll: "busy"}, namespace.NS{DB: "d", Coll: "idle"}
	make(busy)
	make(idle)
	watches := map[string]*logwatch.Watch{}
	next := map[string]<-chan struct{}{}
	for name, ns := range map[string]namespace.NS{"busy": busy, "idle": idle, "again": idle, "db": {DB: "d"}, "other": {DB: "e"}, "all": {}} {
		watches[name] = s.LogWatches().Watch(ns)
		if got := watches[name].Last(); got != s.LastLogged() {
			t.Errorf("%s begins behind %d, not %d", name, got, s.LastLogged())
		}
		next[name] = watches[name].Next()
	}
	waiting, before := s.LogWatches().Waits()
	if waiting != 5 {
		t.Errorf("%d namespaces are waited for", waiting)
	}
	last := watches["idle"].Last()
	renamed := namespace.NS{DB: "d", Coll: "renamed"}
	if err := s.Rename(t.Context(), busy, renamed, false); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"busy": true, "idle": false, "again": false, "db": true, "other": false, "all": true} {
		if told(next[name]) != want {
			t.Errorf("%s was told: %v", name, !want)
		}
		if got := watches[name].Last() == s.LastLogged(); got != want {
			t.Errorf("%s has %d for the last", name, watches[name].Last())
		}
	}
	if _, now := s.LogWatches().Waits(); now-before != 3 {
		t.Errorf("%d were woken", now-before)
	}
	if watches["idle"].Last() != last {
		t.Error("an entry about another collection was told of")
	}
	make(namespace.NS{DB: "e", Coll: "x"})
	if !told(next["other"]) || told(next["idle"]) {
		t.Error("the stream on a database is not told of a collection that is made")
	}
	for _, w := range watches {
		w.Close()
		w.Close()
	}
	make(namespace.NS{DB: "e", Coll: "y"})
}

// TestLogWatchOfTheUnknown: a commit about what is not known concerns everybody.
func TestLogWatchOfTheUnknown(t *testing.T) {
	s := logged(t).Store
	w := s.LogWatches().Watch(namespace.NS{DB: "d", Coll: "c"})
	defer w.Close()
	next := w.Next()
	at := s.LastLogged() + 5
	change := meaning.NewChange(1 << 30)
	m := &meaning.Meaning{Timestamp: at}
	m.Add(&change)
	for _, c := range s.logWatches.Tell(m, s.Catalog()) {
		close(c)
	}
	if !told(next) || w.Last() != at {
		t.Error(w.Last())
	}
	s.logWatches.Tell(&meaning.Meaning{Timestamp: at + 1}, s.Catalog())
	if w.Last() != oplog.Timestamp(at) {
		t.Error("an entry about nothing was told of")
	}
}

// TestLogWatchOfWhatWasOrdered: who begins to follow between the order of a commit and its end is woken, and so is who waits where a later
// one was ordered and came to nothing.
func TestLogWatchOfWhatWasOrdered(t *testing.T) {
	s := logged(t).Store
	at := s.LastLogged() + 5
	s.logClock.Follow(at + 3)
	w := s.LogWatches().Watch(namespace.NS{DB: "d", Coll: "c"})
	defer w.Close()
	next := w.Next()
	change := meaning.NewChange(1 << 30)
	m := &meaning.Meaning{Timestamp: at}
	m.Add(&change)
	for _, c := range s.logWatches.Tell(m, s.Catalog()) {
		close(c)
	}
	if !told(next) || w.Last() != at+3 {
		t.Error(told(next), w.Last())
	}
}
