package overlay

import (
	"bytes"

	"github.com/tidwall/btree"

	"github.com/ebbdb/ebb/internal/kv"
)

// iterator merges a transaction's own writes with an iterator over its snapshot.
//
// Walking forward, both sides stand on their first key that is ≥ the current one and the smaller of them is current;
// walking backward it is the mirror image. On equal keys the own write wins, and both sides leave the key together.
// Turning round puts the side that is not current on the other side of the current key first.
type iterator struct {
	below kv.Iterator
	own   walker
	at    side
	back  bool // the direction of the last move
	fresh bool
}

type side uint8

const (
	nowhere side = iota
	onBelow
	onOwn  // below stands on another key, or on none
	onBoth // the own write hides the same key below
)

// touches says whether there is an own write within the bounds: if not, the snapshot's iterator is all there is.
func (w *Writes) touches(o kv.IterOptions) bool {
	if w.Len() == 0 {
		return false
	}
	first, found := w.from(o.Lower)
	return found && (o.Upper == nil || bytes.Compare(first.Key, o.Upper) < 0)
}

// from is the first write at or after key.
func (w *Writes) from(key []byte) (first kv.Op, found bool) {
	if w.tree != nil {
		return firstFrom(w.tree, key)
	}
	if w.runs != nil {
		return w.runs.from(key)
	}
	i, _ := searchOps(w.few, key)
	if i == len(w.few) {
		return kv.Op{}, false
	}
	return w.few[i], true
}

func newIterator(w *Writes, below kv.Iterator, o kv.IterOptions) *iterator {
	it := &iterator{below: below, fresh: true}
	it.own.open(w, kv.IterOptions{Lower: bytes.Clone(o.Lower), Upper: bytes.Clone(o.Upper)})
	return it
}

func (it *iterator) First() bool {
	it.below.First()
	it.own.seekGE(nil)
	return it.settleForward()
}

func (it *iterator) Last() bool {
	it.below.Last()
	it.own.last()
	return it.settleBack()
}

func (it *iterator) SeekGE(key []byte) bool {
	it.below.SeekGE(key)
	it.own.seekGE(key)
	return it.settleForward()
}

func (it *iterator) SeekLT(key []byte) bool {
	it.below.SeekLT(key)
	it.own.seekLT(key)
	return it.settleBack()
}

// Ahead is kv.Iterator's: what the transaction has written is at hand.
func (it *iterator) Ahead(keys [][]byte, back bool) { it.below.Ahead(keys, back) }

func (it *iterator) Next() bool {
	if it.fresh {
		return it.First()
	}
	if it.back && it.at != nowhere {
		it.turnForward()
	}
	switch it.at {
	case onBelow:
		it.below.Next()
	case onOwn:
		it.own.next()
	case onBoth:
		it.below.Next()
		it.own.next()
	default:
		return false
	}
	return it.settleForward()
}

func (it *iterator) Prev() bool {
	if it.fresh {
		return it.Last()
	}
	if !it.back && it.at != nowhere {
		it.turnBack()
	}
	switch it.at {
	case onBelow:
		it.below.Prev()
	case onOwn:
		it.own.prev()
	case onBoth:
		it.below.Prev()
		it.own.prev()
	default:
		return false
	}
	return it.settleBack()
}

func (it *iterator) turnForward() {
	switch it.at {
	case onBelow:
		it.own.seekGE(it.below.Key())
	case onOwn:
		it.below.SeekGE(it.own.key())
	}
}

func (it *iterator) turnBack() {
	switch it.at {
	case onBelow:
		it.own.seekLT(it.below.Key())
	case onOwn:
		it.below.SeekLT(it.own.key())
	}
}

// settleForward makes the smaller side current and steps over what the own writes deleted.
func (it *iterator) settleForward() bool {
	it.fresh, it.back = false, false
	for {
		it.at = it.choose(-1)
		if it.at == nowhere || it.at == onBelow || !it.own.deleted() {
			return it.at != nowhere
		}
		if it.at == onBoth {
			it.below.Next()
		}
		it.own.next()
	}
}

