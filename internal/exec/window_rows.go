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

	rows  []windowRow
	held  holding
	file  *os.File
	spans []span // of the rows in the file, which come first
	end   int64
	cache map[int]windowRow // of the rows read from it last
	kept  int               // bytes in cache

	keyA, keyB []bson.Value
	steps      int // how many rows were looked at
}

// windowRow is a document and its metadata, nil without.
type windowRow struct{ doc, meta bson.Doc }

func (r windowRow) bytes() int { return len(r.doc) + len(r.meta) }

// span is where a row lies in the file: the document, and behind it the metadata.
type span struct {
	at        int64
	doc, meta uint32
}

// cachedRows is how many documents of the file are kept at hand, and cachedBytes how many bytes of them.
const (
	cachedRows  = 256
	cachedBytes = 4 << 20
	spanBytes   = 16
	rowBytes    = 72 // beside those of the document and its metadata
)

func (r *windowRows) reset() {
	r.rows, r.spans, r.cache, r.kept, r.end = nil, nil, nil, 0, 0
	r.held.empty()
	if r.file != nil {
		name := r.file.Name()
		_ = r.file.Close()
		_ = os.Remove(name) // gone already where that was possible
		r.file = nil
	}
}

// add appends d, which has the metadata at hand.
func (r *windowRows) add(ctx context.Context, d bson.Doc) error {
	row := windowRow{d.Clone(), r.op.Meta.doc()}
	r.rows = append(r.rows, row)
	full, err := r.held.add(ctx, int64(row.bytes())+rowBytes)
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
	if r.held.bytes < minShrink || len(r.rows) == 0 {
		return nil
	}
	r.op.spilled()
	return r.spill()
}

// spill moves all rows to the file. Where they lie there is still to be kept.
func (r *windowRows) spill() error {
	if r.file == nil {
		f, err := os.CreateTemp(r.op.TempDir, "spill-*")
		if err != nil {
			return fmt.Errorf("making a temporary file for a stage: %w", err)
		}
		_ = os.Remove(f.Name()) // where an open file cannot be removed, reset does it
		r.file, r.cache = f, map[int]windowRow{}
	}
	w := bufio.NewWriterSize(io.NewOffsetWriter(r.file, r.end), 64<<10)
	for _, row := range r.rows {
		_, err := w.Write(row.doc)
		if err == nil {
			_, err = w.Write(row.meta)
		}
		if err != nil {
			return fmt.Errorf("writing a stage's temporary file: %w", err)
		}
		r.spans = append(r.spans, span{r.end, uint32(len(row.doc)), uint32(len(row.meta))})
		r.end += int64(row.bytes())
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing a stage's temporary file: %w", err)
	}
	r.rows = nil
	r.held.empty()
	r.held.charge(int64(len(r.spans)) * spanBytes)
	return nil
}

// Len implements accumulator.Rows.
func (r *windowRows) Len() int { return len(r.spans) + len(r.rows) }

// row is the i-th. A window function may look at all of them for one document.
func (r *windowRows) row(i int) (windowRow, error) {
	if r.steps++; r.steps%stepsPerAsk == 0 {
		if err := r.op.Interrupted(); err != nil {
			return windowRow{}, err
		}
	}
	if i >= len(r.spans) {
		return r.rows[i-len(r.spans)], nil
	}
	if row, ok := r.cache[i]; ok {
		return row, nil
	}
	row, err := r.read(r.spans[i])
	if err != nil {
		return row, fmt.Errorf("reading a stage's temporary file: %w", err)
	}
	if r.kept += row.bytes(); len(r.cache) >= cachedRows || r.kept > cachedBytes {
		clear(r.cache)
		r.kept = row.bytes()
	}
	r.cache[i] = row
	return row, nil
}

func (r *windowRows) read(at span) (windowRow, error) {
	b := make([]byte, at.doc+at.meta)
	_, err := r.file.ReadAt(b, at.at)
	row := windowRow{doc: b[:at.doc:at.doc]}
	if at.meta > 0 {
		row.meta = b[at.doc:]
	}
	return row, err
}

// stand makes document i's metadata that at hand.
func (r *windowRows) stand(i int) (bson.Doc, error) {
	row, err := r.row(i)
	if err == nil {
		r.op.restore(row.meta)
	}
	return row.doc, err
}

// Eval implements accumulator.Rows.
func (r *windowRows) Eval(i int, es []expr.Expr, dst []bson.Value) error {
	d, err := r.stand(i)
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
	row, err := r.row(i)
	if err != nil {
		return bson.Missing, err
	}
	return r.pattern.Parts[0].Path.Eval(row.doc), nil
}

// SameSort implements accumulator.Rows.
func (r *windowRows) SameSort(i, j int) (bool, error) {
	var err error
	if r.keyA, err = r.sortKey(r.keyA[:0], i); err != nil {
		return false, err
	}
	if r.keyB, err = r.sortKey(r.keyB[:0], j); err != nil {
		return false, err
	}
	same := r.pattern.Compare(r.keyA, r.keyB, r.op.collator()) == 0
	clear(r.keyA) // or they would keep the two documents
	clear(r.keyB)
	return same, nil
}

func (r *windowRows) sortKey(dst []bson.Value, i int) ([]bson.Value, error) {
	d, err := r.stand(i)
	if err != nil {
		return dst, err
	}
	return r.pattern.Key(dst, d, r.op.Meta.Get, r.op.collator(), r.op.Interrupted)
}
