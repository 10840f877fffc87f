package kvtest

import (
	"context"
	"errors"
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
