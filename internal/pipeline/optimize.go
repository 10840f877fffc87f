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
func (p *Pipeline) optimize() {
	for changed := true; changed; {
		changed = p.moveMatches() || p.moveCounts() || p.mergeMatches() || p.mergeCounts()
	}
	p.limitSorts()
	p.unwindLookups()
	p.handGroupOn()
	for _, s := range p.Stages {
		for _, sub := range subPipelines(s) {
			sub.optimize()
			if _, facet := s.(*Facet); facet { // its pipelines read no collection
				sub.keepGroup()
			}
		}
	}
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

// sameRoot compares first components, which also covers what positions in arrays make of paths.
func sameRoot(a, b string) bool {
	i, j := 0, 0
	for i < len(a) && a[i] != '.' {
		i++
	}
	for j < len(b) && b[j] != '.' {
		j++
	}
	return a[:i] == b[:j]
}

func (p *Pipeline) mergeMatches() bool {
	for i := 1; i < len(p.Stages); i++ {
		a, ok := p.Stages[i-1].(*Match)
		b, ok2 := p.Stages[i].(*Match)
		if !ok || !ok2 {
			continue
		}
		spec := bson.Build().Value("$and", bson.ArrayOf(append(conjuncts(a.spec.Doc()), conjuncts(b.spec.Doc())...)...)).Doc()
		both := *a.Filter
		both.Root, both.Source = match.AllOf(append(match.Conjuncts(a.Filter.Root), match.Conjuncts(b.Filter.Root)...)), spec
		p.Stages[i-1] = &Match{written{"$match", spec.Value()}, &both}
		p.Stages = append(p.Stages[:i], p.Stages[i+1:]...)
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
