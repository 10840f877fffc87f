package exec

import (
	"bufio"
	"context"
	"fmt"
	"io"
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
	held  holding
	file  *os.File
	spans []span // of the documents in the file, which come first
	end   int64
	cache map[int]bson.Doc // of the documents read from it last
	kept  int              // bytes in cache

	keyA, keyB []bson.Value
}

type span struct {
	at  int64
	len int
}

// cachedRows is how many documents of the file are kept at hand, and cachedBytes how many bytes of them.
const (
	cachedRows  = 256
	cachedBytes = 4 << 20
	spanBytes   = 16
)

func (r *windowRows) reset() {
	r.docs, r.spans, r.cache, r.kept, r.end = nil, nil, nil, 0, 0
	r.held.empty()
	if r.file != nil {
		name := r.file.Name()
		_ = r.file.Close()
		_ = os.Remove(name) // gone already where that was possible
		r.file = nil
	}
}

func (r *windowRows) add(ctx context.Context, d bson.Doc) error {
	r.docs = append(r.docs, d.Clone())
	full, err := r.held.add(ctx, int64(len(d))+48)
	if err != nil || !full {
		return err
	}
	if !r.op.AllowDiskUse {
		return mongoerr.New(5643011, "Exceeded memory limit in DocumentSourceSetWindowFields, used %d bytes but max allowed is %d", r.held.bytes, r.op.maxMemory())
	}
	if err := r.op.spilling("$setWindowFields"); err != nil {
		return err
	}
	return r.spill()
}

// Shrink implements Shrinker.
func (r *windowRows) Shrink() error {
	if r.held.bytes < minShrink || len(r.docs) == 0 {
		return nil
	}
	r.op.spilled()
	return r.spill()
}

// spill moves all documents to the file. Where they lie there is still to be kept.
func (r *windowRows) spill() error {
	if r.file == nil {
		f, err := os.CreateTemp(r.op.TempDir, "spill-*")
		if err != nil {
			return fmt.Errorf("making a temporary file for a stage: %w", err)
		}
		_ = os.Remove(f.Name()) // where an open file cannot be removed, reset does it
		r.file, r.cache = f, map[int]bson.Doc{}
	}
	w := bufio.NewWriterSize(io.NewOffsetWriter(r.file, r.end), 64<<10)
	for _, d := range r.docs {
		if _, err := w.Write(d); err != nil {
			return fmt.Errorf("writing a stage's temporary file: %w", err)
		}
		r.spans = append(r.spans, span{r.end, len(d)})
		r.end += int64(len(d))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing a stage's temporary file: %w", err)
	}
	r.docs = nil
	r.held.empty()
	r.held.charge(int64(len(r.spans)) * spanBytes)
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
	if r.kept += len(d); len(r.cache) >= cachedRows || r.kept > cachedBytes {
		clear(r.cache)
		r.kept = len(d)
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
