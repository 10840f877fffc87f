package exec

import (
	"container/heap"
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/ordering"
	"github.com/ebbdb/ebb/internal/pipeline"
	"github.com/ebbdb/ebb/internal/sortpattern"
	"github.com/ebbdb/ebb/internal/spill"
)

// sortStage is $sort. Equal documents stay in the order they came. With a limit it keeps the first documents only; past its
// memory it writes sorted runs to files and merges them.
type sortStage struct {
	op    *Op
	order order
	limit int64
	in    Iterator

	rows   []*sortRow
	held   holding
	seq    uint64
	slab   []byte
	keys   []bson.Value
	spare  []sortRow
	key    []bson.Value
	meta   sortpattern.Meta
	sorted bool
	next   int
	merge  *runMerge
	runs   runs
	turns  *turns
}

// order is what documents are sorted by.
type order interface {
	// Key appends the sort key of d, whose metadata is meta; its values may share d's bytes.
	Key(dst []bson.Value, d bson.Doc, meta sortpattern.Meta) ([]bson.Value, error)
	Compare(a, b []bson.Value) int
	// Descends says which way the first value sorts, and Collates whether its strings are compared by more than bytes.
	Descends() bool
	Collates() bool
}

// patternOrder is the order of a sort pattern.
type patternOrder struct {
	pattern *sortpattern.Pattern
	collate bson.Collator
	ask     func() error // whether the operation goes on
}

func (o patternOrder) Key(dst []bson.Value, d bson.Doc, meta sortpattern.Meta) ([]bson.Value, error) {
	return o.pattern.Key(dst, d, meta, o.collate, o.ask)
}

func (o patternOrder) Compare(a, b []bson.Value) int { return o.pattern.Compare(a, b, o.collate) }

func (o patternOrder) Descends() bool { return o.pattern.Parts[0].Desc }
func (o patternOrder) Collates() bool { return o.collate != nil }

// sortRow is a document with its key, whose values lie in the document.
type sortRow struct {
	prefix uint64 // of the first value, turned over when it descends
	doc    bson.Doc
	key    []bson.Value
	seq    uint64
	meta   bson.Doc
}

// Slabs begin small and double: most sorts are of a few documents.
const (
	minSlabBytes = 4 << 10
	maxSlabBytes = 256 << 10
	minSlabKeys  = 32
	maxSlabKeys  = 4096
	minSlabRows  = 16
	maxSlabRows  = 512
	keyBytes     = 32
	rowOverhead  = 120
)

// nextSlab is the size of the slab behind one of size n.
func nextSlab(n, least, most int) int { return min(max(2*n, least), most) }

func newSort(op *Op, s *pipeline.Sort, in Iterator) Iterator {
	return NewSort(op, s.Pattern, s.Limit, in)
}

// NewSort sorts what in gives by pattern, the first limit documents only unless limit is 0.
func NewSort(op *Op, pattern *sortpattern.Pattern, limit int64, in Iterator) Iterator {
	return newSortStage(op, patternOrder{pattern, op.collator(), op.Interrupted}, limit, in)
}

func newSortStage(op *Op, o order, limit int64, in Iterator) *sortStage {
	s := &sortStage{op: op, order: o, limit: limit, in: in, meta: op.Meta.Get, held: holding{op: op}, turns: op.turns()}
	op.holds(s)
	return s
}

func (s *sortStage) Next(ctx context.Context) (bson.Doc, error) {
	if !s.sorted {
		if err := s.load(ctx); err != nil {
			return nil, err
		}
	}
	d, err := s.give(ctx)
	if d != nil && s.op.SortKeys {
		err = s.op.tellSortKey(s.order, d)
	}
	return d, err
}

func (s *sortStage) give(ctx context.Context) (bson.Doc, error) {
	if s.merge != nil {
		return s.merge.next(ctx)
	}
	if s.next == len(s.rows) {
		s.forget()
		return nil, nil
	}
	r := s.rows[s.next]
	s.next++
	s.op.restore(r.meta)
	return r.doc, nil
}

