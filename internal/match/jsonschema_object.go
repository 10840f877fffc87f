package match

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/pcre"
)

func parsePropertyCount(name string) func(*schemaParsing, bson.Value) error {
	return func(p *schemaParsing, arg bson.Value) error {
		limit, err := count(name, arg)
		if err != nil {
			return err
		}
		p.add(rule{keyword: name, applies: isType(bson.TypeObject),
			holds: func(_ run, v bson.Value) (bool, error) { return within(name, int64(v.Doc().Count()), limit), nil },
			why: func(_ run, v bson.Value, b *bson.Builder) {
				b.Object("specifiedAs").Value(name, arg).End().String("reason", "specified number of properties was not satisfied").
					Int32("numberOfProperties", int32(v.Doc().Count()))
			}})
		return nil
	}
}

// property is a name, or a pattern of names, with the schema for what stands there.
type property struct {
	name    string
	pattern *pcre.Regexp
	schema  *schema
}

func parseProperties(p *schemaParsing, arg bson.Value) error {
	if arg.Type != bson.TypeObject {
		return typeMismatch("$jsonSchema keyword 'properties' must be an object")
	}
	var all []property
	for it := arg.Doc().Iter(); it.Next(); {
		if it.Value().Type != bson.TypeObject {
			return typeMismatch("Nested schema for $jsonSchema property '%s' must be an object", it.Key())
		}
		s, err := parseSchema(it.Value().Doc(), false, p.within)
		if err != nil {
			return err
		}
		all = append(all, property{name: it.Key(), schema: s})
	}
	p.add(rule{keyword: "properties", applies: isType(bson.TypeObject),
		holds: func(c run, v bson.Value) (bool, error) {
			for i := range all {
				if ok, err := all[i].holds(c, v.Doc()); !ok || err != nil {
					return false, err
				}
			}
			return true, nil
		},
		why: func(c run, v bson.Value, b *bson.Builder) {
			b.Array("propertiesNotSatisfied")
			n := 0
			for i := range all {
				if ok, err := all[i].holds(c, v.Doc()); ok || err != nil {
					continue
				}
				b.Object(bson.IndexKey(n)).String("propertyName", all[i].name)
				all[i].schema.annotate(b)
				b.Array("details")
				all[i].schema.explain(c, v.Doc().Lookup(all[i].name), b)
				b.End().End()
				n++
			}
			b.End()
		}})
	return nil
}

// holds says whether d has no such property, or one that is valid.
func (p *property) holds(c run, d bson.Doc) (bool, error) {
	v := d.Lookup(p.name)
	if v.IsMissing() {
		return true, nil
	}
	return p.schema.holds(c, v)
}

func (p *schemaParsing) patterns() ([]property, error) {
	arg := p.source.Lookup("patternProperties")
	if arg.IsMissing() {
		return nil, nil
	}
	if arg.Type != bson.TypeObject {
		return nil, typeMismatch("$jsonSchema keyword 'patternProperties' must be an object")
	}
	var all []property
	for it := arg.Doc().Iter(); it.Next(); {
		if it.Value().Type != bson.TypeObject {
			return nil, typeMismatch("$jsonSchema keyword 'patternProperties' has property '%s' which is not an object", it.Key())
		}
		re, err := p.within.patterns.Compile(it.Key(), "")
		if err != nil {
			return nil, badValue("Invalid regular expression in $jsonSchema keyword 'patternProperties': %s", mongoerr.From(err).Message)
		}
		s, err := parseSchema(it.Value().Doc(), false, p.within)
		if err != nil {
			return nil, err
		}
		all = append(all, property{name: it.Key(), pattern: re, schema: s})
	}
	return all, nil
}

