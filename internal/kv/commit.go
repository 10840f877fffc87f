package kv

import (
	"bytes"
	"slices"
)

// Commit is one commit as a value: all that it does to the store, and what that means. An engine orders and stamps it before it
// is applied, and tells its Observer of it. It is not changed after that, and may be kept.
type Commit struct {
	// Number is its place in the order: 1, 2, 3 and so on, without a gap.
	Number uint64
	// Time is when it was ordered, in milliseconds since the epoch. It never goes back.
	Time int64
	// Writes are the keys and counters that it changes.
	Writes
	// Stamped are writes beside those, each of a key that nobody else writes meanwhile. The Observer fills in what only the order
	// tells, while it is told that the Commit is ordered (see Observer); how long they are it leaves as it is.
	Stamped []Op
	// Table names what a Load or a Replacement has put into the store; nil in any other commit.
	Table *Table
	// Meaning is the writer's own account of it; nil where there is nothing to say.
	Meaning Meaning
}

// Meaning is what a Commit means to those above the engine, which passes it on without a look. The writer's own is handed on as
// it is. Bytes are made of it only for those who take commits elsewhere; there it arrives as an EncodedMeaning.
type Meaning interface {
	AppendBinary(dst []byte) ([]byte, error)
	// Alone says that no other Commit may be on its way, ordered and not yet visible, while this one is.
	Alone() bool
	// Needs says whether those who get the bytes read the value that the Commit sets at a key with them.
	Needs(key []byte) bool
}

// EncodedMeaning is a Meaning that came as bytes.
type EncodedMeaning []byte

// AppendBinary is Meaning's.
func (m EncodedMeaning) AppendBinary(dst []byte) ([]byte, error) { return append(dst, m...), nil }

// Alone is Meaning's. It is not asked for: what comes as bytes was ordered elsewhere.
func (m EncodedMeaning) Alone() bool { return true }

// Needs is Meaning's: it may be any.
func (m EncodedMeaning) Needs([]byte) bool { return true }

// Writes are what a transaction changes. The ranges come first: what is set or added in them stays.
type Writes interface {
	// Len is the number of keys that are set or deleted.
	Len() int
	// Each calls f for each of them, in order.
	Each(f func(Op))
	// Lookup finds the one of a key.
	Lookup(key []byte) (Op, bool)
	// Ranges are deleted with all that was in them.
	Ranges() []Range
	// Counters are the sums that are added, in the order of their keys.
	Counters() []Count
	Claims() [][]byte
	// Size is about how many bytes all that takes.
	Size() int
}

// Op is one write: Value was set at Key, or Key was deleted.
type Op struct {
	Key, Value []byte
	Delete     bool
	Cached     bool // Value is likely read by its key soon
}

// Range is all keys from Start up to, and without, End.
type Range struct{ Start, End []byte }

// Contains says whether key lies in r.
func (r Range) Contains(key []byte) bool {
	return bytes.Compare(r.Start, key) <= 0 && bytes.Compare(key, r.End) < 0
}

// Count is what was added to the counter at Key.
type Count struct {
	Key   []byte
	Delta int64
}

// Table is pairs that a Commit names and does not carry: there may be more of them than memory holds.
type Table struct {
	// Range has all the pairs in it. When Replaces is set nothing else is left there.
	Range
	Replaces bool
	// Open gives the pairs in the order of their keys. Of a Commit that an Observer is told of it is called while the Observer
	// is; what it returns may be read for as long as need be.
	Open func() (Pairs, error)
}

// Pairs are read to their end, or closed before. What Next returns is good until it is called again.
type Pairs interface {
	Next() (key, value []byte, ok bool, err error)
	Close() error
}

// Observer is told of each Commit by the engine that orders it, one at a time and in their order, whether it was made here or
// came by Apply. The engine lets nobody else commit meanwhile, so an Observer does nothing that waits, for the disk least of
// all, and does not write to the engine.
type Observer interface {
	// Now is the time to stamp a commit with, in milliseconds since the epoch.
	Now() int64
	// Ordered is called when the Commit has its number and its time, and nobody sees anything of it yet; but the pairs of a
	// Table, which nobody looks for before they are committed, may be there already. If Visible does not follow the engine has failed.
	// Until it returns it may write into the keys and values of Stamped, unless the Commit came by Apply.
	Ordered(*Commit)
	// Appears is called when the Commit is about to be seen: who begins to read before Visible is called sees it or not. If Visible does not
	// follow the engine has failed.
	Appears(*Commit)
	// Visible is called when whoever begins to read from now on sees it, and before the next commit is ordered; in an engine that leads a
	// replica set (see Log) or writes groups (Capabilities.Groups) others may be ordered before, unless this one or one of them is to be Alone.
	Visible(*Commit)
}

// stampedSize is about how many bytes Stamped takes.
func (c *Commit) stampedSize() (n int) {
	for _, op := range c.Stamped {
		n += len(op.Key) + len(op.Value)
	}
	return n
}

// TotalSize is about how many bytes all its writes take.
func (c *Commit) TotalSize() int { return c.Size() + c.stampedSize() }

// WriteList is Writes as lists: of a commit that was not made by a transaction here. Ops and Added are in the order of their keys.
type WriteList struct {
	Ops     []Op
	Deleted []Range
	Claimed [][]byte
	Added   []Count
}

var _ Writes = (*WriteList)(nil)

// Len is Writes'.
func (w *WriteList) Len() int { return len(w.Ops) }

// Each is Writes'.
func (w *WriteList) Each(f func(Op)) {
	for _, op := range w.Ops {
		f(op)
	}
}

// Lookup is Writes'.
func (w *WriteList) Lookup(key []byte) (Op, bool) {
	i, found := slices.BinarySearchFunc(w.Ops, key, func(op Op, key []byte) int { return bytes.Compare(op.Key, key) })
	if !found {
		return Op{}, false
	}
	return w.Ops[i], true
}

// Ranges is Writes'.
func (w *WriteList) Ranges() []Range { return w.Deleted }

// Counters is Writes'.
func (w *WriteList) Counters() []Count { return w.Added }

// Claims is Writes'.
func (w *WriteList) Claims() [][]byte { return w.Claimed }

// Size is Writes'.
func (w *WriteList) Size() (n int) {
	for _, op := range w.Ops {
		n += len(op.Key) + len(op.Value)
	}
	for _, r := range w.Deleted {
		n += len(r.Start) + len(r.End)
	}
	for _, added := range w.Added {
		n += len(added.Key)
	}
	return n
}
