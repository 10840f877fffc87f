package expr

import (
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/ordering"
)

func rearrangeOperators() []Operator {
	return []Operator{
		{Name: "$sortArray", Since: "5.2", Doc: "An array in the order that a sort pattern says.", Shape: special(parseSortArray)},
		{Name: "$zip", Since: "3.4", Doc: "An array of arrays: the first elements of all inputs, the second ones, and so on.", Shape: special(parseZip)},
	}
}

func parseZip(p *Parser, op *Operator, arg bson.Value, scope *Scope) (Expr, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(34460, "$zip only supports an object as an argument, found %s", arg.Type)
	}
	// args: inputs and defaults, each as given
	c := &call{op: op, names: []string{"inputs", "defaults", "useLongestLength"}, args: make([]Expr, 3), eval: evalZip}
	longest := false
	for it := arg.Doc().Iter(); it.Next(); {
		v := it.Value()
		switch it.Key() {
		case "inputs", "defaults":
			if v.Type != bson.TypeArray {
				code := mongoerr.Code(34461)
				if it.Key() == "defaults" {
					code = 34462
				}
				return nil, mongoerr.New(code, "%s must be an array of expressions, found %s", it.Key(), v.Type)
			}
			list, err := p.parseAll(v, scope)
			if err != nil {
				return nil, err
			}
			c.args[slices.Index(c.names, it.Key())] = &tuple{array: array{list}}
		case "useLongestLength":
			if v.Type != bson.TypeBool {
				return nil, mongoerr.New(34463, "useLongestLength must be a bool, found %s", v.Type)
			}
			longest = v.Bool()
			c.args[2] = plain(v)
		default:
			return nil, mongoerr.New(34464, "$zip found an unknown argument: %s", it.Key())
		}
	}
	if c.args[0] == nil || len(c.args[0].(*tuple).of) == 0 {
		return nil, mongoerr.New(34465, "$zip requires at least one input array")
	}
	if c.args[1] != nil {
		if !longest {
			return nil, mongoerr.New(34466, "cannot specify defaults unless useLongestLength is true")
		}
		if len(c.args[1].(*tuple).of) != len(c.args[0].(*tuple).of) {
			return nil, mongoerr.New(34467, "defaults and inputs must have the same length")
		}
	}
	c.state = longest
	return c, nil
}

func evalZip(env *Env, c *call) (bson.Value, error) {
	longest := c.state.(bool)
	inputs, err := c.args[0].Eval(env)
	if err != nil {
		return inputs, err
	}
	vs, mark := env.elements(inputs)
	defer env.cut(mark)
	length := -1
	for _, v := range vs {
		if v.IsNullish() {
			return bson.Null, nil
		}
		if v.Type != bson.TypeArray {
			return v, mongoerr.New(34468, "$zip found a non-array expression in input: %s", v.Computed())
		}
		n := v.Doc().Count()
		if length < 0 || longest && n > length || !longest && n < length {
			length = n
		}
	}
	defaults, err := c.arg(env, 1)
	if err != nil {
		return defaults, err
	}
	return zip(env, vs, defaults, length)
}

func zip(env *Env, vs []bson.Value, defaults bson.Value, length int) (bson.Value, error) {
	its := make([]bson.Iter, len(vs))
	fill := make([]bson.Value, len(vs))
	for i, v := range vs {
		its[i] = v.Doc().Iter()
		if !defaults.IsMissing() {
			fill[i] = defaults.Doc().Index(i)
		}
	}
	mark := len(env.stack)
	row := make([]bson.Value, len(vs))
	size := 0
	for range length {
		for i := range its {
			row[i] = fill[i]
			if its[i].Next() {
				row[i] = its[i].Value()
			}
		}
		v, err := env.Array(row)
		if err == nil {
			err = env.tick()
		}
		if size += len(v.Data); err == nil && size > MaxValueBytes {
			err = checkSize(size)
		}
		if err != nil {
			return v, err
		}
		env.stack = append(env.stack, v)
	}
	return env.arrayFrom(mark)
}

