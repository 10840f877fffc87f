package match

import "github.com/ebbdb/ebb/internal/bson"

// schemas parses the array of allOf, anyOf and oneOf.
func (p *schemaParsing) schemas(name string, arg bson.Value) ([]*schema, error) {
	switch {
	case arg.Type != bson.TypeArray:
		return nil, typeMismatch("$jsonSchema keyword '%s' must be an array", name)
	case arg.Doc().IsEmpty():
		return nil, badValue("$jsonSchema keyword '%s' must be a non-empty array", name)
	}
	var out []*schema
	for it := arg.Doc().Iter(); it.Next(); {
		if it.Value().Type != bson.TypeObject {
			return nil, typeMismatch("$jsonSchema keyword '%s' must be an array of objects, but found an element of type %s", name, it.Value().Type)
		}
		s, err := parseSchema(it.Value().Doc(), p.top, p.within)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// matching is which of several schemas hold.
func matching(c run, v bson.Value, schemas []*schema) (indexes []int, err error) {
	for i, s := range schemas {
		ok, err := s.holds(c, v)
		if err != nil {
			return nil, err
		}
		if ok {
			indexes = append(indexes, i)
		}
	}
	return indexes, nil
}

func parseAllOf(p *schemaParsing, arg bson.Value) error {
	return p.several("allOf", arg, func(n, all int) bool { return n == all })
}

func parseAnyOf(p *schemaParsing, arg bson.Value) error {
	return p.several("anyOf", arg, func(n, _ int) bool { return n > 0 })
}

func parseOneOf(p *schemaParsing, arg bson.Value) error {
	return p.several("oneOf", arg, func(n, _ int) bool { return n == 1 })
}

// several adds a rule on how many of an array of schemas hold.
func (p *schemaParsing) several(name string, arg bson.Value, enough func(n, all int) bool) error {
	schemas, err := p.schemas(name, arg)
	if err != nil {
		return err
	}
	p.add(rule{keyword: name,
		holds: func(c run, v bson.Value) (bool, error) {
			hold, err := matching(c, v, schemas)
			return err == nil && enough(len(hold), len(schemas)), err
		},
		why: func(c run, v bson.Value, b *bson.Builder) {
			hold, _ := matching(c, v, schemas)
			if name == "oneOf" && len(hold) > 1 {
				b.String("reason", "more than one subschema matched").Array("matchingSchemaIndexes")
				for i, at := range hold {
					b.Int32(bson.IndexKey(i), int32(at))
				}
				b.End()
				return
			}
			explainSchemas(c, v, schemas, b)
		}})
	return nil
}

func explainSchemas(c run, v bson.Value, schemas []*schema, b *bson.Builder) {
	b.Array("schemasNotSatisfied")
	n := 0
	for i, s := range schemas {
		if ok, err := s.holds(c, v); ok || err != nil {
			continue
		}
		b.Object(bson.IndexKey(n)).Int32("index", int32(i))
		s.annotate(b)
		b.Array("details")
		s.explain(c, v, b)
		b.End().End()
		n++
	}
	b.End()
}

func parseNotSchema(p *schemaParsing, arg bson.Value) error {
	if arg.Type != bson.TypeObject {
		return typeMismatch("$jsonSchema keyword 'not' must be an object, but found an element of type %s", arg.Type)
	}
	s, err := parseSchema(arg.Doc(), p.top, p.within)
	if err != nil {
		return err
	}
	p.add(rule{keyword: "not",
		holds: func(c run, v bson.Value) (bool, error) {
			ok, err := s.holds(c, v)
			return !ok && err == nil, err
		},
		why: func(_ run, _ bson.Value, b *bson.Builder) { b.String("reason", "child expression matched") }})
	return nil
}