func (it *iterator) settleBack() bool {
	it.fresh, it.back = false, true
	for {
		it.at = it.choose(1)
		if it.at == nowhere || it.at == onBelow || !it.own.deleted() {
			return it.at != nowhere
		}
		if it.at == onBoth {
			it.below.Prev()
		}
		it.own.prev()
	}
}

// choose says which side is current: the one whose key compares as first wants, -1 the smaller, 1 the greater.
func (it *iterator) choose(first int) side {
	below := it.below.Valid()
	if !below && it.below.Err() != nil {
		return nowhere
	}
	switch {
	case below && it.own.valid:
		switch bytes.Compare(it.below.Key(), it.own.key()) {
		case 0:
			return onBoth
		case first:
			return onBelow
		default:
			return onOwn
		}
	case below:
		return onBelow
	case it.own.valid:
		return onOwn
	default:
		return nowhere
	}
}

func (it *iterator) Valid() bool { return it.at != nowhere }

func (it *iterator) Key() []byte {
	switch it.at {
	case nowhere:
		return nil
	case onBelow:
		return it.below.Key()
	default:
		return it.own.key()
	}
}

func (it *iterator) Value() ([]byte, error) {
	switch it.at {
	case nowhere:
		return nil, it.below.Err()
	case onBelow:
		return it.below.Value()
	default:
		return it.own.iter.Item().Value, nil
	}
}

func (it *iterator) Err() error { return it.below.Err() }

func (it *iterator) Close() error {
	it.own.close()
	it.at, it.fresh = nowhere, false
	return it.below.Close()
}

// walker walks the own writes within bounds. Once it has left them, only a seek brings it back.
type walker struct {
	writes *Writes
	tree   *btree.BTreeG[kv.Op] // as it was when the walk began
	iter   btree.IterG[kv.Op]
	bounds kv.IterOptions
	valid  bool
}

func (c *walker) open(w *Writes, bounds kv.IterOptions) {
	w.plant()
	c.writes, c.tree, c.bounds = w, w.tree, bounds
	c.iter.Init(w.tree, false)
	w.walkers++
}

func (c *walker) close() {
	if c.writes == nil {
		return
	}
	if c.writes.tree == c.tree {
		c.writes.walkers--
	}
	c.writes, c.valid = nil, false
	c.iter.Release()
}

func (c *walker) key() []byte   { return c.iter.Item().Key }
func (c *walker) deleted() bool { return c.iter.Item().Delete }
func (c *walker) next()         { c.land(c.iter.Next()) }
func (c *walker) prev()         { c.land(c.iter.Prev()) }

func (c *walker) seekGE(key []byte) {
	if bytes.Compare(key, c.bounds.Lower) < 0 {
		key = c.bounds.Lower
	}
	c.land(c.iter.Seek(kv.Op{Key: key}))
}

func (c *walker) seekLT(key []byte) {
	if c.bounds.Upper != nil && bytes.Compare(key, c.bounds.Upper) > 0 {
		key = c.bounds.Upper
	}
	if c.iter.Seek(kv.Op{Key: key}) {
		c.land(c.iter.Prev())
		return
	}
	c.land(c.iter.Last())
}

func (c *walker) last() {
	if c.bounds.Upper != nil {
		c.seekLT(c.bounds.Upper)
		return
	}
	c.land(c.iter.Last())
}

// land notes where a move ended: on nothing when it left the bounds.
func (c *walker) land(moved bool) {
	c.valid = moved
	if !moved {
		return
	}
	key := c.key()
	if bytes.Compare(key, c.bounds.Lower) < 0 || c.bounds.Upper != nil && bytes.Compare(key, c.bounds.Upper) >= 0 {
		c.valid = false
	}
}
