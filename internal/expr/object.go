package expr

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func objectOperators() []Operator {
	return []Operator{
		{Name: "$arrayToObject", Since: "3.4", Doc: "A document of an array of names and values.", Shape: unary(evalArrayToObject)},
		{Name: "$getField", Since: "5.0", Doc: "The value of a field, whatever its name looks like.", Shape: special(parseGetField)},
		{Name: "$mergeObjects", Since: "3.5", Doc: "The fields of all documents in one; later ones win.", Shape: spread(evalMergeObjects)},
		{Name: "$objectToArray", Since: "3.4", Doc: "An array of a document's names and values.", Shape: unary(evalObjectToArray)},
		{Name: "$setField", Since: "5.0", Doc: "A document with a field set, whatever its name looks like.", Shape: special(parseSetField)},
		{Name: "$unsetField", Since: "5.0", Doc: "A document without a field, whatever its name looks like.", Shape: special(parseSetField)},
	}
}

// fields is a document being put together: a name set again keeps its place.
type fields struct {
	keys   []string
	values []bson.Value
	at     map[string]int // made when there are many
}

const manyFields = 16

func (f *fields) set(key string, v bson.Value) {
	if i := f.index(key); i >= 0 {
		f.values[i] = v
		return
	}
	f.keys, f.values = append(f.keys, key), append(f.values, v)
	if f.at != nil {
		f.at[key] = len(f.keys) - 1
	}
}

func (f *fields) index(key string) int {
	if f.at == nil && len(f.keys) < manyFields {
		for i, k := range f.keys {
			if k == key {
				return i
			}
		}
		return -1
	}
	if f.at == nil {
		f.at = make(map[string]int, 2*manyFields)
		for i, k := range f.keys {
			f.at[k] = i
		}
	}
	if i, ok := f.at[key]; ok {
		return i
	}
	return -1
}

func evalMergeObjects(env *Env, args []bson.Value) (bson.Value, error) {
	var f fields
	for _, v := range args {
		if v.IsNullish() {
			continue
		}
		if v.Type != bson.TypeObject {
			return v, mongoerr.New(40400, "$mergeObjects requires object inputs, but input %s is of type %s", v.Computed(), v.Type)
		}
		for it := v.Doc().Iter(); it.Next(); {
			f.set(it.Key(), it.Value())
			if err := env.tick(); err != nil {
				return v, err
			}
		}
	}
	return env.Object(f.keys, f.values)
}

func evalObjectToArray(env *Env, v bson.Value) (bson.Value, error) {
	if v.IsNullish() {
		return bson.Null, nil
	}
	if v.Type != bson.TypeObject {
		return v, mongoerr.New(40390, "$objectToArray requires a document input, found: %s", v.Type)
	}
	keys := []string{"k", "v"}
	mark := len(env.stack)
	for it := v.Doc().Iter(); it.Next(); {
		pair, err := env.Object(keys, []bson.Value{env.String(it.Key()), it.Value()})
		if err != nil {
			return v, err
		}
		env.stack = append(env.stack, pair)
	}
	return env.arrayFrom(mark)
}

func evalArrayToObject(env *Env, v bson.Value) (bson.Value, error) {
	if v.IsNullish() {
		return bson.Null, nil
	}
	if v.Type != bson.TypeArray {
		return v, mongoerr.New(40386, "$arrayToObject requires an array input, found: %s", v.Type)
	}
	var f fields
	read := pairOf
	for it, first := v.Doc().Iter(), true; it.Next(); first = false {
		if first {
			switch it.Value().Type {
			case bson.TypeObject:
				read = keyAndValueOf
			case bson.TypeArray:
			default:
				return v, mongoerr.New(40398, "Unrecognised input type format for $arrayToObject: %s", it.Value().Type)
			}
		}
		key, value, err := read(it.Value())
		if err != nil {
			return v, err
		}
		f.set(key, value)
	}
	return env.Object(f.keys, f.values)
}