// restore makes d the metadata at hand.
func (op *Op) restore(d bson.Doc) {
	if d != nil || !op.Meta.empty() {
		op.Meta.from(d)
	}
}

func (s *sortStage) load(ctx context.Context) error {
	if err := Each(ctx, s.in, func(d bson.Doc) error { return s.add(ctx, d) }); err != nil {
		return err
	}
	return s.finish()
}

// finish sorts what was added.
func (s *sortStage) finish() (err error) {
	s.sorted = true
	if s.runs.none() {
		return s.sort()
	}
	if err := s.spill(); err != nil {
		return err
	}
	s.merge, err = s.openMerge(s.runs.list)
	return err
}

func (s *sortStage) sort() error {
	if !s.order.Collates() { // bytes are compared fast
		return ordering.Any(s.rows, s.compare, s.op.Interrupted)
	}
	return ordering.AnySized(s.rows, s.compare, (*sortRow).keySize, s.op.Interrupted)
}

// keySize is about how much there is to compare.
func (r *sortRow) keySize() int {
	n := 0
	for _, v := range r.key {
		n += len(v.Data)
	}
	return n
}

func (s *sortStage) compare(a, b *sortRow) int {
	if a.prefix != b.prefix {
		if a.prefix < b.prefix {
			return -1
		}
		return 1
	}
	s.turns.step()
	if c := s.order.Compare(a.key, b.key); c != 0 {
		return c
	}
	if a.seq < b.seq {
		return -1
	}
	return 1
}

func (s *sortStage) add(ctx context.Context, d bson.Doc) error {
	key, err := s.order.Key(s.key[:0], d, s.meta)
	if err != nil {
		return err
	}
	s.key = key
	defer clear(key) // which lies in d
	s.seq++
	grows := int64(len(d)) + int64(len(key))*keyBytes + rowOverhead
	if s.limit > 0 && int64(len(s.rows)) == s.limit && s.runs.none() {
		if s.order.Compare(key, s.rows[0].key) >= 0 {
			return nil
		}
		grows -= s.rows[0].bytes()
		s.rows[0] = s.keep(d, key)
		heap.Fix((*lastFirst)(s), 0)
	} else if row := s.keep(d, key); s.limit > 0 && s.runs.none() {
		heap.Push((*lastFirst)(s), row)
	} else {
		s.rows = append(s.rows, row)
	}
	if grows < 0 {
		s.held.drop(-grows)
		return nil
	}
	if full, err := s.held.add(ctx, grows); !full {
		return err
	}
	if err := s.op.spilling("$sort"); err != nil {
		return mongoerr.New(mongoerr.QueryExceededMemoryLimitNoDiskUseAllowed,
			"Sort exceeded memory limit of %d bytes, but did not opt in to external sorting. Pass allowDiskUse:true to opt in.", s.op.maxMemory())
	}
	return s.spill()
}

// keep copies d and its key. With a limit each document has memory of its own, since most are thrown away again.
func (s *sortStage) keep(d bson.Doc, key []bson.Value) *sortRow {
	var row *sortRow
	if s.limit > 0 {
		row = &sortRow{doc: d.Clone(), key: make([]bson.Value, len(key))}
	} else {
		if len(s.spare) == 0 {
			s.spare = make([]sortRow, nextSlab(len(s.rows), minSlabRows, maxSlabRows))
		}
		row, s.spare = &s.spare[0], s.spare[1:]
		row.doc, row.key = s.hold(d), s.holdKey(len(key))
	}
	row.seq, row.meta = s.seq, s.op.Meta.doc()
	if row.prefix = prefix(key[0], s.order.Collates()); s.order.Descends() {
		row.prefix = ^row.prefix
	}
	for i, v := range key {
		row.key[i] = relocate(v, d, row.doc)
	}
	return row
}

func (s *sortStage) hold(d bson.Doc) bson.Doc {
	if len(d) > cap(s.slab)-len(s.slab) {
		s.slab = make([]byte, 0, max(nextSlab(cap(s.slab), minSlabBytes, maxSlabBytes), len(d)))
	}
	at := len(s.slab)
	s.slab = append(s.slab, d...)
	return bson.Doc(s.slab[at:len(s.slab):len(s.slab)])
}

