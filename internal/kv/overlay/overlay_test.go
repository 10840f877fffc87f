package overlay_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/overlay"
)

// What a transaction reads through its overlay is held to the contract by kvtest, with every engine. Here is what no
// sound engine can show.

var errDisk = errors.New("the disk is gone")

// broken gives one key and then fails, in every way that a reader can.
type broken struct{}

func (broken) Get([]byte) ([]byte, error)                  { return nil, errDisk }
func (broken) Probe([]byte) ([]byte, error)                { return nil, errDisk }
func (broken) GetMany([][]byte) ([][]byte, error)          { return nil, errDisk }
func (broken) Ahead(_, _ [][]byte) (int, error)            { return 0, errDisk }
func (broken) Counter([]byte) (int64, error)               { return 0, errDisk }
func (broken) NewIter(kv.IterOptions) (kv.Iterator, error) { return &brokenIter{}, nil }

type brokenIter struct{ moves int }

func (i *brokenIter) move() bool             { i.moves++; return i.Valid() }
func (i *brokenIter) First() bool            { return i.move() }
func (i *brokenIter) Last() bool             { return i.move() }
func (i *brokenIter) SeekGE([]byte) bool     { return i.move() }
func (i *brokenIter) SeekLT([]byte) bool     { return i.move() }
func (i *brokenIter) Ahead([][]byte, bool)   {}
func (i *brokenIter) Next() bool             { return i.move() }
func (i *brokenIter) Prev() bool             { return i.move() }
func (i *brokenIter) Valid() bool            { return i.moves == 1 }
func (i *brokenIter) Key() []byte            { return []byte("m") }
func (i *brokenIter) Value() ([]byte, error) { return nil, errDisk }
func (i *brokenIter) Close() error           { return errDisk }

func (i *brokenIter) Err() error {
	if i.moves > 1 {
		return errDisk
	}
	return nil
}

func TestErrorsBelow(t *testing.T) {
	v := overlay.View{Snapshot: broken{}}
	for _, key := range []string{"a", "z"} {
		v.Set([]byte(key), []byte("own"))
	}
	v.Add([]byte("n"), 1)
	if value, err := v.Get([]byte("a")); err != nil || string(value) != "own" {
		t.Errorf("an own write reads %q, %v", value, err)
	}
	_, getErr := v.Get([]byte("b"))
	_, probeErr := v.Probe([]byte("b"))
	_, manyErr := v.GetMany([][]byte{[]byte("a"), []byte("b")})
	_, countErr := v.Counter([]byte("n"))
	for i, err := range []error{getErr, probeErr, manyErr, countErr} {
		if !errors.Is(err, errDisk) {
			t.Errorf("read %d: %v", i, err)
		}
	}
	if values, err := v.GetMany([][]byte{[]byte("a"), []byte("z")}); err != nil || len(values) != 2 {
		t.Errorf("own writes read %q, %v", values, err)
	}
}

// TestWalkEndsWithError: when the snapshot fails, the walk must not go on over the own writes alone.
func TestWalkEndsWithError(t *testing.T) {
	v := overlay.View{Snapshot: broken{}}
	for _, key := range []string{"a", "z"} {
		v.Set([]byte(key), nil)
	}
	walks := map[string]func(kv.Iterator) (first, next func() bool){
		"forward":  func(it kv.Iterator) (first, next func() bool) { return it.First, it.Next },
		"backward": func(it kv.Iterator) (first, next func() bool) { return it.Last, it.Prev },
	}
	want := map[string][]string{"forward": {"a", "m"}, "backward": {"z", "m"}}
	for name, walk := range walks {
		it, err := v.NewIter(kv.IterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		first, next := walk(it)
		var got []string
		for ok := first(); ok; ok = next() {
			got = append(got, string(it.Key()))
		}
		if !slices.Equal(got, want[name]) || !errors.Is(it.Err(), errDisk) || it.Valid() || it.Key() != nil {
			t.Errorf("%s: %q, then %v", name, got, it.Err())
		}
		if _, err := it.Value(); !errors.Is(err, errDisk) {
			t.Errorf("%s: a value without an error", name)
		}
		if err := it.Close(); !errors.Is(err, errDisk) {
			t.Errorf("%s: close: %v", name, err)
		}
	}
}

func TestSize(t *testing.T) {
	var w overlay.Writes
	if w.Size() != 0 || w.Len() != 0 {
		t.Fatal("nothing has a size")
	}
	w.Set([]byte("key"), make([]byte, 1000))
	once := w.Size()
	for range 100 {
		w.Set([]byte("key"), make([]byte, 1000))
	}
	if w.Size() != once || w.Len() != 1 {
		t.Errorf("one key written again and again: %d bytes, then %d", once, w.Size())
	}
	w.Delete([]byte("key"))
	if w.Size() >= once || w.Len() != 1 {
		t.Errorf("a deletion takes %d bytes", w.Size())
	}
	w.DeleteRange([]byte("b"), []byte("a"))
	before := w.Size()
	w.DeleteRange([]byte("a"), []byte("b"))
	if w.Size() <= before || len(w.Ranges()) != 1 {
		t.Errorf("size %d, ranges %q", w.Size(), w.Ranges())
	}
	before = w.Size()
	w.Claim([]byte("claimed"))
	w.Add([]byte("n"), 1)
	w.Add([]byte("n"), 1)
	if w.Size() <= before || len(w.Claims()) != 1 || len(w.Counters()) != 1 || w.Added([]byte("n")) != 2 {
		t.Errorf("size %d, claims %q, counters %v", w.Size(), w.Claims(), w.Counters())
	}
}
