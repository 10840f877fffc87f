package index

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// hashedKeys adds the one key of an index with a hashed field. An array on the way to any of its fields, or as its value,
// cannot be held.
func (d *Definition) hashedKeys(doc bson.Doc, k *Keys) error {
	there := false
	k.values = k.values[:0]
	for i := range d.Fields {
		v, err := d.withoutArrays(doc, &d.Fields[i])
		if err != nil {
			return err
		}
		there = there || !v.IsMissing()
		if v.IsMissing() {
			v = bson.Null
		}
		if d.Fields[i].Kind == Hashed {
			v = d.Hash(v)
		}
		k.values = append(k.values, v)
	}
	if !there && d.Sparse {
		return nil
	}
	return k.add(d, k.values)
}

func (d *Definition) withoutArrays(doc bson.Doc, f *Field) (bson.Value, error) {
	v := doc.Value()
	for _, part := range f.Parts {
		if v.Type != bson.TypeObject {
			return bson.Missing, nil
		}
		if v = v.Doc().Lookup(part); v.Type == bson.TypeArray {
			return v, mongoerr.New(16766, "hashed indexes do not currently support array values. Found array at path: %s", f.Path)
		}
	}
	return v, nil
}

// Hash is what a hashed field has in the place of v: the same for all values that compare equal under the index's
// collation.
func (d *Definition) Hash(v bson.Value) bson.Value {
	if d.collator != nil {
		v = collated(v, d.collator)
	}
	return bson.Int64(expr.HashedKey(v))
}

// collated is v with the bytes by which c orders strings in the place of strings, at any depth.
func collated(v bson.Value, c *collation.Collation) bson.Value {
	switch v.Type {
	case bson.TypeString, bson.TypeSymbol:
		return bson.String(string(c.AppendKey(nil, v.Str())))
	case bson.TypeObject, bson.TypeArray:
		b := bson.Build()
		for it := v.Doc().Iter(); it.Next(); {
			b.Value(it.Key(), collated(it.Value(), c))
		}
		if v.Type == bson.TypeArray {
			return b.Doc().ArrayValue()
		}
		return b.Doc().Value()
	}
	return v
}
