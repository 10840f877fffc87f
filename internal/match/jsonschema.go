package match

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/pcre"
)

// JSONSchema matches documents that are valid under a schema. Collation plays no part in it.
type JSONSchema struct {
	Source bson.Doc
	schema *schema
}

func (n *JSONSchema) match(c run, s subject) (bool, error) { return n.schema.holds(c, s.value) }

func (n *JSONSchema) test(c run, v bson.Value) (bool, error) { return n.schema.holds(c, v) }

func (n *JSONSchema) print(b *bson.Builder) { b.Document("$jsonSchema", n.Source) }

func parseJSONSchema(p *parsing, arg bson.Value) (Node, error) {
	if p.Allow&AllowJSONSchema == 0 {
		return nil, mongoerr.New(mongoerr.QueryFeatureNotAllowed, "$jsonSchema is not allowed in this context")
	}
	if arg.Type != bson.TypeObject {
		return nil, typeMismatch("$jsonSchema must be an object")
	}
	s, err := parseSchema(arg.Doc(), true, schemaLimits{p.Exprs.Patterns(), p.Allow&AllowEncrypt != 0})
	if err != nil {
		return nil, err
	}
	return &JSONSchema{arg.Doc(), s}, nil
}

func typeMismatch(format string, args ...any) error {
	return mongoerr.New(mongoerr.TypeMismatch, format, args...)
}

// schema is a parsed schema: rules that must all hold.
type schema struct {
	source bson.Doc
	rules  []rule
}

// rule is a keyword of a schema. It holds for values of types that it does not apply to.
type rule struct {
	keyword string
	applies func(bson.Type) bool // nil for all types
	holds   func(c run, v bson.Value) (bool, error)
	// why appends to b, in a document that names the keyword already, what MongoDB says of a value that breaks the rule.
	why func(c run, v bson.Value, b *bson.Builder)
}

