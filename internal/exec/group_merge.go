package exec

import (
	"bytes"
	"context"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/ordering"
	"github.com/ebbdb/ebb/internal/spill"
)

// spill writes all groups as a run sorted by key, each as its key and an array of its id and what its folds hold.
func (s *groupStage) spill() error {
	if s.groups != nil {
		s.groups = map[string]*group{} // what has been written may go while the rest is
	}
	if err := ordering.Any(s.order, func(a, b *group) int { return strings.Compare(a.key, b.key) }, s.op.Interrupted); err != nil {
		return err
	}
	r, err := spill.Make(s.op.TempDir, func(r *spill.Run) error {
		for i, g := range s.order {
			s.turns.step()
			if err := r.Write([]byte(g.key), g.partial()); err != nil {
				return err
			}
			s.order[i] = nil // its part has been copied, and much may be left
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.forget()
	return s.runs.add(r, s.mergeRuns)
}

func (g *group) partial() bson.Doc {
	parts := make([]bson.Value, 1, len(g.folds)+1)
	parts[0] = g.id
	for _, f := range g.folds {
		parts = append(parts, f.Partial())
	}
	return bson.ArrayOf(parts...).Doc()
}

// mergeRuns makes one run of several.
func (s *groupStage) mergeRuns(runs []*spill.Run) (*spill.Run, error) {
	m, err := s.openMerge(runs)
	if err != nil {
		return nil, err
	}
	return spill.Make(s.op.TempDir, func(out *spill.Run) error {
		for {
			g, err := m.take()
			if err != nil || g == nil {
				return err
			}
			if err := out.Write([]byte(g.key), g.partial()); err != nil {
				return err
			}
		}
	})
}

// groupMerge takes the groups of several runs, each put together from all runs that hold a part of it, earliest first.
type groupMerge struct {
	stage *groupStage
	parts *spill.Merge[groupPart]
}

type groupPart struct {
	key []byte
	doc []byte // what partial made
}

func (s *groupStage) openMerge(runs []*spill.Run) (*groupMerge, error) {
	parts, err := spill.Open(runs,
		func(r *spill.Run, p *groupPart) error { return r.Read(&p.key, &p.doc) },
		func(a, b *groupPart) int { return bytes.Compare(a.key, b.key) })
	return &groupMerge{s, parts}, err
}

func (m *groupMerge) next(ctx context.Context) (*group, error) {
	if err := interrupted(ctx); err != nil {
		return nil, err
	}
	return m.take()
}

// What is put together is held until the next call.
func (m *groupMerge) take() (*group, error) {
	var g *group
	held := &m.stage.held
	held.empty()
	m.stage.turns.step()
	for p := m.parts.Top(); p != nil && (g == nil || g.key == string(p.key)); p = m.parts.Top() {
		parts := bson.Doc(p.doc).Values(nil)
		if g == nil {
			var err error
			if g, err = m.stage.newGroup(string(p.key), parts[0].Clone()); err != nil {
				return nil, err
			}
		}
		for i, f := range g.folds {
			before := f.Size()
			if err := f.Merge(parts[i+1]); err != nil {
				return nil, err
			}
			if grown := int64(f.Size() - before); grown > 0 {
				if err := held.wait(m.stage.op.callContext(), grown); err != nil {
					return nil, err
				}
			}
		}
		if err := m.parts.Next(); err != nil {
			return nil, err
		}
	}
	return g, nil
}
