package projection

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// addFields parses the specification of $addFields: every value is an expression, and a document that is no operator is
// further fields.
func (p *parsing) addFields(spec bson.Doc) error {
	p.decided(Addition)
	for it := spec.Iter(); it.Next(); {
		at, err := fieldpath.New(it.Key())
		if err != nil {
			return err
		}
		if err := p.addition(at, it.Value()); err != nil {
			return err
		}
	}
	return nil
}

func (p *parsing) addition(at fieldpath.Path, v bson.Value) error {
	if v.Type != bson.TypeObject || v.Doc().IsEmpty() {
		return p.add(at, v)
	}
	d := v.Doc()
	for it := d.Iter(); it.Next(); {
		key := it.Key()
		if key != "" && key[0] == '$' {
			if n := d.Count(); n != 1 {
				return mongoerr.New(40181, "an expression specification must contain exactly one field, the name of the expression. "+
					"Found %d fields in %s, while parsing object %s", n, d, p.out.source)
			}
			return p.add(at, v)
		}
		if strings.Contains(key, ".") {
			return mongoerr.New(40183, "cannot use dotted field name '%s' in a sub object: %s", key, p.out.source)
		}
		sub, err := fieldpath.New(at.String() + "." + key)
		if err != nil {
			return err
		}
		if err := p.addition(sub, it.Value()); err != nil {
			return err
		}
	}
	return nil
}

func (p *parsing) add(at fieldpath.Path, v bson.Value) error {
	e, err := p.Exprs.Parse(v, p.Scope)
	if err != nil {
		return err
	}
	if p.insert(at, field{action: compute, expr: e}) != nil {
		return mongoerr.New(40176, "specification contains two conflicting paths. Cannot specify both '%s' and a path that "+
			"contains it or lies in it: %s", at, p.out.source)
	}
	return nil
}
