package pipeline

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// BucketAuto is $bucketAuto.
type BucketAuto struct {
	written
	GroupBy expr.Expr
	Buckets int64
	Fields  []GroupField
	// Granularity rounds boundaries, nil without.
	Granularity *Granularity
}

func parseBucketAuto(p *parsing, arg bson.Value) ([]Stage, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(40240, "The argument to $bucketAuto must be an object, but found type: %s.", arg.Type)
	}
	b := &BucketAuto{written: written{"$bucketAuto", arg}}
	for it := arg.Doc().Iter(); it.Next(); {
		if err := b.read(p, it.Key(), it.Value()); err != nil {
			return nil, err
		}
	}
	if b.GroupBy == nil || b.Buckets == 0 {
		return nil, mongoerr.New(40246, "$bucketAuto requires 'groupBy' and 'buckets' to be specified")
	}
	if len(b.Fields) == 0 {
		count, err := p.groupField("count", bson.Build().Int32("$sum", 1).Doc().Value())
		if err != nil {
			return nil, err
		}
		b.Fields = []GroupField{count}
	}
	return one(b), nil
}

func (b *BucketAuto) read(p *parsing, name string, v bson.Value) (err error) {
	switch name {
	case "groupBy":
		if !isExpression(v) {
			return mongoerr.New(40239, "The $bucketAuto 'groupBy' field must be defined as a $-prefixed path or an expression object, but found: %s", v)
		}
		b.GroupBy, err = p.Exprs.Parse(v, p.Scope)
	case "buckets":
		err = b.readBuckets(v)
	case "output":
		err = b.readOutput(p, v)
	case "granularity":
		if v.Type != bson.TypeString {
			return mongoerr.New(40261, "The $bucketAuto 'granularity' field must be a string, but found type: %s.", v.Type)
		}
		b.Granularity, err = granularityNamed(v.Str())
	default:
		err = mongoerr.New(40245, "Unrecognized option to $bucketAuto: %s", name)
	}
	return err
}

func (b *BucketAuto) readBuckets(v bson.Value) error {
	if !v.IsNumber() {
		return mongoerr.New(40241, "The $bucketAuto 'buckets' field must be a numeric value, but found type: %s.", v.Type)
	}
	n, exact := v.AsInt64()
	if !exact || n > 1<<31-1 || n < -1<<31 {
		return mongoerr.New(40242, "The $bucketAuto 'buckets' field must be representable as a 32-bit integer, but found %s.", v)
	}
	if n <= 0 {
		return mongoerr.New(40243, "The $bucketAuto 'buckets' field must be greater than 0, but found: %d.", n)
	}
	b.Buckets = n
	return nil
}

func (b *BucketAuto) readOutput(p *parsing, v bson.Value) error {
	if v.Type != bson.TypeObject {
		return mongoerr.New(40244, "The $bucketAuto 'output' field must be an object, but found type: %s.", v.Type)
	}
	b.Fields = []GroupField{}
	for it := v.Doc().Iter(); it.Next(); {
		f, err := p.groupField(it.Key(), it.Value())
		if err != nil {
			return err
		}
		b.Fields = append(b.Fields, f)
	}
	return nil
}

func (b *BucketAuto) needs(d *Dependencies) bool {
	d.exprs(b.GroupBy)
	for _, f := range b.Fields {
		d.exprs(f.Spec.Exprs()...)
	}
	return false
}
