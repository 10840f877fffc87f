package inspect

import (
	"bytes"
	"cmp"
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// deletion is a range that was deleted.
type deletion struct {
	start, end []byte
	seq        uint64
}

// source is something that holds keys in their order, of each the youngest first.
type source interface {
	// at is where it stands.
	at() (key, value []byte, seq uint64, kind pebble.InternalKeyKind)
	next() bool
	close() error
}

// salvage merges what can be read of tables and logs.
type salvage struct {
	disk    vfs.FS
	dir     string
	report  *Report
	spoilt  Spoilt
	lost    func(what string)
	place   func(key []byte) string
	logged  logged
	parts   []Part
	deleted []deletion // that begin behind where the merge is, the last first
	// covering are those that may cover where it is.
	covering []deletion
}

// Salvage gives what can be read of a store, damaged or not, in ascending order of the keys: of each the youngest value that can be
// read, if it was not deleted since. It needs no manifest; where there is none, or it is damaged, all tables are read, and what was
// deleted or replaced may be among it. lost is told what cannot be read, with what place calls the key behind which that lies. The records of the logs are held in memory.
func Salvage(disk vfs.FS, dir string, lost func(what string), place func(key []byte) string, each func(key, value []byte) error) error {
	report, err := Look(disk, dir)
	if err != nil {
		return err
	}
	for _, d := range report.Damages {
		lost(d.String())
	}
	s := &salvage{disk: disk, dir: dir, report: report, lost: lost, place: place}
	if err := s.readLogs(); err != nil {
		return err
	}
	if err := s.listTables(); err != nil {
		return err
	}
	return s.merge(each)
}

// listTables lists those of the manifest, those that the logs have taken over, and, if the manifest is damaged, all others.
func (s *salvage) listTables() error {
	s.parts = append(slices.Clone(s.report.Tables.Parts), s.logged.tables...)
	listed := map[uint64]bool{}
	for _, p := range s.parts {
		listed[p.File] = true
	}
	if !slices.ContainsFunc(s.report.Damages, func(d Damage) bool { return d.Log == 0 && !strings.HasSuffix(d.File, ".sst") }) {
		return nil
	}
	names, err := s.disk.List(s.dir)
	if err != nil {
		return fmt.Errorf("list %s: %w", s.dir, err)
	}
	for _, name := range names {
		text, ok := strings.CutSuffix(name, ".sst")
		number, err := strconv.ParseUint(text, 10, 64)
		if ok && err == nil && !listed[number] {
			s.parts = append(s.parts, Part{File: number})
		}
	}
	return nil
}

// logged is what the logs hold.
type logged struct {
	ops     []op
	deleted []deletion
	tables  []Part
	place   int
}

type op struct {
	key, value []byte
	seq        uint64
	kind       pebble.InternalKeyKind
}

func (s *salvage) readLogs() error {
	for _, l := range s.report.Logs {
		file, err := s.disk.Open(s.disk.PathJoin(s.dir, l.Name))
		if err != nil {
			return err
		}
		_, err = scanAll(file, format{true, uint32(l.Number)}, func(record []byte) error {
			if err := s.logged.add(bytes.Clone(record)); err != nil {
				s.lost(fmt.Sprintf("a record of %s: %v", l.Name, err))
			}
			return nil
		})
		if err := errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("read %s: %w", l.Name, err)
		}
	}
	slices.SortStableFunc(s.logged.ops, func(a, b op) int {
		return cmp.Or(bytes.Compare(a.key, b.key), cmp.Compare(b.seq, a.seq))
	})
	return nil
}

// add takes in a batch.
func (l *logged) add(record []byte) error {
	h, ok := batchrepr.ReadHeader(record)
	if !ok {
		return errors.New("it is too short for a batch")
	}
	seq := uint64(h.SeqNum)
	for r := batchrepr.Read(record); ; {
		kind, key, value, ok, err := r.Next()
		if !ok || err != nil {
			return err
		}
		switch kind {
		case pebble.InternalKeyKindLogData:
			continue
		case pebble.InternalKeyKindRangeDelete, pebble.InternalKeyKindExcise:
			l.deleted = append(l.deleted, deletion{key, value, seq})
		case pebble.InternalKeyKindIngestSST:
			if number, n := binary.Uvarint(key); n > 0 {
				l.tables = append(l.tables, Part{File: number, Sequence: seq})
			}
		default:
			l.ops = append(l.ops, op{key, value, seq, kind})
		}
		seq++
	}
}

