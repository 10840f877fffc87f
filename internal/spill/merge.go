package spill

import (
	"container/heap"
	"io"
)

// Merge reads several runs as one. A Record is what is read at once and compared: of those that are equal that of the
// earlier run comes first.
type Merge[Record any] struct {
	heads   heads[Record]
	advance func(*Run, *Record) error
}

// heads is a heap of the runs that are not at their end, each with its next record.
type heads[Record any] struct {
	list    []*head[Record]
	compare func(a, b *Record) int
}

type head[Record any] struct {
	run    *Run
	place  int // among the runs
	record Record
}

// Open begins to read runs, which are rewound. advance reads a run's next record into what holds the last one, and returns
// io.EOF at its end.
func Open[Record any](runs []*Run, advance func(*Run, *Record) error, compare func(a, b *Record) int) (*Merge[Record], error) {
	m := &Merge[Record]{heads: heads[Record]{compare: compare}, advance: advance}
	for i, r := range runs {
		h := &head[Record]{run: r, place: i}
		switch err := advance(r, &h.record); err {
		case nil:
			m.heads.list = append(m.heads.list, h)
		case io.EOF:
		default:
			return nil, err
		}
	}
	heap.Init(&m.heads)
	return m, nil
}

// Top is the first of the records that are left, good until Next; nil at the end.
func (m *Merge[Record]) Top() *Record {
	if len(m.heads.list) == 0 {
		return nil
	}
	return &m.heads.list[0].record
}

// Next leaves Top behind.
func (m *Merge[Record]) Next() error {
	top := m.heads.list[0]
	switch err := m.advance(top.run, &top.record); err {
	case nil:
		heap.Fix(&m.heads, 0)
	case io.EOF:
		heap.Pop(&m.heads)
	default:
		return err
	}
	return nil
}

// Len, Less, Swap, Push and Pop are heap.Interface's.
func (h *heads[Record]) Len() int { return len(h.list) }

func (h *heads[Record]) Less(i, j int) bool {
	a, b := h.list[i], h.list[j]
	if c := h.compare(&a.record, &b.record); c != 0 {
		return c < 0
	}
	return a.place < b.place
}

func (h *heads[Record]) Swap(i, j int) { h.list[i], h.list[j] = h.list[j], h.list[i] }
func (h *heads[Record]) Push(x any)    { h.list = append(h.list, x.(*head[Record])) }

func (h *heads[Record]) Pop() any {
	last := h.list[len(h.list)-1]
	h.list = h.list[:len(h.list)-1]
	return last
}
