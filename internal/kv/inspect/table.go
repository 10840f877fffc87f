package inspect

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// table is one that is read without a store.
type table struct {
	name   string
	reader *sstable.Reader
	spoilt *Spoilt
}

func tableName(number uint64) string { return fmt.Sprintf("%06d.sst", number) }

// openTable opens a table's file. Pebble can panic where a file holds what nobody has written.
func openTable(disk vfs.FS, dir string, number uint64, s *Spoilt) (t *table, err error) {
	defer caught(&err)
	name := tableName(number)
	file, err := disk.Open(disk.PathJoin(dir, name))
	if err != nil {
		return nil, err
	}
	readable, err := sstable.NewSimpleReadable(s.Guard(file, name))
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	o := &pebble.Options{}
	o.EnsureDefaults()
	reader, err := sstable.NewReader(context.Background(), readable, o.MakeReaderOptions())
	if err != nil {
		return nil, err // which has closed it
	}
	return &table{name, reader, s}, nil
}

func caught(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("it holds what nobody can have written: %v", r)
	}
}

func (t *table) close() error { return t.reader.Close() }

// verify reads all blocks.
func (t *table) verify() (err error) {
	defer caught(&err)
	return t.reader.ValidateBlockChecksums()
}

// CheckBeside reads what a part of a table holds last before start, and first from end on.
func CheckBeside(disk vfs.FS, dir string, p Part, start, end []byte) (err error) {
	t, err := openTable(disk, dir, p.File, &Spoilt{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	return t.beside(p, start, end)
}

func (t *table) beside(p Part, start, end []byte) (err error) {
	defer caught(&err)
	it, err := t.reader.NewIter(sstable.NoTransforms, p.Lower, p.Upper, sstable.AssertNoBlobHandles)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if bytes.Compare(p.Lower, start) < 0 {
		it.SeekLT(start, 0)
		err = it.Error()
	}
	if bytes.Compare(end, p.Upper) < 0 {
		it.SeekGE(end, 0)
		err = errors.Join(err, it.Error())
	}
	return err
}

// CheckTables reads all blocks of all tables that the manifest lists, and adds those that are damaged to r.Damages.
func CheckTables(disk vfs.FS, dir string, r *Report, each func(name string)) {
	for _, number := range sorted(r.Tables.Live) {
		name := tableName(number)
		if r.has(name) {
			continue
		}
		each(name)
		if err := CheckTable(disk, dir, number); err != nil {
			r.Damages = append(r.Damages, Damage{File: name, Offset: -1, Text: fmt.Sprintf("is damaged: %v", err)})
		}
	}
}

func (r *Report) has(name string) bool {
	for _, d := range r.Damages {
		if d.File == name {
			return true
		}
	}
	return false
}

// walk goes through the keys of a part of a table, and on behind blocks that cannot be read.
type walk struct {
	*table
	Part
	it    sstable.Iterator
	last  []byte // the last key that was read
	key   []byte
	value []byte
	seq   uint64
	kind  pebble.InternalKeyKind
	lost  func(name string, from []byte, err error)
}

func newWalk(t *table, p Part, lost func(string, []byte, error)) (w *walk, err error) {
	defer caught(&err)
	w = &walk{table: t, Part: p, lost: lost, last: p.Lower}
	w.it, err = t.reader.NewIter(sstable.IterTransforms{SyntheticSeqNum: sstable.SyntheticSeqNum(p.Sequence)}, p.Lower, p.Upper, sstable.AssertNoBlobHandles)
	return w, err
}

// first and next move; ok is false at the end.
func (w *walk) first() (ok bool) { return w.move(w.seek(w.Lower)) }

func (w *walk) next() (ok bool) { return w.move(w.step()) }

func (w *walk) step() (ok bool, err error) {
	defer caught(&err)
	if kv := w.it.Next(); kv != nil {
		return w.set(kv.K, kv.Value)
	}
	return false, w.it.Error()
}

// seek moves to the first key that is not before key.
func (w *walk) seek(key []byte) (ok bool, err error) {
	defer caught(&err)
	if kv := w.it.SeekGE(key, 0); kv != nil {
		return w.set(kv.K, kv.Value)
	}
	return false, w.it.Error()
}

func (w *walk) set(key pebble.InternalKey, value func([]byte) ([]byte, bool, error)) (ok bool, err error) {
	w.value, _, err = value(nil)
	w.key, w.seq, w.kind = key.UserKey, uint64(key.SeqNum()), key.Kind()
	w.last = append(w.last[:0:0], w.key...)
	return err == nil, err
}

// move goes on behind what cannot be read.
func (w *walk) move(ok bool, err error) bool {
	for err != nil {
		w.spoilt.Note(w.name, err)
		w.lost(w.name, w.last, err)
		if ok, err = w.pass(w.last); err != nil && !ok {
			return false
		}
	}
	return ok
}

// window is how many bytes of a key are counted up at once.
const window = 8

// pass moves behind a block that cannot be read: to the first key that it finds behind last. It counts the end of that up, by
// steps that double, until a seek gets behind the block, and then looks for the least that does; where the end of the key does not
// do, what stands before it. Keys that lie close together are found that way, and most others; those of a block that can be read
// between two that cannot may be passed over.
func (w *walk) pass(last []byte) (ok bool, err error) {
	last = bytes.Clone(last)
	for len(last) < window {
		last = append(last, 0)
	}
	for at := len(last) - window; ; at = max(0, at-window) {
		key := last[:at+window]
		from := binary.BigEndian.Uint64(key[at:])
		works := func(n uint64) bool {
			binary.BigEndian.PutUint64(key[at:], n)
			ok, err = w.seek(key)
			w.spoilt.Note(w.name, err)
			return err == nil
		}
		for step := uint64(1); from+step > from; step *= 2 {
			if !works(from + step) {
				continue
			}
			bad, good := from+step/2, from+step
			for good-bad > 1 {
				if mid := bad + (good-bad)/2; works(mid) {
					good = mid
				} else {
					bad = mid
				}
			}
			works(good)
			return ok, err
		}
		if at == 0 {
			return false, err
		}
		binary.BigEndian.PutUint64(key[at:], from)
	}
}

// deletions are the ranges that the table deletes, within its part.
func (w *walk) deletions() (list []deletion, err error) {
	defer caught(&err)
	it, err := w.reader.NewRawRangeDelIter(context.Background(), sstable.FragmentIterTransforms{SyntheticSeqNum: sstable.SyntheticSeqNum(w.Sequence)}, sstable.NoReadEnv)
	if it == nil || err != nil {
		return nil, err
	}
	defer it.Close()
	span, err := it.First()
	for ; span != nil && err == nil; span, err = it.Next() {
		d := deletion{start: bytes.Clone(span.Start), end: bytes.Clone(span.End)}
		for _, k := range span.Keys {
			d.seq = max(d.seq, uint64(k.SeqNum()))
		}
		if w.Lower != nil && bytes.Compare(d.start, w.Lower) < 0 {
			d.start = w.Lower
		}
		if w.Upper != nil && bytes.Compare(d.end, w.Upper) > 0 {
			d.end = w.Upper
		}
		if bytes.Compare(d.start, d.end) < 0 {
			list = append(list, d)
		}
	}
	return list, err
}

func (w *walk) close() error { return errors.Join(w.it.Close(), w.table.close()) }
