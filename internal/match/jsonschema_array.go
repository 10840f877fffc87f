package match

import "github.com/ebbdb/ebb/internal/bson"

func parseItemCount(name string) func(*schemaParsing, bson.Value) error {
	return func(p *schemaParsing, arg bson.Value) error {
		limit, err := count(name, arg)
		if err != nil {
			return err
		}
		p.add(rule{keyword: name, applies: isType(bson.TypeArray),
			holds: func(_ run, v bson.Value) (bool, error) { return within(name, int64(v.Doc().Count()), limit), nil },
			why:   reason(name, arg, "array did not match specified length")})
		return nil
	}
}

func parseUniqueItems(p *schemaParsing, arg bson.Value) error {
	if arg.Type != bson.TypeBool {
		return typeMismatch("$jsonSchema keyword 'uniqueItems' must be a boolean")
	}
	if !arg.Bool() {
		return nil
	}
	p.add(rule{keyword: "uniqueItems", applies: isType(bson.TypeArray),
		holds: func(_ run, v bson.Value) (bool, error) {
			_, _, twice := duplicate(v.Doc().Values(nil))
			return !twice, nil
		},
		why: func(_ run, v bson.Value, b *bson.Builder) {
			d, _, _ := duplicate(v.Doc().Values(nil))
			b.Object("specifiedAs").Bool("uniqueItems", true).End().String("reason", "found a duplicate item").
				Value("consideredValue", v).Value("duplicatedValue", d)
		}})
	return nil
}

// parseItems parses one schema for all items, or an array of schemas for the first ones.
func parseItems(p *schemaParsing, arg bson.Value) error {
	switch arg.Type {
	case bson.TypeObject:
		s, err := parseSchema(arg.Doc(), false, p.within)
		if err == nil {
			p.items("items", 0, "At least one item did not match the sub-schema", func(int) *schema { return s })
		}
		return err
	case bson.TypeArray:
	default:
		return typeMismatch("$jsonSchema keyword 'items' must be an array or an object, not %s", arg.Type)
	}
	var schemas []*schema
	for it := arg.Doc().Iter(); it.Next(); {
		if it.Value().Type != bson.TypeObject {
			return typeMismatch("$jsonSchema keyword 'items' requires that each element of the array is an object, but found a %s", it.Value().Type)
		}
		s, err := parseSchema(it.Value().Doc(), false, p.within)
		if err != nil {
			return err
		}
		schemas = append(schemas, s)
	}
	p.items("items", 0, "At least one item did not match the sub-schema", func(i int) *schema {
		if i < len(schemas) {
			return schemas[i]
		}
		return nil
	})
	return nil
}

// items adds a rule that the items from one on match the schemas that of names for them; it may name none.
func (p *schemaParsing) items(name string, from int, text string, of func(i int) *schema) {
	broken := func(c run, v bson.Value) (at int, item bson.Value, s *schema, err error) {
		i := 0
		for it := v.Doc().Iter(); it.Next(); i++ {
			if i < from {
				continue
			}
			if s := of(i); s != nil {
				if ok, err := s.holds(c, it.Value()); !ok || err != nil {
					return i, it.Value(), s, err
				}
			}
		}
		return 0, bson.Missing, nil, nil
	}
	p.add(rule{keyword: name, applies: isType(bson.TypeArray),
		holds: func(c run, v bson.Value) (bool, error) {
			_, _, s, err := broken(c, v)
			return s == nil && err == nil, err
		},
		why: func(c run, v bson.Value, b *bson.Builder) {
			at, item, s, _ := broken(c, v)
			b.String("reason", text).Int32("itemIndex", int32(at)).Array("details")
			s.explain(c, item, b)
			b.End()
		}})
}

func parseAdditionalItems(p *schemaParsing, arg bson.Value) error {
	if arg.Type != bson.TypeBool && arg.Type != bson.TypeObject {
		return typeMismatch("$jsonSchema keyword 'additionalItems' must be either an object or a boolean, but got a %s", arg.Type)
	}
	var s *schema
	if arg.Type == bson.TypeObject {
		var err error
		if s, err = parseSchema(arg.Doc(), false, p.within); err != nil {
			return err
		}
	}
	items := p.source.Lookup("items")
	if items.Type != bson.TypeArray || arg.Type == bson.TypeBool && arg.Bool() {
		return nil // there are none, or all are allowed
	}
	from := items.Doc().Count()
	if s != nil {
		p.items("additionalItems", from, "At least one additional item did not match the sub-schema", func(int) *schema { return s })
		return nil
	}
	p.add(rule{keyword: "additionalItems", applies: isType(bson.TypeArray),
		holds: func(_ run, v bson.Value) (bool, error) { return v.Doc().Count() <= from, nil },
		why: func(_ run, v bson.Value, b *bson.Builder) {
			b.Object("specifiedAs").Bool("additionalItems", false).End().String("reason", "found additional items").Array("additionalItems")
			for i, item := range v.Doc().Values(nil)[from:] {
				b.Value(bson.IndexKey(i), item)
			}
			b.End()
		}})
	return nil
}
