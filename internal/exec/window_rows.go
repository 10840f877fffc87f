package exec

import (
	"fmt"
	"os"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/sortpattern"
)

// windowRows is a partition: documents by position. Past the stage's memory they lie in a temporary file.
type windowRows struct {
	op      *Op
	pattern *sortpattern.Pattern

	docs  []bson.Doc
	held  int64
	file  *os.File
	spans []span // of the documents in the file, which come first
	end   int64
	cache map[int]bson.Doc // of the documents read from it last

	keyA, keyB []bson.Value
}

type span struct {
	at  int64
	len int
}

// cachedRows is how many documents of the file are kept at hand.
const cachedRows = 256

func (r *windowRows) reset() {
	r.docs, r.spans, r.cache, r.held, r.end = nil, nil, nil, 0, 0
	if r.file != nil {
		name := r.file.Name()
		_ = r.file.Close()
		_ = os.Remove(name) // gone already where that was possible
		r.file = nil
	}
}

func (r *windowRows) add(d bson.Doc) error {
	r.docs = append(r.docs, d.Clone())
	r.held += int64(len(d)) + 48
	if r.held <= r.op.maxMemory() {
		return nil
	}
	return r.spill()
}

func (r *windowRows) spill() error {
	if !r.op.AllowDiskUse {
		return mongoerr.New(5643011, "Exceeded memory limit in DocumentSourceSetWindowFields, used %d bytes but max allowed is %d", r.held, r.op.maxMemory())
	}
	if err := r.op.spilling("$setWindowFields"); err != nil {
		return err
	}
	if r.file == nil {
		f, err := os.CreateTemp(r.op.TempDir, "spill-*")
		if err != nil {
			return fmt.Errorf("making a temporary file for a stage: %w", err)
		}
		_ = os.Remove(f.Name()) // where an open file cannot be removed, reset does it
		r.file, r.cache = f, map[int]bson.Doc{}
	}
	var buf []byte
	for _, d := range r.docs {
		r.spans = append(r.spans, span{r.end + int64(len(buf)), len(d)})
		buf = append(buf, d...)
	}
	if _, err := r.file.WriteAt(buf, r.end); err != nil {
		return fmt.Errorf("writing a stage's temporary file: %w", err)
	}
	r.end += int64(len(buf))
	r.docs, r.held = nil, 0
	return nil
}

// Len implements accumulator.Rows.
func (r *windowRows) Len() int { return len(r.spans) + len(r.docs) }

func (r *windowRows) doc(i int) (bson.Doc, error) {
	if i >= len(r.spans) {
		return r.docs[i-len(r.spans)], nil
	}
	if d, ok := r.cache[i]; ok {
		return d, nil
	}
	d := make(bson.Doc, r.spans[i].len)
	if _, err := r.file.ReadAt(d, r.spans[i].at); err != nil {
		return nil, fmt.Errorf("reading a stage's temporary file: %w", err)
	}
	if len(r.cache) >= cachedRows {
		clear(r.cache)
	}
	r.cache[i] = d
	return d, nil
}

// Eval implements accumulator.Rows.
func (r *windowRows) Eval(i int, es []expr.Expr, dst []bson.Value) error {
	d, err := r.doc(i)
	if err != nil {
		return err
	}
	env := r.op.Env
	env.Reset()
	env.Root = d
	for j, e := range es {
		if dst[j], err = e.Eval(env); err != nil {
			return err
		}
	}
	return nil
}

// SortValue implements accumulator.Rows: the sort key as a path sees it, not as sorting does, so that a missing one shows.
func (r *windowRows) SortValue(i int) (bson.Value, error) {
	d, err := r.doc(i)
	if err != nil {
		return bson.Missing, err
	}
	return r.pattern.Parts[0].Path.Eval(d), nil
}

// SameSort implements accumulator.Rows.
func (r *windowRows) SameSort(i, j int) (bool, error) {
	a, err := r.doc(i)
	if err != nil {
		return false, err
	}
	b, err := r.doc(j)
	if err != nil {
		return false, err
	}
	c := r.op.collator()
	if r.keyA, err = r.pattern.Key(r.keyA[:0], a, r.op.Meta.Get, c); err != nil {
		return false, err
	}
	if r.keyB, err = r.pattern.Key(r.keyB[:0], b, r.op.Meta.Get, c); err != nil {
		return false, err
	}
	return r.pattern.Compare(r.keyA, r.keyB, c) == 0, nil
}