// keyAndValueOf reads {k: "name", v: value}.
func keyAndValueOf(v bson.Value) (string, bson.Value, error) {
	if v.Type != bson.TypeObject {
		return "", v, mongoerr.New(40391, "$arrayToObject requires a consistent input format. Elements must all be arrays or all be objects. Object was detected, now found: %s", v.Type)
	}
	if v.Doc().Count() != 2 {
		return "", v, mongoerr.New(40392, "$arrayToObject requires an object keys of 'k' and 'v'. Found incorrect number of keys:%d", v.Doc().Count())
	}
	key, value := v.Doc().Lookup("k"), v.Doc().Lookup("v")
	if key.IsMissing() || value.IsMissing() {
		return "", v, mongoerr.New(40393, "$arrayToObject requires an object with keys 'k' and 'v'. Missing either or both keys from: %s", v.Computed())
	}
	if key.Type != bson.TypeString {
		return "", v, mongoerr.New(40394, "$arrayToObject requires an object with keys 'k' and 'v', where the value of 'k' must be of type string. Found type: %s", key.Type)
	}
	if strings.IndexByte(key.Str(), 0) >= 0 {
		return "", v, mongoerr.New(4940401, "Key field cannot contain an embedded null byte")
	}
	return key.Str(), value, nil
}

// pairOf reads ["name", value].
func pairOf(v bson.Value) (string, bson.Value, error) {
	if v.Type != bson.TypeArray {
		return "", v, mongoerr.New(40396, "$arrayToObject requires a consistent input format. Elements must all be arrays or all be objects. Array was detected, now found: %s", v.Type)
	}
	if v.Doc().Count() != 2 {
		return "", v, mongoerr.New(40397, "$arrayToObject requires an array of size 2 arrays,found array of size: %d", v.Doc().Count())
	}
	key := v.Doc().Index(0)
	if key.Type != bson.TypeString {
		return "", v, mongoerr.New(40395, "$arrayToObject requires an array of key-value pairs, where the key must be of type string. Found key type: %s", key.Type)
	}
	if strings.IndexByte(key.Str(), 0) >= 0 {
		return "", v, mongoerr.New(4940400, "Key field cannot contain an embedded null byte")
	}
	return key.Str(), v.Doc().Index(1), nil
}

func parseGetField(p *Parser, op *Operator, arg bson.Value, scope *Scope) (Expr, error) {
	full := arg.Type == bson.TypeObject && !strings.HasPrefix(arg.Doc().FirstKey(), "$")
	if !full {
		name, err := p.parse(arg, scope)
		if err != nil {
			return nil, err
		}
		current, err := p.parseVariable("CURRENT", scope)
		if err != nil {
			return nil, err
		}
		return getField(op, name, current), nil
	}
	var name, input Expr
	for it := arg.Doc().Iter(); it.Next(); {
		e, err := p.parse(it.Value(), scope)
		switch {
		case it.Key() != "field" && it.Key() != "input":
			return nil, mongoerr.New(3041701, "$getField found an unknown argument: %s", it.Key())
		case err != nil:
			return nil, err
		case it.Key() == "field":
			name = e
		default:
			input = e
		}
	}
	if name == nil {
		return nil, mongoerr.New(3041702, "$getField requires 'field' to be specified")
	}
	if input == nil {
		return nil, mongoerr.New(3041703, "$getField requires 'input' to be specified")
	}
	return getField(op, name, input), nil
}

func getField(op *Operator, name, input Expr) Expr {
	return &call{op: op, names: []string{"field", "input"}, args: []Expr{name, input}, eval: evalGetField,
		prepare: func(_ *Parser, c *call) error {
			if v, ok := Constant(c.args[0]); ok && v.Type != bson.TypeString {
				return errFieldName(v)
			}
			return nil
		}}
}

func errFieldName(v bson.Value) error {
	return mongoerr.New(3041704, "$getField requires 'field' to evaluate to type String, but got %s", v.Type)
}

