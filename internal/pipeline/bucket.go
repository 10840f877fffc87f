package pipeline

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// parseBucket makes a $group of a $switch over the boundaries and a $sort by _id.
func parseBucket(p *parsing, arg bson.Value) ([]Stage, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(40201, "Argument to $bucket stage must be an object, but found type: %s.", arg.Type)
	}
	b := bucket{}
	for it := arg.Doc().Iter(); it.Next(); {
		if err := b.read(p, it.Key(), it.Value()); err != nil {
			return nil, err
		}
	}
	if b.groupBy.IsMissing() || b.boundaries == nil {
		return nil, mongoerr.New(40198, "$bucket requires 'groupBy' and 'boundaries' to be specified.")
	}
	if err := b.checkDefault(p); err != nil {
		return nil, err
	}
	group, err := parseGroup(p, b.group())
	if err != nil {
		return nil, err
	}
	sort, err := parseSort(p, bson.Build().Int32("_id", 1).Doc().Value())
	if err != nil {
		return nil, err
	}
	return append(group, sort...), nil
}

type bucket struct {
	groupBy    bson.Value
	boundaries []bson.Value
	def        bson.Value
	output     bson.Value
}

func (b *bucket) read(p *parsing, name string, v bson.Value) error {
	switch name {
	case "groupBy":
		if !isExpression(v) {
			return mongoerr.New(40202, "The $bucket 'groupBy' field must be defined as a $-prefixed path or an expression, but found: %s.", v)
		}
		b.groupBy = v
	case "boundaries":
		return b.readBoundaries(p, v)
	case "default":
		b.def = v
	case "output":
		if v.Type != bson.TypeObject {
			return mongoerr.New(40196, "The $bucket 'output' field must be an object, but found type: %s.", v.Type)
		}
		b.output = v
	default:
		return mongoerr.New(40197, "Unrecognized option to $bucket: %s.", name)
	}
	return nil
}

// isExpression says whether v is a $-prefixed path or an object: what groupBy may be.
func isExpression(v bson.Value) bool {
	return v.Type == bson.TypeObject || v.Type == bson.TypeString && v.Str() != "" && v.Str()[0] == '$'
}

func (b *bucket) readBoundaries(p *parsing, v bson.Value) error {
	if v.Type != bson.TypeArray {
		return mongoerr.New(40200, "The $bucket 'boundaries' field must be an array, but found type: %s.", v.Type)
	}
	b.boundaries = []bson.Value{}
	for it := v.Doc().Iter(); it.Next(); {
		e, err := p.Exprs.Parse(it.Value(), p.Scope)
		if err != nil {
			return err
		}
		c, constant := expr.Constant(e)
		if !constant {
			return mongoerr.New(40191, "The $bucket 'boundaries' field must be an array of constant values, but found value: %s.", it.Value())
		}
		b.boundaries = append(b.boundaries, c)
	}
	if len(b.boundaries) < 2 {
		return mongoerr.New(40192, "The $bucket 'boundaries' field must have at least 2 values, but found %d value(s).", len(b.boundaries))
	}
	for i, hi := range b.boundaries[1:] {
		lo := b.boundaries[i]
		if lo.Type.Class() != hi.Type.Class() {
			return mongoerr.New(40193, "All values in the the 'boundaries' option to $bucket must have the same type. Found conflicting types %s and %s.",
				lo.Type, hi.Type)
		}
		if p.compare(lo, hi) >= 0 {
			return mongoerr.New(40194, "The 'boundaries' option to $bucket must be sorted, but elements %d and %d are not in ascending order (%s is not less than %s).",
				i, i+1, lo, hi)
		}
	}
	return nil
}

func (p *parsing) compare(a, b bson.Value) int {
	if p.Collation == nil {
		return bson.Compare(a, b)
	}
	return bson.CompareWith(a, b, p.Collation)
}

func (b *bucket) checkDefault(p *parsing) error {
	if b.def.IsMissing() {
		return nil
	}
	e, err := p.Exprs.Parse(b.def, p.Scope)
	if err != nil {
		return err
	}
	c, constant := expr.Constant(e)
	if !constant {
		return mongoerr.New(40195, "The $bucket 'default' field must be a constant expression, but found: %s.", b.def)
	}
	b.def = c
	low, high := b.boundaries[0], b.boundaries[len(b.boundaries)-1]
	if p.compare(c, low) >= 0 && p.compare(c, high) < 0 {
		return mongoerr.New(40199, "The $bucket 'default' field must be less than the lowest boundary or greater than or equal to the highest boundary.")
	}
	return nil
}

// group is the $group that b stands for.
func (b *bucket) group() bson.Value {
	w := bson.Build().Object("_id").Object("$switch").Array("branches")
	for i := range b.boundaries[1:] {
		w.Object(bson.IndexKey(i)).Object("case").Array("$and")
		w.Object("0").Array("$gte").Value("0", b.groupBy).Object("1").Value("$literal", b.boundaries[i]).End().End().End()
		w.Object("1").Array("$lt").Value("0", b.groupBy).Object("1").Value("$literal", b.boundaries[i+1]).End().End().End()
		w.End().End().Object("then").Value("$literal", b.boundaries[i]).End().End()
	}
	w.End()
	if !b.def.IsMissing() {
		w.Object("default").Value("$literal", b.def).End()
	}
	w.End().End()
	if b.output.IsMissing() {
		w.Object("count").Int32("$sum", 1).End()
	} else {
		w.Fields(b.output.Doc())
	}
	return w.Doc().Value()
}