func (s *schema) holds(c run, v bson.Value) (bool, error) {
	for i := range s.rules {
		if err := c.tick(); err != nil {
			return false, err
		}
		if ok, err := s.rules[i].check(c, v); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (r *rule) check(c run, v bson.Value) (bool, error) {
	if r.applies != nil && !r.applies(v.Type) {
		return true, nil
	}
	return r.holds(c, v)
}

// explain appends the rules that v breaks to an open array.
func (s *schema) explain(c run, v bson.Value, b *bson.Builder) {
	i := 0
	for _, r := range s.rules {
		if ok, err := r.check(c, v); ok || err != nil {
			continue
		}
		b.Object(bson.IndexKey(i)).String("operatorName", r.keyword)
		r.why(c, v, b)
		b.End()
		i++
	}
}

// annotate appends the schema's title and description to an open document.
func (s *schema) annotate(b *bson.Builder) {
	for _, key := range []string{"title", "description"} {
		b.Value(key, s.source.Lookup(key))
	}
}

func isType(want bson.Type) func(bson.Type) bool {
	return func(t bson.Type) bool { return t == want }
}

// schemaParsing is what the parsers of keywords see: the schema around the keyword, and what they make of it.
type schemaParsing struct {
	*schema
	top    bool // the schema is for whole documents
	within schemaLimits
}

// schemaLimits are what a whole schema is parsed under.
type schemaLimits struct {
	patterns *pcre.Budget // bounds the regular expressions
	encrypt  bool         // the keywords about encryption are allowed
}

// keyword is a row of the table of keywords.
type keyword struct {
	name  string
	parse func(p *schemaParsing, arg bson.Value) error
}

// keywords are in the order in which MongoDB evaluates and reports them.
func keywords() []keyword {
	return []keyword{
		{"title", parseAnnotation("title")}, {"description", parseAnnotation("description")},
		{"type", parseSchemaType}, {"bsonType", parseSchemaType},
		{"enum", parseEnum},
		{"allOf", parseAllOf}, {"anyOf", parseAnyOf}, {"oneOf", parseOneOf}, {"not", parseNotSchema},
		{"minLength", parseLength("minLength")}, {"maxLength", parseLength("maxLength")}, {"pattern", parsePattern},
		{"multipleOf", parseMultipleOf},
		{"minimum", parseBound("minimum", "exclusiveMinimum", Gte, Gt)}, {"maximum", parseBound("maximum", "exclusiveMaximum", Lte, Lt)},
		{"exclusiveMinimum", parseExclusive("exclusiveMinimum", "minimum")}, {"exclusiveMaximum", parseExclusive("exclusiveMaximum", "maximum")},
		{"minItems", parseItemCount("minItems")}, {"maxItems", parseItemCount("maxItems")}, {"uniqueItems", parseUniqueItems},
		{"items", parseItems}, {"additionalItems", parseAdditionalItems},
		{"minProperties", parsePropertyCount("minProperties")}, {"maxProperties", parsePropertyCount("maxProperties")},
		{"properties", parseProperties}, {"patternProperties", parsePatternProperties}, {"additionalProperties", parseAdditionalProperties},
		{"dependencies", parseDependencies}, {"required", parseRequired},
		{"encrypt", parseEncrypt}, {"encryptMetadata", parseEncryptMetadata},
	}
}

func parseSchema(d bson.Doc, top bool, within schemaLimits) (*schema, error) {
	p := &schemaParsing{&schema{source: d}, top, within}
	table := keywords()
	given := map[string]bson.Value{}
	for it := d.Iter(); it.Next(); {
		if _, twice := given[it.Key()]; twice {
			return nil, failedToParse("Duplicate $jsonSchema keyword: %s", it.Key())
		}
		given[it.Key()] = it.Value()
		if err := checkKeyword(table, it.Key()); err != nil {
			return nil, err
		}
	}
	if _, both := given["type"]; both && !given["bsonType"].IsMissing() {
		return nil, failedToParse("Cannot specify both $jsonSchema keywords 'type' and 'bsonType'")
	}
	for _, row := range table {
		arg, ok := given[row.name]
		if !ok {
			continue
		}
		if err := row.parse(p, arg); err != nil {
			return nil, err
		}
	}
	return p.schema, nil
}

func checkKeyword(table []keyword, name string) error {
	switch name {
	case "$ref", "$schema", "default", "definitions", "format", "id":
		return failedToParse("$jsonSchema keyword '%s' is not currently supported", name)
	}
	for _, row := range table {
		if row.name == name {
			return nil
		}
	}
	return failedToParse("Unknown $jsonSchema keyword: %s", name)
}

func (p *schemaParsing) add(r rule) { p.rules = append(p.rules, r) }

func parseAnnotation(name string) func(*schemaParsing, bson.Value) error {
	return func(_ *schemaParsing, arg bson.Value) error {
		if arg.Type != bson.TypeString {
			return typeMismatch("$jsonSchema keyword '%s' must be of type string", name)
		}
		return nil
	}
}

// parseSchemaType parses type or bsonType, whichever stands there.
func parseSchemaType(p *schemaParsing, arg bson.Value) error {
	name, names := "bsonType", map[string]bson.Type(nil)
	if p.source.Lookup("bsonType").IsMissing() {
		name = "type"
		names = map[string]bson.Type{"array": bson.TypeArray, "boolean": bson.TypeBool, "null": bson.TypeNull, "object": bson.TypeObject, "string": bson.TypeString}
	}
	types, err := schemaTypes(name, arg, names)
	if err != nil {
		return err
	}
	if types.empty() {
		return failedToParse("$jsonSchema keyword '%s' must name at least one type", name)
	}
	p.add(rule{keyword: name,
		holds: func(_ run, v bson.Value) (bool, error) { return types.Has(v.Type), nil },
		why: func(_ run, v bson.Value, b *bson.Builder) {
			b.Object("specifiedAs").Value(name, arg).End().String("reason", "type did not match").
				Value("consideredValue", v).String("consideredType", v.Type.String())
		}})
	return nil
}

func schemaTypes(name string, arg bson.Value, names map[string]bson.Type) (TypeSet, error) {
	var values []bson.Value
	switch arg.Type {
	case bson.TypeString:
		values = append(values, arg)
	case bson.TypeArray:
		values = arg.Doc().Values(nil)
	default:
		return TypeSet{}, typeMismatch("$jsonSchema keyword '%s' must be either a string or an array of strings", name)
	}
	var s TypeSet
	seen := map[string]bool{}
	for _, v := range values {
		if v.Type != bson.TypeString {
			return s, typeMismatch("$jsonSchema keyword '%s' array elements must be strings", name)
		}
		if seen[v.Str()] {
			return s, failedToParse("$jsonSchema keyword '%s' has duplicate value: %s", name, v.Str())
		}
		seen[v.Str()] = true
		if v.Str() == "integer" {
			return s, failedToParse("$jsonSchema type 'integer' is not currently supported.")
		}
		if err := s.parseOne(v, names); err != nil {
			return s, err
		}
	}
	return s, nil
}

func parseEnum(p *schemaParsing, arg bson.Value) error {
	switch {
	case arg.Type != bson.TypeArray:
		return typeMismatch("$jsonSchema keyword 'enum' must be an array, but found an element of type %s", arg.Type)
	case arg.Doc().IsEmpty():
		return failedToParse("$jsonSchema keyword 'enum' cannot be an empty array")
	}
	values := arg.Doc().Values(nil)
	if _, _, twice := duplicate(values); twice {
		return failedToParse("$jsonSchema keyword 'enum' array cannot contain duplicate values.")
	}
	p.add(rule{keyword: "enum",
		holds: func(_ run, v bson.Value) (bool, error) {
			for _, w := range values {
				if compareUnordered(v, w) == 0 {
					return true, nil
				}
			}
			return false, nil
		},
		why: func(_ run, v bson.Value, b *bson.Builder) {
			b.Object("specifiedAs").Value("enum", arg).End().String("reason", "value was not found in enum").Value("consideredValue", v)
		}})
	return nil
}