// SortPattern is an order of values: by the whole value, or by fields of documents.
type SortPattern struct {
	keys []sortKey // none means the whole value
	sign int
}

type sortKey struct {
	path fieldpath.Path
	sign int
}

// ParseSortPattern reads 1, -1 or a document of fields with 1 or -1.
func ParseSortPattern(v bson.Value) (SortPattern, error) {
	if v.Type != bson.TypeObject {
		n, ok := int32Of(v)
		switch {
		case !v.IsNumber():
			return SortPattern{}, mongoerr.New(2942507, "Invalid sort clause. Must be either 1, -1, or an object")
		case !ok || n != 1 && n != -1:
			return SortPattern{}, mongoerr.New(2942506, "Invalid sort clause: Must be either 1 or -1")
		}
		return SortPattern{sign: int(n)}, nil
	}
	var s SortPattern
	for it := v.Doc().Iter(); it.Next(); {
		n, ok := int32Of(it.Value())
		if !ok || n != 1 && n != -1 {
			return s, mongoerr.New(2942505, "Invalid sort pattern: the sort element value must be either 1 or -1")
		}
		path, err := fieldpath.New(it.Key())
		if mongoerr.Is(err, 16410) { // fields whose names start with a dollar can be sorted by
			path, err = fieldpath.Split(it.Key()), nil
		}
		if err != nil {
			return s, err
		}
		s.keys = append(s.keys, sortKey{path, int(n)})
	}
	if len(s.keys) == 0 {
		return s, mongoerr.New(2942505, "Invalid sort pattern: must have at least one field")
	}
	return s, nil
}

// Compare orders two values.
func (s SortPattern) Compare(a, b bson.Value, c bson.Collator) int {
	if len(s.keys) == 0 {
		return s.sign * bson.CompareWith(a, b, c)
	}
	for _, k := range s.keys {
		if d := bson.CompareWith(sortField(k.path, a), sortField(k.path, b), c); d != 0 {
			return d * k.sign
		}
	}
	return 0
}

func sortField(path fieldpath.Path, v bson.Value) bson.Value {
	if v.Type == bson.TypeObject {
		v = path.Eval(v.Doc())
	} else {
		v = bson.Missing
	}
	if v.IsMissing() {
		return bson.Null
	}
	return v
}

func parseSortArray(p *Parser, op *Operator, arg bson.Value, scope *Scope) (Expr, error) {
	f, err := lambdaFields(op, arg, 2942500, 2942501, "input", "sortBy")
	if err != nil {
		return nil, err
	}
	if f["input"].IsMissing() {
		return nil, mongoerr.New(2942502, "$sortArray requires 'input' to be specified")
	}
	if f["sortBy"].IsMissing() {
		return nil, mongoerr.New(2942503, "$sortArray requires 'sortBy' to be specified")
	}
	pattern, err := ParseSortPattern(f["sortBy"])
	if err != nil {
		return nil, err
	}
	input, err := p.parse(f["input"], scope)
	if err != nil {
		return nil, err
	}
	return &call{op: op, names: []string{"input", "sortBy"}, args: []Expr{input, plain(f["sortBy"])}, state: pattern, eval: evalSortArray}, nil
}

func evalSortArray(env *Env, c *call) (bson.Value, error) {
	v, err := c.args[0].Eval(env)
	switch {
	case err != nil:
		return v, err
	case v.IsNullish():
		return bson.Null, nil
	case v.Type != bson.TypeArray:
		return v, mongoerr.New(2942504, "The input argument to $sortArray must be an array, but was of type: %s", v.Type)
	}
	pattern := c.state.(SortPattern)
	vs, mark := env.elements(v)
	err = ordering.StableSized(vs, func(a, b bson.Value) int { return pattern.Compare(a, b, env.Collation) }, sizeOf, env.Interrupt)
	if err != nil {
		return v, err
	}
	return env.arrayFrom(mark)
}