func (s *sortStage) holdKey(n int) []bson.Value {
	if n > cap(s.keys)-len(s.keys) {
		s.keys = make([]bson.Value, 0, max(nextSlab(cap(s.keys), minSlabKeys, maxSlabKeys), n))
	}
	at := len(s.keys)
	s.keys = s.keys[:at+n]
	return s.keys[at : at+n : at+n]
}

// relocate is v, whose bytes lie in from, in its copy to. Values that lie elsewhere are copied.
func relocate(v bson.Value, from, to bson.Doc) bson.Value {
	if len(v.Data) == 0 {
		return v
	}
	if i := offsetIn(from, v.Data); i >= 0 {
		return bson.Value{Type: v.Type, Data: to[i : i+len(v.Data) : i+len(v.Data)]}
	}
	return v.Clone()
}

// lastFirst is the rows as a heap whose top sorts last: the one to go when a better one comes.
type lastFirst sortStage

func (h *lastFirst) Len() int           { return len(h.rows) }
func (h *lastFirst) Less(i, j int) bool { return (*sortStage)(h).compare(h.rows[i], h.rows[j]) > 0 }
func (h *lastFirst) Swap(i, j int)      { h.rows[i], h.rows[j] = h.rows[j], h.rows[i] }
func (h *lastFirst) Push(x any)         { h.rows = append(h.rows, x.(*sortRow)) }
func (h *lastFirst) Pop() any {
	r := h.rows[len(h.rows)-1]
	h.rows = h.rows[:len(h.rows)-1]
	return r
}

// bytes is about what the row takes.
func (r *sortRow) bytes() int64 { return int64(len(r.doc)) + int64(len(r.key))*keyBytes + rowOverhead }

// spill writes the rows as a sorted run. With a limit, only what may still come out is written.
func (s *sortStage) spill() error {
	if err := s.sort(); err != nil {
		return err
	}
	r, err := s.writeRun(s.rows)
	if err != nil {
		return err
	}
	s.forget()
	return s.runs.add(r, s.mergeRuns)
}

// writeRun is a run of rows that are in order.
func (s *sortStage) writeRun(rows []*sortRow) (*spill.Run, error) {
	if s.limit > 0 && int64(len(rows)) > s.limit {
		rows = rows[:s.limit]
	}
	return spill.Make(s.op.TempDir, func(r *spill.Run) error {
		for _, row := range rows {
			s.turns.step()
			if err := r.Write(row.doc, row.meta); err != nil {
				return err
			}
		}
		return nil
	})
}

// forget lets go of what is in memory.
func (s *sortStage) forget() {
	s.rows, s.next, s.slab, s.keys, s.spare = nil, 0, nil, nil, nil
	s.held.empty()
}

// Shrink implements Shrinker: what is sorted and has not been given goes to a file.
func (s *sortStage) Shrink() error {
	if !s.sorted || s.merge != nil || s.held.bytes < minShrink {
		return nil
	}
	r, err := s.writeRun(s.rows[s.next:])
	if err != nil {
		return err
	}
	s.op.spilled()
	s.forget()
	s.runs.list = append(s.runs.list, r)
	s.merge, err = s.openMerge(s.runs.list)
	return err
}

// mergeRuns makes one run of several.
func (s *sortStage) mergeRuns(runs []*spill.Run) (*spill.Run, error) {
	m, err := s.openMerge(runs)
	if err != nil {
		return nil, err
	}
	return spill.Make(s.op.TempDir, func(out *spill.Run) error {
		for {
			row, err := m.take()
			if err != nil || row == nil {
				return err
			}
			if err := out.Write(row.doc, row.meta); err != nil {
				return err
			}
		}
	})
}

func (s *sortStage) Close() error {
	s.turns.rest()
	s.runs.close()
	s.forget()
	return s.in.Close()
}
