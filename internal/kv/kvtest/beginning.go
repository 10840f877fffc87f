package kvtest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ebbdb/ebb/internal/kv"
)

func beginBlind(t *testing.T, e kv.Engine) kv.Txn {
	t.Helper()
	txn, err := e.BeginBlind()
	noError(t, err)
	return txn
}

// checkBeginBlind: what begins blind sees what is there when it first reads, itself, and no more after that; claims since it began
// are conflicts whether it reads or not.
func checkBeginBlind(t *testing.T, s *Store) {
	put(t, s, "a=1")
	reads, writes, late := beginBlind(t, s), beginBlind(t, s), beginBlind(t, s)
	write(reads, "own=1")
	reads.Add([]byte("n"), 2)
	first := begin(t, s)
	claim(first, "a")
	write(first, "a=2")
	first.Add([]byte("n"), 5)
	commit(t, first)
	haveValue(t, reads, "a", "2")
	haveValue(t, reads, "own", "1")
	haveCount(t, reads, "n", 7)
	put(t, s, "a=3", "b=3")
	haveValue(t, reads, "a", "2")
	haveNothing(t, reads, "b")
	reads.Rollback()

	claim(writes, "a")
	write(writes, "a=mine")
	conflict(t, writes)
	claim(late, "other")
	write(late, "c=4")
	commit(t, late)
	haveWithoutCounters(t, s, "a=3 b=3 c=4")
	beginBlind(t, s).Rollback()
}

// checkSetCached: it is Set, for every reader and whatever comes after it.
func checkSetCached(t *testing.T, s *Store) {
	set := func(key, value string) {
		t.Helper()
		txn := begin(t, s)
		txn.SetCached([]byte(key), []byte(value))
		haveValue(t, txn, key, value)
		commit(t, txn)
	}
	set("a", "1")
	before := snap(t, s)
	haveValue(t, before, "a", "1")
	set("a", "2")
	haveValue(t, before, "a", "1")
	put(t, s, "a=3")
	now := snap(t, s)
	haveValue(t, now, "a", "3")
	set("a", "4")
	put(t, s, "-a")
	noError(t, now.Close())
	now = snap(t, s)
	haveNothing(t, now, "a")
	set("a", "5")
	noError(t, s.DeleteRange([]byte("a"), []byte("b")))
	noError(t, now.Close())
	now = snap(t, s)
	haveNothing(t, now, "a")
	haveValue(t, before, "a", "1")
	set("a", "6")
	if s.Reopen != nil {
		noError(t, errors.Join(before.Close(), now.Close()))
		s.Engine = s.Reopen(t)
		haveNow(t, s, "a=6")
		return
	}
	noError(t, errors.Join(before.Close(), now.Close()))
	haveNow(t, s, "a=6")
}

// checkUnsynced: a commit that is not synced is seen at once, and is there after a restart when that was awaited, by its number or
// with all others.
func checkUnsynced(t *testing.T, s *Store) {
	for _, key := range []string{"a", "b"} {
		txn := begin(t, s)
		write(txn, key+"=1")
		noError(t, txn.Commit(context.Background(), kv.Unsynced))
	}
	haveNow(t, s, "a=1 b=1")
	number, _ := s.Last()
	if number != 2 {
		t.Fatalf("the last commit is number %d", number)
	}
	for _, n := range []uint64{1, number, number, kv.AllCommits} {
		noError(t, s.AwaitDurable(n))
	}
	if s.Reopen != nil {
		s.Engine = s.Reopen(t)
		haveNow(t, s, "a=1 b=1")
	}
}

