package pipeline

import "github.com/ebbdb/ebb/internal/bson"

// handGroupOn marks the $group that MongoDB runs as a part of the plan, in front of stages that it does not run there: the
// last of those behind nothing but $match, $sort, $skip and $limit, with something behind it.
func (p *Pipeline) handGroupOn() {
	if g := p.plannedGroup(); g != nil {
		g.HandedOn = true
	}
}

// keepGroup takes the mark away.
func (p *Pipeline) keepGroup() {
	if g := p.plannedGroup(); g != nil {
		g.HandedOn = false
	}
}

func (p *Pipeline) plannedGroup() *Group {
	if p.NS.Coll == "" {
		return nil
	}
	var last *Group
	for _, s := range p.Stages {
		switch s := s.(type) {
		case *Match, *Sort, *Skip, *Limit:
			if last != nil {
				return last
			}
		case *Group:
			if !s.planned() {
				return last
			}
			last = s
		default:
			return last
		}
	}
	return nil
}

func (g *Group) planned() bool {
	for _, f := range g.Fields {
		switch f.Spec.Op.Name {
		case "$accumulator", "$median", "$percentile":
			return false
		}
	}
	return true
}

// HandOn is what becomes of a value, accumulated by the operator named, on the way between MongoDB's engines: MinKey and
// MaxKey come out as {"": MinKey} and {"": MaxKey}, Code as a string, and so do those in the arrays that $push and $addToSet
// make.
func HandOn(v bson.Value, operator string) bson.Value {
	switch v.Type {
	case bson.TypeMinKey, bson.TypeMaxKey:
		return bson.Build().Value("", v).Doc().Value()
	case bson.TypeCode:
		v.Type = bson.TypeString
	case bson.TypeArray:
		if operator == "$push" || operator == "$addToSet" {
			return handArrayOn(v)
		}
	}
	return v
}

func handArrayOn(v bson.Value) bson.Value {
	changed := false
	var out []bson.Value
	for it := v.Doc().Iter(); it.Next(); {
		e := HandOn(it.Value(), "")
		changed = changed || e.Type != it.Value().Type
		out = append(out, e)
	}
	if !changed {
		return v
	}
	return bson.ArrayOf(out...)
}
