package exec

import (
	"bytes"
	"container/heap"
	"context"
	"io"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
)

// spill writes all groups as a run sorted by key, each as its key and an array of its id and what its folds hold.
func (s *groupStage) spill() error {
	if err := s.op.spilling("$group"); err != nil {
		return err
	}
	slices.SortFunc(s.order, func(a, b *group) int { return strings.Compare(a.key, b.key) })
	r, err := newRun(s.op.TempDir)
	if err != nil {
		return err
	}
	s.runs = append(s.runs, r)
	for _, g := range s.order {
		if err := r.write([]byte(g.key), g.partial()); err != nil {
			return err
		}
	}
	if err := r.rewind(); err != nil {
		return err
	}
	s.order, s.held = nil, 0
	if s.groups != nil {
		s.groups = map[string]*group{}
	}
	if len(s.runs) < maxRuns {
		return nil
	}
	return s.mergeRuns()
}

func (g *group) partial() bson.Doc {
	parts := make([]bson.Value, 1, len(g.folds)+1)
	parts[0] = g.id
	for _, f := range g.folds {
		parts = append(parts, f.Partial())
	}
	return bson.ArrayOf(parts...).Doc()
}

// mergeRuns makes one run of all.
func (s *groupStage) mergeRuns() error {
	m, err := s.openMerge(s.runs)
	if err != nil {
		return err
	}
	out, err := newRun(s.op.TempDir)
	if err != nil {
		return err
	}
	for {
		g, err := m.take()
		if err == nil && g == nil {
			break
		}
		if err == nil {
			err = out.write([]byte(g.key), g.partial())
		}
		if err != nil {
			_ = out.close()
			return err
		}
	}
	for _, r := range s.runs {
		_ = r.close()
	}
	s.runs = append(s.runs[:0], out)
	return out.rewind()
}

// groupMerge takes the groups of several runs, each put together from all runs that hold a part of it, earliest first.
type groupMerge struct {
	stage *groupStage
	heads []*groupHead
}

type groupHead struct {
	run   *run
	order int
	key   []byte
	parts []byte
}

func (s *groupStage) openMerge(runs []*run) (*groupMerge, error) {
	m := &groupMerge{stage: s}
	for i, r := range runs {
		h := &groupHead{run: r, order: i}
		switch err := r.read(&h.key, &h.parts); err {
		case nil:
			m.heads = append(m.heads, h)
		case io.EOF:
		default:
			return nil, err
		}
	}
	heap.Init(m)
	return m, nil
}

func (m *groupMerge) next(ctx context.Context) (*group, error) {
	if err := interrupted(ctx); err != nil {
		return nil, err
	}
	return m.take()
}

func (m *groupMerge) take() (*group, error) {
	var g *group
	for len(m.heads) > 0 {
		h := m.heads[0]
		if g != nil && g.key != string(h.key) {
			break
		}
		parts := bson.Doc(h.parts).Values(nil)
		if g == nil {
			var err error
			if g, err = m.stage.newGroup(string(h.key), parts[0].Clone()); err != nil {
				return nil, err
			}
		}
		for i, f := range g.folds {
			if err := f.Merge(parts[i+1]); err != nil {
				return nil, err
			}
		}
		switch err := h.run.read(&h.key, &h.parts); err {
		case nil:
			heap.Fix(m, 0)
		case io.EOF:
			heap.Pop(m)
		default:
			return nil, err
		}
	}
	return g, nil
}

func (m *groupMerge) Len() int { return len(m.heads) }
func (m *groupMerge) Less(i, j int) bool {
	if c := bytes.Compare(m.heads[i].key, m.heads[j].key); c != 0 {
		return c < 0
	}
	return m.heads[i].order < m.heads[j].order
}
func (m *groupMerge) Swap(i, j int) { m.heads[i], m.heads[j] = m.heads[j], m.heads[i] }
func (m *groupMerge) Push(x any)    { m.heads = append(m.heads, x.(*groupHead)) }
func (m *groupMerge) Pop() any {
	h := m.heads[len(m.heads)-1]
	m.heads = m.heads[:len(m.heads)-1]
	return h
}
