package accumulator

import (
	"github.com/tidwall/btree"

	"github.com/ebbdb/ebb/internal/bson"
)

// inOrder is what was taken of documents, in an order, and of equals what came first in front. Whatever comes and goes finds
// its place in a tree: in an array each would move those behind it, which of a million takes longer than all else together.
type inOrder[T any] struct {
	op      string
	tree    *btree.BTreeG[placed[T]]
	compare func(a, b *T) int
	size    func(*T) int // in bytes, with its place in the tree
	came    int          // how many were added
	went    int          // how many of these were taken out again, first in first out
	held    int
}

// treeBytes is about what an empty inOrder takes.
const treeBytes = 400

// valueBytes is about what a value in an inOrder takes. A node of the tree has room for twice as much as is in it.
func valueBytes(v *bson.Value) int { return 80 + allocated(len(v.Data)) }

// allocated is about what n bytes take that are allocated by themselves.
func allocated(n int) int { return (n + 7) / 8 * 8 }

// placed is what was taken of a document, with its place among all that were added.
type placed[T any] struct {
	of    T
	place int
}

func newInOrder[T any](op string, compare func(a, b *T) int, size func(*T) int) *inOrder[T] {
	less := func(a, b placed[T]) bool {
		c := compare(&a.of, &b.of)
		return c < 0 || c == 0 && a.place < b.place
	}
	return &inOrder[T]{op: op, tree: btree.NewBTreeGOptions(less, btree.Options{NoLocks: true}), compare: compare, size: size}
}

// add takes what is of the next document.
func (o *inOrder[T]) add(of T) error {
	o.tree.Set(placed[T]{of, o.came})
	o.came++
	if o.held += o.size(&of); o.held > MaxArrayBytes {
		return tooMuchMemory(o.op)
	}
	return nil
}

// remove takes out what is of the first document.
func (o *inOrder[T]) remove(of T) {
	if gone, ok := o.tree.Delete(placed[T]{of, o.went}); ok {
		o.held -= o.size(&gone.of)
	}
	o.went++
}

// admits says whether what comes next would be among the first n, or the last n, and takes out what would not be any more.
// compare has it beside one that is there.
func (o *inOrder[T]) admits(n int64, last bool, compare func(with *T) int) bool {
	if int64(o.tree.Len()) < n {
		return true
	}
	if last {
		worst, _ := o.tree.Min()
		if compare(&worst.of) < 0 {
			return false
		}
		o.tree.PopMin()
		o.held -= o.size(&worst.of)
		return true
	}
	worst, _ := o.tree.Max()
	if compare(&worst.of) >= 0 {
		return false
	}
	o.tree.PopMax()
	o.held -= o.size(&worst.of)
	return true
}

// fromFront hands the first n to f, in order.
func (o *inOrder[T]) fromFront(n int64, f func(*T)) { o.tree.Scan(counted(n, f)) }

// fromEnd hands the last n to f, the last one first.
func (o *inOrder[T]) fromEnd(n int64, f func(*T)) { o.tree.Reverse(counted(n, f)) }

// tail hands the last n to f, in order.
func (o *inOrder[T]) tail(n int64, f func(*T)) {
	first, ok := o.tree.GetAt(max(0, o.tree.Len()-int(min(n, int64(o.tree.Len())))))
	if ok {
		o.tree.Ascend(first, counted(n, f))
	}
}

// counted has f called n times, n being at least 1.
func counted[T any](n int64, f func(*T)) func(placed[T]) bool {
	return func(p placed[T]) bool {
		f(&p.of)
		n--
		return n > 0
	}
}
