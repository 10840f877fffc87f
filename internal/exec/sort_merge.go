package exec

import (
	"container/heap"
	"context"
	"io"
	"unsafe"

	"github.com/ebbdb/ebb/internal/bson"
)

// runMerge takes the documents of several sorted runs in order; equal ones come from the earlier run first.
type runMerge struct {
	stage *sortStage
	heads []*runHead
	taken *runHead
	left  int64 // of the limit; -1 without one
}

type runHead struct {
	run   *run
	order int
	doc   []byte
	meta  []byte
	key   []bson.Value
}

func (s *sortStage) openMerge(runs []*run) (*runMerge, error) {
	m := &runMerge{stage: s, left: -1}
	if s.limit > 0 {
		m.left = s.limit
	}
	for i, r := range runs {
		h := &runHead{run: r, order: i}
		ok, err := m.advance(h)
		if err != nil {
			return nil, err
		}
		if ok {
			m.heads = append(m.heads, h)
		}
	}
	heap.Init(m)
	return m, nil
}

func (m *runMerge) advance(h *runHead) (bool, error) {
	if err := h.run.read(&h.doc, &h.meta); err != nil {
		if err == io.EOF {
			return false, nil
		}
		return false, err
	}
	var meta Metadata
	if len(h.meta) > 0 {
		meta.from(h.meta)
	}
	var err error
	h.key, err = m.stage.order.Key(h.key[:0], h.doc, meta.Get)
	return true, err
}

// take is the next document; it is good until the next call.
func (m *runMerge) take() (doc, meta []byte, err error) {
	if m.taken != nil {
		ok, err := m.advance(m.taken)
		if err != nil {
			return nil, nil, err
		}
		if ok {
			heap.Fix(m, 0)
		} else {
			heap.Pop(m)
		}
		m.taken = nil
	}
	if len(m.heads) == 0 || m.left == 0 {
		return nil, nil, io.EOF
	}
	if m.left > 0 {
		m.left--
	}
	m.taken = m.heads[0]
	return m.taken.doc, m.taken.meta, nil
}

func (m *runMerge) next(ctx context.Context) (bson.Doc, error) {
	if err := interrupted(ctx); err != nil {
		return nil, err
	}
	doc, meta, err := m.take()
	if err == io.EOF {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(meta) == 0 {
		meta = nil
	}
	m.stage.op.restore(meta)
	return doc, nil
}

// The heap of heads, first in order on top.

func (m *runMerge) Len() int { return len(m.heads) }
func (m *runMerge) Less(i, j int) bool {
	a, b := m.heads[i], m.heads[j]
	if c := m.stage.order.Compare(a.key, b.key); c != 0 {
		return c < 0
	}
	return a.order < b.order
}
func (m *runMerge) Swap(i, j int) { m.heads[i], m.heads[j] = m.heads[j], m.heads[i] }
func (m *runMerge) Push(x any)    { m.heads = append(m.heads, x.(*runHead)) }
func (m *runMerge) Pop() any {
	h := m.heads[len(m.heads)-1]
	m.heads = m.heads[:len(m.heads)-1]
	return h
}

// offsetIn is where part lies in whole, or -1 when it lies elsewhere.
func offsetIn(whole, part []byte) int {
	w, p := uintptr(unsafe.Pointer(unsafe.SliceData(whole))), uintptr(unsafe.Pointer(unsafe.SliceData(part)))
	if p < w || p+uintptr(len(part)) > w+uintptr(len(whole)) {
		return -1
	}
	return int(p - w)
}
