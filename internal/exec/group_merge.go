package exec

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/spill"
)

// spill writes all groups as a run sorted by key, each as its key and an array of its id and what its folds hold.
func (s *groupStage) spill() error {
	if err := s.op.spilling("$group"); err != nil {
		return err
	}
	slices.SortFunc(s.order, func(a, b *group) int { return strings.Compare(a.key, b.key) })
	r, err := spill.New(s.op.TempDir)
	if err != nil {
		return err
	}
	s.runs = append(s.runs, r)
	for _, g := range s.order {
		if err := r.Write([]byte(g.key), g.partial()); err != nil {
			return err
		}
	}
	if err := r.Rewind(); err != nil {
		return err
	}
	s.order, s.held = nil, 0
	if s.groups != nil {
		s.groups = map[string]*group{}
	}
	if len(s.runs) < spill.MaxRuns {
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
	out, err := spill.New(s.op.TempDir)
	if err != nil {
		return err
	}
	for {
		g, err := m.take()
		if err == nil && g == nil {
			break
		}
		if err == nil {
			err = out.Write([]byte(g.key), g.partial())
		}
		if err != nil {
			out.Close()
			return err
		}
	}
	spill.Close(s.runs)
	s.runs = append(s.runs[:0], out)
	return out.Rewind()
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

func (m *groupMerge) take() (*group, error) {
	var g *group
	for p := m.parts.Top(); p != nil && (g == nil || g.key == string(p.key)); p = m.parts.Top() {
		parts := bson.Doc(p.doc).Values(nil)
		if g == nil {
			var err error
			if g, err = m.stage.newGroup(string(p.key), parts[0].Clone()); err != nil {
				return nil, err
			}
		}
		for i, f := range g.folds {
			if err := f.Merge(parts[i+1]); err != nil {
				return nil, err
			}
		}
		if err := m.parts.Next(); err != nil {
			return nil, err
		}
	}
	return g, nil
}
