package pipeline

import (
	"math"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/match"
)

// optimize rewrites what is always right and never slower:
//
//   - a $match, or what of it can, moves before stages that leave what it reads as it is, see moveMatches;
//   - a $skip and a $limit move before a $project or $addFields;
//   - two $match in a row become one;
//   - two $limit become the smaller, two $skip their sum;
//   - a $lookup takes over the $unwind of its result;
//   - a $sort learns how many documents the $limit and $skip behind it let through.
//
// Each step may take long where filters and stages are many, so ask, which may be nil, is called before it.
func (p *Pipeline) optimize(ask func() error) error {
	for changed := true; changed; {
		if ask != nil {
			if err := ask(); err != nil {
				return err
			}
		}
		changed = p.moveMatches() || p.moveCounts() || p.mergeMatches() || p.mergeCounts()
	}
	p.limitSorts()
	p.unwindLookups()
	p.handGroupOn()
	for _, s := range p.Stages {
		for _, sub := range subPipelines(s) {
			if err := sub.optimize(ask); err != nil {
				return err
			}
			if _, facet := s.(*Facet); facet { // its pipelines read no collection
				sub.keepGroup()
			}
		}
	}
	return nil
}

func subPipelines(s Stage) []*Pipeline {
	switch s := s.(type) {
	case *Lookup:
		if s.Pipeline != nil {
			return []*Pipeline{s.Pipeline}
		}
	case *UnionWith:
		return []*Pipeline{s.Pipeline}
	case *Facet:
		var out []*Pipeline
		for _, f := range s.Fields {
			out = append(out, f.Pipeline)
		}
		return out
	}
	return nil
}

// mergeMatches makes one of the first $match and those that follow it.
func (p *Pipeline) mergeMatches() bool {
	for i := 1; i < len(p.Stages); i++ {
		first, ok := p.Stages[i-1].(*Match)
		if !ok {
			continue
		}
		specs, nodes, end := conjuncts(first.spec.Doc()), match.Conjuncts(first.Filter.Root), i
		for ; end < len(p.Stages); end++ {
			next, ok := p.Stages[end].(*Match)
			if !ok {
				break
			}
			specs, nodes = append(specs, conjuncts(next.spec.Doc())...), append(nodes, match.Conjuncts(next.Filter.Root)...)
		}
		if end == i {
			continue
		}
		all := *first.Filter
		all.Root, all.Source = match.AllOf(nodes), bson.Build().Value("$and", bson.ArrayOf(specs...)).Doc()
		p.Stages[i-1] = &Match{written{"$match", all.Source.Value()}, &all}
		p.Stages = append(p.Stages[:i], p.Stages[end:]...)
		return true
	}
	return false
}

// moveCounts swaps a $skip or $limit with a stage in front of it that makes one document of one.
func (p *Pipeline) moveCounts() bool {
	for i := 1; i < len(p.Stages); i++ {
		if _, ok := p.Stages[i-1].(*Project); !ok {
			continue
		}
		switch p.Stages[i].(type) {
		case *Skip, *Limit:
			p.Stages[i-1], p.Stages[i] = p.Stages[i], p.Stages[i-1]
			return true
		}
	}
	return false
}

func (p *Pipeline) mergeCounts() bool {
	for i := 1; i < len(p.Stages); i++ {
		switch a := p.Stages[i-1].(type) {
		case *Limit:
			if b, ok := p.Stages[i].(*Limit); ok {
				p.replaceTwo(i-1, newLimit(min(a.N, b.N)))
				return true
			}
		case *Skip:
			if b, ok := p.Stages[i].(*Skip); ok && a.N <= math.MaxInt64-b.N {
				p.replaceTwo(i-1, newSkip(a.N+b.N))
				return true
			}
		}
	}
	return false
}

// conjuncts are the filters that a filter joins with $and, or the filter itself.
func conjuncts(filter bson.Doc) []bson.Value {
	if and := filter.Lookup("$and"); and.Type == bson.TypeArray && filter.Count() == 1 {
		return and.Doc().Values(nil)
	}
	return []bson.Value{filter.Value()}
}

func (p *Pipeline) replaceTwo(i int, s Stage) {
	p.Stages[i] = s
	p.Stages = append(p.Stages[:i+1], p.Stages[i+2:]...)
}

func (p *Pipeline) limitSorts() {
	for i, s := range p.Stages {
		sort, ok := s.(*Sort)
		if !ok {
			continue
		}
		skipped := int64(0)
		for _, next := range p.Stages[i+1:] {
			if skip, ok := next.(*Skip); ok && skipped <= math.MaxInt64-skip.N {
				skipped += skip.N
				continue
			}
			if limit, ok := next.(*Limit); ok && skipped <= math.MaxInt64-limit.N {
				limited := *sort
				limited.Limit = skipped + limit.N
				p.Stages[i] = &limited
			}
			break
		}
	}
}

// unwindLookups lets each $lookup do the $unwind of its result that stands right behind it, so that the array is never made.
func (p *Pipeline) unwindLookups() {
	for i := 1; i < len(p.Stages); i++ {
		l, ok := p.Stages[i-1].(*Lookup)
		u, ok2 := p.Stages[i].(*Unwind)
		if ok && ok2 && l.Unwind == nil && u.Path.String() == l.As.String() {
			both := *l
			both.Unwind = u
			p.replaceTwo(i-1, &both)
		}
	}
}