// checkUndetermined: when the disk fails under a commit its outcome is undetermined, nothing is promised that is not kept, reads
// go on and no later write is taken.
func checkUndetermined(t *testing.T, s *Store) {
	if s.Break == nil {
		t.Log("not looked at: nobody can break this engine's disk")
		return
	}
	broken, breakDisk := s.Break(t)
	defer broken.Close() // which may fail, too
	put(t, broken, "before=1")
	unsynced := begin(t, broken)
	write(unsynced, "unsynced=1")
	noError(t, unsynced.Commit(context.Background(), kv.Unsynced))
	number, _ := broken.Last()
	breakDisk()
	txn := begin(t, broken)
	write(txn, "during=1")
	if err := txn.Commit(context.Background(), kv.Synced); !errors.Is(err, kv.ErrUndetermined) {
		t.Errorf("commit: %v, want %v", err, kv.ErrUndetermined)
	}
	if err := broken.AwaitDurable(number); !errors.Is(err, kv.ErrUndetermined) {
		t.Errorf("what was not synced is told to be durable: %v", err)
	}
	noError(t, broken.AwaitDurable(1)) // which is
	txn = begin(t, broken)
	write(txn, "after=1")
	if err := txn.Commit(context.Background(), kv.Unsynced); err == nil || errors.Is(err, kv.ErrUndetermined) {
		t.Errorf("a failed store took a commit: %v", err)
	}
	if err := broken.Apply(context.Background(), &kv.Commit{Number: number + 2, Writes: &kv.WriteList{Ops: []kv.Op{{Key: []byte("after")}}}}, kv.Unsynced); err == nil {
		t.Error("a failed store applied a commit")
	}
	view := snap(t, broken)
	haveValue(t, view, "before", "1")
	haveNothing(t, view, "after")
	noError(t, view.Close())
}

// withTables is check for engines that take over tables, and withRangeDeletes for those whose transactions delete ranges.
func withTables(check func(*testing.T, *Store)) func(*testing.T, *Store) {
	return func(t *testing.T, s *Store) {
		if !s.Capabilities().Tables {
			t.Skip("the engine takes over no tables")
		}
		check(t, s)
	}
}

func withRangeDeletes(check func(*testing.T, *Store)) func(*testing.T, *Store) {
	return func(t *testing.T, s *Store) {
		if !s.Capabilities().RangeDeletes {
			t.Skip("the engine's transactions delete no ranges")
		}
		check(t, s)
	}
}

// checkBeginAt: a transaction that reads an earlier view conflicts with what was claimed since.
func checkBeginAt(t *testing.T, s *Store) {
	put(t, s, "a=1", "b=1")
	old := snap(t, s)
	at := func() kv.Txn {
		t.Helper()
		txn, err := s.BeginAt(old)
		noError(t, err)
		return txn
	}
	free := at()
	claim(free, "b")
	write(free, "b=free")
	commit(t, free)

	first := begin(t, s)
	claim(first, "a")
	write(first, "a=2")
	commit(t, first)
	late := at()
	have(t, late, "a=1 b=1")
	claim(late, "a")
	write(late, "a=late")
	if !late.Conflicts([]byte("a")) {
		t.Error("a conflict is not told before the commit")
	}
	conflict(t, late)

	// Claims that nobody who is open would ask for are forgotten. They are conflicts still.
	for range 3 {
		put(t, s, "c=1")
	}
	late = at()
	claim(late, "a")
	write(late, "a=late")
	conflict(t, late)
	reading := at()
	have(t, reading, "a=1 b=1")
	reading.Rollback()

	shared := old.Share()
	noError(t, old.Close())
	have(t, shared, "a=1 b=1")
	noError(t, shared.Close())
	if _, err := s.BeginAt(shared); err == nil {
		t.Error("a transaction reads a view that is closed")
	}
	now := snap(t, s)
	defer now.Close()
	have(t, now, "a=2 b=free c=1")
}

// checkStill: a snapshot that is taken while nobody commits has all Commits that are known, and no other.
func checkStill(t *testing.T, s *Store) {
	o := &counting{}
	s.Observe(o)
	const writers, each = 4, 100
	var writing sync.WaitGroup
	for range writers {
		writing.Go(func() {
			for range each {
				txn, err := s.Begin()
				if err != nil {
					t.Error(err)
					return
				}
				txn.Add([]byte("n"), 1)
				if err := txn.Commit(context.Background(), kv.Buffered); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range each {
		var ordered, visible int64
		view, err := s.Still(context.Background(), func() { ordered, visible = o.ordered.Load(), o.visible.Load() })
		noError(t, err)
		n, err := view.Counter([]byte("n"))
		noError(t, err)
		noError(t, view.Close())
		if n != ordered || n != visible {
			t.Errorf("%d are counted when %d were ordered and %d visible", n, ordered, visible)
		}
	}
	writing.Wait()
}

// counting counts the Commits.
type counting struct{ ordered, visible atomic.Int64 }

func (*counting) Now() int64           { return 1 }
func (o *counting) Ordered(*kv.Commit) { o.ordered.Add(1) }
func (o *counting) Appears(*kv.Commit) {}
func (o *counting) Visible(*kv.Commit) { o.visible.Add(1) }
