package accumulator

import "github.com/tidwall/btree"

// inOrder is what was taken of documents, in an order, and of equals what came first in front. Whatever comes and goes finds
// its place in a tree: in an array each would move those behind it, which of a million takes longer than all else together.
type inOrder[T any] struct {
	op      string
	tree    *btree.BTreeG[placed[T]]
	compare func(a, b *T) int
	size    func(*T) int
	came    int // how many were added
	went    int // how many of these were taken out again, first in first out
	held    int
}

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

// admits says whether of would be among the first n, or the last n, and takes out what would not be any more.
func (o *inOrder[T]) admits(n int64, last bool, of *T) bool {
	if int64(o.tree.Len()) < n {
		return true
	}
	if last {
		worst, _ := o.tree.Min()
		if o.compare(of, &worst.of) < 0 {
			return false
		}
		o.tree.PopMin()
		o.held -= o.size(&worst.of)
		return true
	}
	worst, _ := o.tree.Max()
	if o.compare(of, &worst.of) >= 0 {
		return false
	}
	o.tree.PopMax()
	o.held -= o.size(&worst.of)
	return true
}

// best hands the first n to f, or the last n, these from the end.
func (o *inOrder[T]) best(n int64, last bool, f func(*T)) {
	next := func(p placed[T]) bool {
		f(&p.of)
		n--
		return n > 0
	}
	if last {
		o.tree.Reverse(next)
	} else {
		o.tree.Scan(next)
	}
}
