package exec

import (
	"context"
	"errors"

	"github.com/ebbdb/ebb/internal/accumulator"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/pipeline"
)

// groupStage is $group. Groups come out in the order in which they were first seen. Past its memory it writes all groups
// to a file, sorted by the bytes of their keys, starts over, and merges the files in the end.
type groupStage struct {
	op      *Op
	fields  []pipeline.GroupField
	id      expr.Expr
	lacking bson.Value
	handed  bool // on to stages of another engine in MongoDB
	in      Iterator
	keys    bson.StringKeyer

	groups map[string]*group
	order  []*group
	held   holding
	key    []byte
	args   []bson.Value
	loaded bool
	next   int
	runs   runs
	turns  *turns
	merge  *groupMerge
	out    []byte
}

// group is one group under way.
type group struct {
	key   string
	id    bson.Value
	folds []accumulator.Fold
	size  int64
}

// groupOverhead is about what a group takes beside its key, id and folds.
const groupOverhead = 200

func newGroup(op *Op, s *pipeline.Group, in Iterator) Iterator {
	n := 1
	for _, f := range s.Fields {
		n = max(n, len(f.Spec.Args))
	}
	g := &groupStage{op: op, fields: s.Fields, id: s.ID, lacking: s.Lacking, handed: s.HandedOn, in: in, keys: op.keys(), groups: map[string]*group{}, args: make([]bson.Value, n), held: holding{op: op}, turns: op.turns()}
	op.holds(g)
	return g
}

func (s *groupStage) Next(ctx context.Context) (bson.Doc, error) {
	if !s.loaded {
		if err := s.load(ctx); err != nil {
			return nil, err
		}
		s.loaded = true
	}
	if s.merge != nil {
		g, err := s.merge.next(ctx)
		if g == nil {
			return nil, err
		}
		return s.document(g)
	}
	if s.next == len(s.order) {
		s.forget()
		return nil, nil
	}
	g := s.order[s.next]
	s.order[s.next] = nil
	s.next++
	return s.document(g)
}

func (s *groupStage) load(ctx context.Context) error {
	if err := Each(ctx, s.in, func(d bson.Doc) error { return s.take(ctx, d) }); err != nil {
		return err
	}
	s.groups = nil
	s.key = reusable(s.key)
	clear(s.args) // which lie in the last document
	if s.runs.none() {
		return nil
	}
	if err := s.spill(); err != nil {
		return err
	}
	var err error
	s.merge, err = s.openMerge(s.runs.list)
	return err
}

// take puts a document into its group, and the groups into a file when there is no room for them.
func (s *groupStage) take(ctx context.Context, d bson.Doc) error {
	s.turns.step()
	grown, err := s.add(d)
	if err != nil {
		return err
	}
	if grown < 0 {
		s.held.drop(-grown)
		return nil
	}
	if full, err := s.held.add(ctx, grown); !full {
		return err
	}
	if err := s.op.spilling("$group"); err != nil {
		return err
	}
	return s.spill()
}

// forget lets go of what is in memory.
func (s *groupStage) forget() {
	s.order, s.next = nil, 0
	if s.groups != nil {
		s.groups = map[string]*group{}
	}
	s.held.empty()
}

// Shrink implements Shrinker: groups that have not been given go to a file.
func (s *groupStage) Shrink() error {
	if !s.loaded || s.merge != nil || s.held.bytes < minShrink {
		return nil
	}
	s.order, s.next = s.order[s.next:], 0
	if err := s.spill(); err != nil {
		return err
	}
	s.op.spilled()
	var err error
	s.merge, err = s.openMerge(s.runs.list)
	return err
}

// add takes a document and says by how many bytes the groups have grown.
func (s *groupStage) add(d bson.Doc) (grown int64, err error) {
	env := s.op.Env
	env.Reset()
	env.Root = d
	id, err := s.id.Eval(env)
	if err != nil {
		return 0, inGroup(err)
	}
	switch {
	case id.IsMissing():
		id = bson.Null
	case id.Type == bson.TypeObject && !s.lacking.IsMissing() && id.Doc().IsEmpty():
		id = s.lacking
	}
	s.key = bson.AppendCanonical(s.key[:0], id, s.keys)
	g := s.groups[string(s.key)]
	if g == nil {
		if g, err = s.start(id); err != nil {
			return 0, err
		}
		grown = g.size
		env.Root = d
	}
	for i := range s.fields {
		spec := s.fields[i].Spec
		args := s.args[:len(spec.Args)]
		for j, e := range spec.Args {
			if args[j], err = e.Eval(env); err != nil {
				return 0, inGroup(err)
			}
		}
		if !spec.Grows {
			if err := g.folds[i].Add(args); err != nil {
				return 0, err
			}
			continue
		}
		before := g.folds[i].Size()
		if err := g.folds[i].Add(args); err != nil {
			return 0, err
		}
		grown += int64(g.folds[i].Size() - before)
	}
	return grown, nil
}

// start makes the group of id, whose key is s.key.
func (s *groupStage) start(id bson.Value) (*group, error) {
	g, err := s.newGroup(string(s.key), id.Clone())
	if err != nil {
		return nil, err
	}
	s.groups[g.key] = g
	s.order = append(s.order, g)
	return g, nil
}

func (s *groupStage) newGroup(key string, id bson.Value) (*group, error) {
	g := &group{key: key, id: id, folds: make([]accumulator.Fold, len(s.fields))}
	g.size = int64(groupOverhead + len(key) + len(id.Data))
	env := s.op.Env
	for i := range s.fields {
		spec := s.fields[i].Spec
		init := bson.Missing
		var err error
		if spec.Init != nil {
			env.Root = bson.EmptyDoc
			if id.Type == bson.TypeObject {
				env.Root = id.Doc()
			}
			if init, err = spec.Init.Eval(env); err != nil {
				return nil, err
			}
		}
		if g.folds[i], err = spec.New(init); err != nil {
			return nil, err
		}
		g.size += int64(g.folds[i].Size())
	}
	return g, nil
}

// document is a group's output.
func (s *groupStage) document(g *group) (bson.Doc, error) {
	var b bson.Builder
	b.Reset(s.out[:0])
	b.Value("_id", s.handOn(g.id, ""))
	for i := range s.fields {
		v, err := g.folds[i].Value()
		if err != nil {
			return nil, err
		}
		if v.IsMissing() {
			v = bson.Null
		}
		b.Value(s.fields[i].Name, s.handOn(v, s.fields[i].Spec.Op.Name))
	}
	out := b.Bytes()
	s.out = reusable(out)
	s.op.Meta.Clear()
	return out, s.op.carry(s.op.callContext(), len(out))
}

func (s *groupStage) handOn(v bson.Value, operator string) bson.Value {
	if !s.handed {
		return v
	}
	return pipeline.HandOn(v, operator)
}

func (s *groupStage) Close() error {
	s.turns.rest()
	s.runs.close()
	s.forget()
	s.groups = nil
	return s.in.Close()
}

// inGroup gives a division by zero the code that it has in MongoDB's $group, where another engine divides.
func inGroup(err error) error {
	var e *mongoerr.Error
	if !errors.As(err, &e) {
		return err
	}
	switch {
	case e.Code == mongoerr.BadValue && e.Message == "can't $divide by zero":
		return mongoerr.New(4848401, "can't $divide by zero")
	case e.Code == 16610:
		return mongoerr.New(4848403, "can't $mod by zero")
	}
	return err
}