func evalGetField(env *Env, c *call) (bson.Value, error) {
	name, err := c.args[0].Eval(env)
	if err != nil {
		return name, err
	}
	if name.Type != bson.TypeString {
		return name, errFieldName(name)
	}
	input, err := c.args[1].Eval(env)
	switch {
	case err != nil || input.IsMissing():
		return bson.Missing, err
	case input.IsNullish():
		return bson.Null, nil
	case input.Type != bson.TypeObject:
		return bson.Missing, nil
	}
	return input.Doc().Lookup(name.Str()), nil
}

// parseSetField is $setField and $unsetField, which has no value.
func parseSetField(p *Parser, op *Operator, arg bson.Value, scope *Scope) (Expr, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(4161100, "%s only supports an object as its argument", op.Name)
	}
	var name, input, value Expr
	if op.Name == "$unsetField" {
		value = Literal(bson.Missing)
	}
	for it := arg.Doc().Iter(); it.Next(); {
		var err error
		switch {
		case it.Key() == "field":
			name, err = p.parse(it.Value(), scope)
		case it.Key() == "input":
			input, err = p.parse(it.Value(), scope)
		case it.Key() == "value" && op.Name == "$setField":
			value, err = p.parse(it.Value(), scope)
		default:
			err = mongoerr.New(4161101, "%s found an unknown argument: %s", op.Name, it.Key())
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case name == nil:
		return nil, mongoerr.New(4161102, "%s requires 'field' to be specified", op.Name)
	case value == nil:
		return nil, mongoerr.New(4161103, "%s requires 'value' to be specified", op.Name)
	case input == nil:
		return nil, mongoerr.New(4161109, "%s requires 'input' to be specified", op.Name)
	}
	if err := checkFieldName(op, name); err != nil {
		return nil, err
	}
	names := []string{"field", "input", "value"}
	if op.Name == "$unsetField" {
		names[2] = ""
	}
	c := &call{op: op, names: names, args: []Expr{name, input, value}, eval: evalSetField, prepare: prepareSetField}
	return c, nil
}

// checkFieldName refuses what cannot be a constant name.
func checkFieldName(op *Operator, e Expr) error {
	switch e := e.(type) {
	case *field, *subField, *variable, *systemRead:
		return mongoerr.New(4161108, "%s requires 'field' to evaluate to a constant, but got a field path or a variable. Use $literal for names that start with '$'", op.Name)
	case *constant:
		if e.v.IsMissing() {
			return mongoerr.New(4161108, "%s requires 'field' to evaluate to a constant", op.Name)
		}
		if e.v.Type != bson.TypeString {
			return mongoerr.New(4161107, "%s requires 'field' to evaluate to type String, but got %s", op.Name, e.v.Type)
		}
		return nil
	}
	if o, ok := e.(*object); ok && len(o.keys) == 0 {
		return mongoerr.New(4161107, "%s requires 'field' to evaluate to type String, but got object", op.Name)
	}
	return mongoerr.New(4161106, "%s requires 'field' to evaluate to a constant, but got a non-constant argument", op.Name)
}

func prepareSetField(_ *Parser, c *call) error {
	v, _ := Constant(c.args[0])
	if strings.IndexByte(v.Str(), 0) >= 0 {
		return mongoerr.New(9534700, "%s: 'field' must not contain null characters", c.op.Name)
	}
	return nil
}

func evalSetField(env *Env, c *call) (bson.Value, error) {
	name, _ := Constant(c.args[0])
	input, err := c.args[1].Eval(env)
	if err != nil {
		return input, err
	}
	if input.IsNullish() {
		return bson.Null, nil
	}
	if input.Type != bson.TypeObject {
		return input, mongoerr.New(4161105, "%s requires 'input' to evaluate to type Object", c.op.Name)
	}
	value, err := c.args[2].Eval(env)
	if err != nil {
		return value, err
	}
	var f fields
	for it := input.Doc().Iter(); it.Next(); {
		f.keys, f.values = append(f.keys, it.Key()), append(f.values, it.Value())
	}
	f.set(name.Str(), value)
	return env.Object(f.keys, f.values)
}