func (l *logged) at() (key, value []byte, seq uint64, kind pebble.InternalKeyKind) {
	o := l.ops[l.place]
	return o.key, o.value, o.seq, o.kind
}

func (l *logged) next() bool {
	l.place++
	return l.place < len(l.ops)
}

func (l *logged) close() error { return nil }

func (w *walk) at() (key, value []byte, seq uint64, kind pebble.InternalKeyKind) {
	return w.key, w.value, w.seq, w.kind
}

// open begins to read a part of a table; nil if nothing of it can be read.
func (s *salvage) open(p Part) *walk {
	t, err := openTable(s.disk, s.dir, p.File, &s.spoilt)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the report says so
	}
	if err != nil {
		s.lost(fmt.Sprintf("all of %s: %v", tableName(p.File), err))
		return nil
	}
	w, err := newWalk(t, p, func(name string, from []byte, err error) {
		s.lost(fmt.Sprintf("keys of %s behind %s: %v", name, s.place(from), err))
	})
	if err != nil {
		s.lost(fmt.Sprintf("all of %s: %v", t.name, err))
		return nil
	}
	return w
}

// sources are open, the least key first, of one key the youngest.
type sources []source

func (q sources) Len() int { return len(q) }
func (q sources) Less(i, j int) bool {
	a, _, newer, _ := q[i].at()
	b, _, older, _ := q[j].at()
	if c := bytes.Compare(a, b); c != 0 {
		return c < 0
	}
	return newer > older
}
func (q sources) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *sources) Push(x any)   { *q = append(*q, x.(source)) }
func (q *sources) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// merge gives the youngest of each key.
func (s *salvage) merge(each func(key, value []byte) error) (err error) {
	var q sources
	defer func() {
		for _, open := range q {
			err = errors.Join(err, open.close())
		}
	}()
	if err := s.readDeletions(); err != nil {
		return err
	}
	slices.SortFunc(s.parts, func(a, b Part) int { return bytes.Compare(a.Lower, b.Lower) })
	if len(s.logged.ops) > 0 {
		heap.Push(&q, &s.logged)
	}
	var last []byte
	given := false
	for {
		// A table is opened when its keys come, so that few are at a time.
		for len(s.parts) > 0 && (len(q) == 0 || !before(q[0], s.parts[0].Lower)) {
			if w := s.open(s.parts[0]); w != nil {
				if w.first() {
					heap.Push(&q, w)
				} else if err := w.close(); err != nil {
					return err
				}
			}
			s.parts = s.parts[1:]
		}
		if len(q) == 0 {
			return nil
		}
		key, value, seq, kind := q[0].at()
		if !given || !bytes.Equal(key, last) {
			given, last = true, append(last[:0], key...)
			isSet := kind == pebble.InternalKeyKindSet || kind == pebble.InternalKeyKindSetWithDelete
			if isSet && !s.isDeleted(key, seq) {
				if err := each(key, value); err != nil {
					return err
				}
			}
		}
		if q[0].next() {
			heap.Fix(&q, 0)
		} else if err := heap.Pop(&q).(source).close(); err != nil {
			return err
		}
	}
}

// before says whether a source stands before a key.
func before(from source, key []byte) bool {
	at, _, _, _ := from.at()
	return bytes.Compare(at, key) < 0
}

// readDeletions reads what the tables delete, and puts all that was deleted in the order in which it begins.
func (s *salvage) readDeletions() error {
	s.deleted = s.logged.deleted
	for _, p := range s.parts {
		w := s.open(p)
		if w == nil {
			continue
		}
		list, err := w.deletions()
		if err != nil {
			s.lost(fmt.Sprintf("what %s deletes: %v", w.name, err))
		}
		s.deleted = append(s.deleted, list...)
		if err := w.close(); err != nil {
			return err
		}
	}
	slices.SortFunc(s.deleted, func(a, b deletion) int { return bytes.Compare(b.start, a.start) })
	return nil
}

// isDeleted says whether a key was deleted after its value was written. It is asked for ascending keys.
func (s *salvage) isDeleted(key []byte, seq uint64) bool {
	for n := len(s.deleted) - 1; n >= 0 && bytes.Compare(s.deleted[n].start, key) <= 0; n-- {
		s.covering = append(s.covering, s.deleted[n])
		s.deleted = s.deleted[:n]
	}
	s.covering = slices.DeleteFunc(s.covering, func(d deletion) bool { return bytes.Compare(d.end, key) <= 0 })
	return slices.ContainsFunc(s.covering, func(d deletion) bool { return d.seq > seq })
}
