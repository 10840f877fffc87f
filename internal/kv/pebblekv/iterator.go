package pebblekv

import (
	"github.com/cockroachdb/pebble/v2"
)

// iterator is a kv.Iterator.
type iterator struct {
	lent   lent
	it     *pebble.Iterator
	placed bool
	view   *view // which takes it back
	began  start
}

func (i *iterator) moves() {
	i.placed = true
	i.lent.spoil()
}

func (i *iterator) First() bool { i.moves(); return i.it.First() }
func (i *iterator) Last() bool  { i.moves(); return i.it.Last() }

func (i *iterator) SeekGE(key []byte) bool { i.moves(); return i.it.SeekGE(key) }
func (i *iterator) SeekLT(key []byte) bool { i.moves(); return i.it.SeekLT(key) }

// Ahead is kv.Iterator's: a seek waits for nobody.
func (i *iterator) Ahead([][]byte, bool) {}

func (i *iterator) Next() bool {
	if !i.placed {
		return i.First()
	}
	i.lent.spoil()
	return i.it.Valid() && i.it.Next()
}

func (i *iterator) Prev() bool {
	if !i.placed {
		return i.Last()
	}
	i.lent.spoil()
	return i.it.Valid() && i.it.Prev()
}

func (i *iterator) Valid() bool { return i.it.Valid() }

func (i *iterator) Key() []byte { return i.lent.lend(i.it.Key()) }

func (i *iterator) Value() ([]byte, error) {
	value, err := i.it.ValueAndErr()
	if err != nil {
		return nil, reading("iterate", err)
	}
	return i.lent.lend(value), nil
}

func (i *iterator) Err() error {
	if err := i.it.Error(); err != nil {
		return reading("iterate", err)
	}
	return nil
}

func (i *iterator) Close() error {
	i.lent.spoil()
	it := i.it
	i.it = nil
	if it.Error() == nil && i.view.spares.keep(it, i.began) {
		return nil
	}
	if err := it.Close(); err != nil {
		return reading("iterate", err)
	}
	return nil
}