func parsePatternProperties(p *schemaParsing, _ bson.Value) error {
	all, err := p.patterns()
	if err != nil {
		return err
	}
	// broken calls found for each field that a pattern finds and its schema does not allow, until that returns true.
	broken := func(c run, v bson.Value, found func(key string, v bson.Value, p *property) bool) error {
		for it := v.Doc().Iter(); it.Next(); {
			for i := range all {
				if err := c.tick(); err != nil {
					return err
				}
				hit, err := all[i].pattern.Match(it.Key(), c.ask())
				if err != nil {
					return err
				}
				if !hit {
					continue
				}
				ok, err := all[i].schema.holds(c, it.Value())
				if err != nil {
					return err
				}
				if !ok && found(it.Key(), it.Value(), &all[i]) {
					return nil
				}
			}
		}
		return nil
	}
	p.add(rule{keyword: "patternProperties", applies: isType(bson.TypeObject),
		holds: func(c run, v bson.Value) (bool, error) {
			ok := true
			err := broken(c, v, func(string, bson.Value, *property) bool { ok = false; return true })
			return ok && err == nil, err
		},
		why: func(c run, v bson.Value, b *bson.Builder) {
			b.Array("details")
			n := 0
			_ = broken(c, v, func(key string, v bson.Value, p *property) bool {
				b.Object(bson.IndexKey(n)).String("propertyName", key)
				p.schema.annotate(b)
				b.String("regexMatched", p.name).Array("details")
				p.schema.explain(c, v, b)
				b.End().End()
				n++
				return false
			})
			b.End()
		}})
	return nil
}

func parseAdditionalProperties(p *schemaParsing, arg bson.Value) error {
	if arg.Type != bson.TypeBool && arg.Type != bson.TypeObject {
		return typeMismatch("$jsonSchema keyword 'additionalProperties' must be an object or a boolean")
	}
	patterns, err := p.patterns()
	if err != nil {
		return err
	}
	var s *schema
	if arg.Type == bson.TypeObject {
		if s, err = parseSchema(arg.Doc(), false, p.within); err != nil {
			return err
		}
	} else if arg.Bool() {
		return nil
	}
	known := map[string]bool{}
	if properties := p.source.Lookup("properties"); properties.Type == bson.TypeObject {
		for it := properties.Doc().Iter(); it.Next(); {
			known[it.Key()] = true
		}
	}
	p.add(additional(arg, s, known, patterns))
	return nil
}

// additional is the rule that fields which are neither known nor found by a pattern are valid under s, or that there are
// none when s is nil.
func additional(arg bson.Value, s *schema, known map[string]bool, patterns []property) rule {
	isAdditional := func(c run, key string) (bool, error) {
		if known[key] {
			return false, nil
		}
		for i := range patterns {
			if hit, err := patterns[i].pattern.Match(key, c.ask()); hit || err != nil {
				return false, err
			}
		}
		return true, nil
	}
	bad := func(c run, v bson.Value) (keys []string, err error) {
		for it := v.Doc().Iter(); it.Next(); {
			more, err := isAdditional(c, it.Key())
			if err != nil {
				return nil, err
			}
			if more && s != nil {
				ok, err := s.holds(c, it.Value())
				if err != nil {
					return nil, err
				}
				more = !ok
			}
			if more {
				keys = append(keys, it.Key())
			}
		}
		return keys, nil
	}
	return rule{keyword: "additionalProperties", applies: isType(bson.TypeObject),
		holds: func(c run, v bson.Value) (bool, error) {
			keys, err := bad(c, v)
			return len(keys) == 0 && err == nil, err
		},
		why: func(c run, v bson.Value, b *bson.Builder) {
			keys, _ := bad(c, v)
			if s == nil {
				b.Object("specifiedAs").Value("additionalProperties", arg).End().Strings("additionalProperties", keys)
				return
			}
			b.String("reason", "at least one additional property did not match the subschema").String("failingProperty", keys[0]).Array("details")
			s.explain(c, v.Doc().Lookup(keys[0]), b)
			b.End()
		}}
}

func missing(d bson.Doc, names []string) []string {
	var out []string
	for _, name := range names {
		if d.Lookup(name).IsMissing() {
			out = append(out, name)
		}
	}
	return out
}

