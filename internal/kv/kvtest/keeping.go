package kvtest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/ebbdb/ebb/internal/kv"
)

func checkDeleteRange(t *testing.T, s *Store) {
	put(t, s, "a=1", "b=1", "c=1", "d=1")
	add(t, s, "cn", 7)
	before := snap(t, s)
	noError(t, s.DeleteRange([]byte("b"), []byte("d")))
	after := snap(t, s)
	haveValue(t, before, "c", "1")
	haveCount(t, before, "cn", 7)
	have(t, after, "a=1 d=1")
	haveCount(t, after, "cn", 0)
	noError(t, before.Close())
	noError(t, after.Close())
	put(t, s, "c=2")
	add(t, s, "cn", 1)
	noError(t, s.DeleteRange([]byte("x"), []byte("x")))
	noError(t, s.DeleteRange([]byte("z"), []byte("a"))) // an empty range, not everything
	view := snap(t, s)
	defer view.Close()
	haveCount(t, view, "cn", 1)
	haveWithin(t, view, kv.IterOptions{Upper: []byte("cn")}, "a=1 c=2")
}

func checkTxnDeleteRange(t *testing.T, s *Store) {
	put(t, s, "a=1", "b=1", "c=1", "d=1")
	add(t, s, "n", 7)
	add(t, s, "o", 7)
	before := snap(t, s)
	txn := begin(t, s)
	size := txn.Size()
	write(txn, "b=2", "c0=2")
	txn.DeleteRange([]byte("b"), []byte("d"))
	txn.DeleteRange([]byte("z"), []byte("a")) // an empty range, not everything
	if txn.Size() <= size {
		t.Fatal("a deleted range has no size")
	}
	put(t, s, "bb=1") // after the snapshot, before the commit
	write(txn, "-b", "c1=2")
	txn.DeleteRange([]byte("n"), []byte("o"))
	txn.Add([]byte("n"), 1)
	txn.Add([]byte("o"), 1)
	haveWithin(t, txn, kv.IterOptions{Upper: []byte("n")}, "a=1 c=1 c0=2 c1=2 d=1")
	haveCount(t, txn, "n", 8)
	commit(t, txn)
	after := snap(t, s)
	haveWithin(t, before, kv.IterOptions{Upper: []byte("n")}, "a=1 b=1 c=1 d=1")
	haveCount(t, before, "n", 7)
	haveWithin(t, after, kv.IterOptions{Upper: []byte("n")}, "a=1 c0=2 c1=2 d=1")
	haveCount(t, after, "n", 1)
	haveCount(t, after, "o", 8)
	noError(t, before.Close())
	noError(t, after.Close())

	alone := begin(t, s)
	alone.DeleteRange([]byte("c"), []byte("p"))
	undone := begin(t, s)
	undone.DeleteRange([]byte("a"), []byte("z"))
	undone.Rollback()
	commit(t, alone)
	add(t, s, "o", 1)
	if s.Reopen != nil {
		s.Engine = s.Reopen(t)
	}
	view := snap(t, s)
	defer view.Close()
	haveWithin(t, view, kv.IterOptions{Upper: []byte("n")}, "a=1")
	haveCount(t, view, "n", 0)
	haveCount(t, view, "o", 1)
}

func checkSizeOf(t *testing.T, s *Store) {
	for _, r := range [][2]string{{"a", "z"}, {"a", "a"}, {"z", "a"}} {
		n, err := s.SizeOf([]byte(r[0]), []byte(r[1]))
		noError(t, err)
		if n < 0 || r[0] >= r[1] && n != 0 {
			t.Fatalf("[%s, %s) of an empty store takes %d bytes", r[0], r[1], n)
		}
	}
	if s.Stats().Engine == "" {
		t.Fatal("the engine does not say what it is")
	}
}

func checkDurability(t *testing.T, s *Store) {
	if s.Reopen == nil {
		t.Skip("this engine's data ends with it")
	}
	put(t, s, "a=1", "b=1")
	add(t, s, "n", 3)
	noError(t, s.DeleteRange([]byte("b"), []byte("c")))
	txn := begin(t, s)
	write(txn, "buffered=1")
	txn.Add([]byte("n"), 4)
	noError(t, txn.Commit(context.Background(), kv.Buffered))
	noError(t, s.Sync())
	txn = begin(t, s)
	write(txn, "later=1")
	noError(t, txn.Commit(context.Background(), kv.Unsynced))
	noError(t, s.AwaitDurable(kv.AllCommits))
	s.Engine = s.Reopen(t)
	view := snap(t, s)
	haveWithin(t, view, kv.IterOptions{Upper: []byte("n")}, "a=1 buffered=1 later=1")
	haveCount(t, view, "n", 7)
	noError(t, view.Close())
	add(t, s, "n", 1)
	txn = begin(t, s)
	claim(txn, "a")
	write(txn, "a=2")
	commit(t, txn)
	s.Engine = s.Reopen(t)
	view = snap(t, s)
	defer view.Close()
	haveValue(t, view, "a", "2")
	haveCount(t, view, "n", 8)
}

// checkGroupCommit: commits of many goroutines, each whole in every snapshot, all there in the end.
func checkGroupCommit(t *testing.T, s *Store) {
	const workers, rounds = 16, 25
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range rounds {
				txn, err := s.Begin()
				if err != nil {
					t.Error(err)
					return
				}
				id := uint32(w*rounds + i)
				txn.Set(binary.BigEndian.AppendUint32([]byte("r"), id), nil)
				txn.Set(binary.BigEndian.AppendUint32([]byte("x"), id), bytes.Repeat([]byte{byte(w)}, 200))
				txn.Add([]byte("n"), 1)
				d := kv.Durability(i % 3)
				if err := txn.Commit(context.Background(), d); err != nil {
					t.Error(err)
				}
				if d == kv.Unsynced {
					number, _ := s.Last()
					if err := s.AwaitDurable(number); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	if s.Reopen != nil {
		s.Engine = s.Reopen(t)
	}
	view := snap(t, s)
	defer view.Close()
	haveCount(t, view, "n", workers*rounds)
	if n := records(t, view); n != workers*rounds {
		t.Fatalf("%d records, want %d", n, workers*rounds)
	}
	for id := range uint32(workers * rounds) {
		value, err := view.Get(binary.BigEndian.AppendUint32([]byte("x"), id))
		noError(t, err)
		if want := bytes.Repeat([]byte{byte(id / rounds)}, 200); !bytes.Equal(value, want) {
			t.Fatalf("record %d holds %x", id, value)
		}
	}
}

func checkClosed(t *testing.T, s *Store) {
	put(t, s, "a=1")
	noError(t, s.Close())
	_, snapErr := s.Snapshot()
	_, beginErr := s.Begin()
	_, sizeErr := s.SizeOf([]byte("a"), []byte("b"))
	for i, err := range []error{snapErr, beginErr, sizeErr, s.DeleteRange([]byte("a"), []byte("b")), s.Load(context.Background(), pairs(nil)), s.Sync(), s.AwaitDurable(kv.AllCommits), s.Close()} {
		if !errors.Is(err, kv.ErrClosed) {
			t.Errorf("call %d after Close: %v, want %v", i, err, kv.ErrClosed)
		}
	}
	if fmt.Sprint(s.Stats()) == "" {
		t.Error("no stats")
	}
}
