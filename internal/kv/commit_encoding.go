package kv

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// The binary form of a Commit, for those who take it elsewhere. Numbers are varints, and bytes stand behind their length:
//
//	version, 1 byte | number | time
//	how many ranges | start, end of each
//	how many counters | key, delta of each
//	how many claims | each
//	how many writes | of each: flags, 1 byte; key; value, unless it is a deletion
//	how many stamped writes | of each the same
//	table, 1 byte | its start and end, unless there is none
//	meaning, to the end
//
// The pairs of a table are not part of it: whoever passes a Commit on passes them on behind it.
const commitVersion = 2

// The flags of a write.
const (
	opDelete = 1 << iota
	opCached
)

// What a commit has of a table.
const (
	noTable = iota
	loadedTable
	replacedTable
)

var errBrokenCommit = errors.New("kv: an encoded commit is broken")

// AppendBinary appends the binary form of c.
func (c *Commit) AppendBinary(dst []byte) ([]byte, error) {
	dst = append(dst, commitVersion)
	dst = binary.AppendUvarint(dst, c.Number)
	dst = binary.AppendVarint(dst, c.Time)
	dst = binary.AppendUvarint(dst, uint64(len(c.Ranges())))
	for _, r := range c.Ranges() {
		dst = appendBytes(appendBytes(dst, r.Start), r.End)
	}
	dst = binary.AppendUvarint(dst, uint64(len(c.Counters())))
	for _, added := range c.Counters() {
		dst = binary.AppendVarint(appendBytes(dst, added.Key), added.Delta)
	}
	dst = binary.AppendUvarint(dst, uint64(len(c.Claims())))
	for _, key := range c.Claims() {
		dst = appendBytes(dst, key)
	}
	dst = binary.AppendUvarint(dst, uint64(c.Len()))
	c.Each(func(op Op) { dst = op.appendBinary(dst) })
	dst = binary.AppendUvarint(dst, uint64(len(c.Stamped)))
	for _, op := range c.Stamped {
		dst = op.appendBinary(dst)
	}
	dst = c.Table.appendBinary(dst)
	if c.Meaning == nil {
		return dst, nil
	}
	dst, err := c.Meaning.AppendBinary(dst)
	if err != nil {
		return nil, fmt.Errorf("kv: encode commit %d: %w", c.Number, err)
	}
	return dst, nil
}

func (op Op) appendBinary(dst []byte) []byte {
	flags := byte(0)
	if op.Cached {
		flags |= opCached
	}
	if op.Delete {
		return appendBytes(append(dst, flags|opDelete), op.Key)
	}
	return appendBytes(appendBytes(append(dst, flags), op.Key), op.Value)
}

func (t *Table) appendBinary(dst []byte) []byte {
	switch {
	case t == nil:
		return append(dst, noTable)
	case t.Replaces:
		dst = append(dst, replacedTable)
	default:
		dst = append(dst, loadedTable)
	}
	return appendBytes(appendBytes(dst, t.Start), t.End)
}

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// DecodeCommit is the Commit whose binary form encoded is. It shares its bytes. Whoever has the pairs of its table, if there is
// one, sets its Open.
func DecodeCommit(encoded []byte) (*Commit, error) {
	d := &commitDecoder{rest: encoded}
	if v := d.byte(); v != commitVersion && !d.broken {
		return nil, fmt.Errorf("kv: an encoded commit has version %d, and this Ebb reads version %d", v, commitVersion)
	}
	w := &WriteList{}
	c := &Commit{Number: d.uvarint(), Time: d.varint(), Writes: w}
	for range d.count() {
		w.Deleted = append(w.Deleted, Range{d.bytes(), d.bytes()})
	}
	for range d.count() {
		w.Added = append(w.Added, Count{d.bytes(), d.varint()})
	}
	for range d.count() {
		w.Claimed = append(w.Claimed, d.bytes())
	}
	for range d.count() {
		w.Ops = append(w.Ops, d.op())
	}
	for range d.count() {
		c.Stamped = append(c.Stamped, d.op())
	}
	c.Table = d.table()
	if d.broken || !w.isInOrder() {
		return nil, errBrokenCommit
	}
	if len(d.rest) > 0 {
		c.Meaning = EncodedMeaning(d.rest)
	}
	return c, nil
}

// CommitNumber is the number of an encoded Commit, 0 where it is broken.
func CommitNumber(encoded []byte) uint64 {
	d := &commitDecoder{rest: encoded}
	d.byte()
	return d.uvarint()
}

// CommitTime is the time of an encoded Commit, 0 where it is broken.
func CommitTime(encoded []byte) int64 {
	d := &commitDecoder{rest: encoded}
	d.byte()
	d.uvarint()
	return d.varint()
}

// isInOrder says whether the keys ascend, as Lookup needs them to.
func (w *WriteList) isInOrder() bool {
	for i := 1; i < len(w.Ops); i++ {
		if bytes.Compare(w.Ops[i-1].Key, w.Ops[i].Key) >= 0 {
			return false
		}
	}
	for i := 1; i < len(w.Added); i++ {
		if bytes.Compare(w.Added[i-1].Key, w.Added[i].Key) >= 0 {
			return false
		}
	}
	return true
}

// commitDecoder reads a Commit. Once it is broken it reads nothing more.
type commitDecoder struct {
	rest   []byte
	broken bool
}

func (d *commitDecoder) fail() {
	d.rest, d.broken = nil, true
}

func (d *commitDecoder) byte() byte {
	if len(d.rest) == 0 {
		d.fail()
		return 0
	}
	b := d.rest[0]
	d.rest = d.rest[1:]
	return b
}

func (d *commitDecoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *commitDecoder) varint() int64 {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// count is how many of something follow; each takes a byte at least.
func (d *commitDecoder) count() int {
	n := d.uvarint()
	if n > uint64(len(d.rest)) {
		d.fail()
		return 0
	}
	return int(n)
}

func (d *commitDecoder) bytes() []byte {
	n := d.count()
	b := d.rest[:n:n]
	d.rest = d.rest[n:]
	return b
}

func (d *commitDecoder) op() (op Op) {
	flags := d.byte()
	if flags&^(opDelete|opCached) != 0 {
		d.fail()
	}
	op = Op{Key: d.bytes(), Delete: flags&opDelete != 0, Cached: flags&opCached != 0}
	if !op.Delete {
		op.Value = d.bytes()
	}
	return op
}

func (d *commitDecoder) table() *Table {
	switch kind := d.byte(); kind {
	case noTable:
		return nil
	case loadedTable, replacedTable:
		return &Table{Range: Range{d.bytes(), d.bytes()}, Replaces: kind == replacedTable}
	}
	d.fail()
	return nil
}
