package exec

import (
	"context"
	"unsafe"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/spill"
)

// runMerge takes the documents of several sorted runs in order; equal ones come from the earlier run first.
type runMerge struct {
	stage *sortStage
	rows  *spill.Merge[runRow]
	begun bool  // the top of rows has been taken
	left  int64 // of the limit; -1 without one
}

type runRow struct {
	doc  []byte
	meta []byte
	key  []bson.Value
}

func (s *sortStage) openMerge(runs []*spill.Run) (*runMerge, error) {
	m := &runMerge{stage: s, left: -1}
	if s.limit > 0 {
		m.left = s.limit
	}
	var err error
	m.rows, err = spill.Open(runs, s.readRow, func(a, b *runRow) int { return s.order.Compare(a.key, b.key) })
	return m, err
}

func (s *sortStage) readRow(r *spill.Run, row *runRow) error {
	if err := r.Read(&row.doc, &row.meta); err != nil {
		return err
	}
	var meta Metadata
	if len(row.meta) > 0 {
		meta.from(row.meta)
	}
	var err error
	row.key, err = s.order.Key(row.key[:0], row.doc, meta.Get)
	return err
}

// take is the next document, good until the next call; nil at the end.
func (m *runMerge) take() (*runRow, error) {
	if m.begun && m.rows.Top() != nil {
		if err := m.rows.Next(); err != nil {
			return nil, err
		}
	}
	m.begun = true
	m.stage.turns.step()
	if m.left == 0 {
		return nil, nil
	}
	if m.left > 0 {
		m.left--
	}
	return m.rows.Top(), nil
}

func (m *runMerge) next(ctx context.Context) (bson.Doc, error) {
	if err := interrupted(ctx); err != nil {
		return nil, err
	}
	row, err := m.take()
	if err != nil || row == nil {
		return nil, err
	}
	meta := row.meta
	if len(meta) == 0 {
		meta = nil
	}
	m.stage.op.restore(meta)
	return row.doc, nil
}

// offsetIn is where part lies in whole, or -1 when it lies elsewhere.
func offsetIn(whole, part []byte) int {
	w, p := uintptr(unsafe.Pointer(unsafe.SliceData(whole))), uintptr(unsafe.Pointer(unsafe.SliceData(part)))
	if p < w || p+uintptr(len(part)) > w+uintptr(len(whole)) {
		return -1
	}
	return int(p - w)
}