func parseRequired(p *schemaParsing, arg bson.Value) error {
	names, err := schemaNames("required", arg)
	if err != nil {
		return err
	}
	p.add(rule{keyword: "required", applies: isType(bson.TypeObject),
		holds: func(c run, v bson.Value) (bool, error) {
			for _, name := range names {
				if err := c.tick(); err != nil {
					return false, err
				}
				if v.Doc().Lookup(name).IsMissing() {
					return false, nil
				}
			}
			return true, nil
		},
		why: func(_ run, v bson.Value, b *bson.Builder) {
			b.Object("specifiedAs").Value("required", arg).End().Strings("missingProperties", missing(v.Doc(), names))
		}})
	return nil
}

// schemaNames reads an array of names, not empty and each there once.
func schemaNames(keyword string, arg bson.Value) ([]string, error) {
	if arg.Type != bson.TypeArray {
		return nil, typeMismatch("$jsonSchema keyword '%s' must be an array, but found an element of type %s", keyword, arg.Type)
	}
	var names []string
	met := map[string]bool{}
	for it := arg.Doc().Iter(); it.Next(); {
		if it.Value().Type != bson.TypeString {
			return nil, typeMismatch("$jsonSchema keyword '%s' must be an array of strings, but found an element of type: %s", keyword, it.Value().Type)
		}
		if met[it.Value().Str()] {
			return nil, failedToParse("$jsonSchema keyword '%s' array cannot contain duplicate values", keyword)
		}
		met[it.Value().Str()] = true
		names = append(names, it.Value().Str())
	}
	if names == nil {
		return nil, failedToParse("$jsonSchema keyword '%s' cannot be an empty array", keyword)
	}
	return names, nil
}

// dependency is what must hold when a field is there: other fields, or a schema for the document around.
type dependency struct {
	name   string
	needs  []string
	schema *schema
}

func parseDependencies(p *schemaParsing, arg bson.Value) error {
	if arg.Type != bson.TypeObject {
		return typeMismatch("$jsonSchema keyword 'dependencies' must be an object")
	}
	var all []dependency
	for it := arg.Doc().Iter(); it.Next(); {
		d := dependency{name: it.Key()}
		var err error
		switch v := it.Value(); v.Type {
		case bson.TypeObject:
			d.schema, err = parseSchema(v.Doc(), p.top, p.within)
		case bson.TypeArray:
			d.needs, err = schemaNames("dependencies", v)
		default:
			err = typeMismatch("$jsonSchema keyword 'dependencies' has a member '%s' that is neither an object nor an array", it.Key())
		}
		if err != nil {
			return err
		}
		all = append(all, d)
	}
	p.add(rule{keyword: "dependencies", applies: isType(bson.TypeObject),
		holds: func(c run, v bson.Value) (bool, error) {
			for i := range all {
				if ok, err := all[i].holds(c, v); !ok || err != nil {
					return false, err
				}
			}
			return true, nil
		},
		why: func(c run, v bson.Value, b *bson.Builder) {
			b.Array("failingDependencies")
			n := 0
			for i := range all {
				if ok, err := all[i].holds(c, v); !ok && err == nil {
					all[i].explain(c, v, b.Object(bson.IndexKey(n)))
					b.End()
					n++
				}
			}
			b.End()
		}})
	return nil
}

func (d *dependency) holds(c run, v bson.Value) (bool, error) {
	switch {
	case v.Doc().Lookup(d.name).IsMissing():
		return true, nil
	case d.schema != nil:
		return d.schema.holds(c, v)
	}
	return len(missing(v.Doc(), d.needs)) == 0, nil
}

func (d *dependency) explain(c run, v bson.Value, b *bson.Builder) {
	b.String("conditionalProperty", d.name)
	if d.schema == nil {
		b.Strings("missingProperties", missing(v.Doc(), d.needs))
		return
	}
	b.Array("details")
	d.schema.explain(c, v, b)
	b.End()
}
