package expr

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// The operators on encrypted strings compare what a driver encrypted with what it encrypted of the text to look for. A server
// that is given the text itself cannot answer.

func encryptedOperators() []Operator {
	return []Operator{
		{Name: "$encStrContains", Since: "8.2", Doc: "Whether an encrypted string holds another.", Shape: encryptedText("substring")},
		{Name: "$encStrEndsWith", Since: "8.2", Doc: "Whether an encrypted string ends with another.", Shape: encryptedText("suffix")},
		{Name: "$encStrNormalizedEq", Since: "8.2", Doc: "Whether an encrypted string equals another but for case and accents.", Shape: encryptedText("string")},
		{Name: "$encStrStartsWith", Since: "8.2", Doc: "Whether an encrypted string begins with another.", Shape: encryptedText("prefix")},
	}
}

const (
	// encryptedSubtype is that of binary data that a driver encrypted; its first byte tells what it is.
	encryptedSubtype = 6
	// The first bytes of what may be looked for: what is to be encrypted, and what to find text by.
	placeholderKind, findTextKind = 3, 18
	// storedTextKind is that of a string encrypted for such queries.
	storedTextKind = 17
)

func encryptedText(text string) Shape {
	return special(func(p *Parser, op *Operator, arg bson.Value, scope *Scope) (Expr, error) {
		input, look, err := readEncryptedText(op.Name, text, arg)
		if err != nil {
			return nil, err
		}
		find, err := p.parse(look, scope)
		if err != nil {
			return nil, err
		}
		look, constant := Constant(find)
		if !constant {
			return nil, mongoerr.New(10111801, "%s expects a constant literal for '%s'", op.Name, text)
		}
		if look.Type != bson.TypeString && !isFindText(look) {
			if look.Type == bson.TypeBinary {
				return nil, mongoerr.New(10112803, "%s was given encrypted data that is no text to find", op.Name)
			}
			return nil, mongoerr.New(10111802, "%s requires '%s' to be a string or binary data", op.Name, text)
		}
		if !strings.HasPrefix(input.Str(), "$") {
			return nil, mongoerr.New(16873, "FieldPath '%s' doesn't start with $", input.Str())
		}
		field, err := p.parse(input, scope)
		if err != nil {
			return nil, err
		}
		return &call{op: op, args: []Expr{field, find}, names: []string{"input", text}, eval: evalEncryptedText}, nil
	})
}

func readEncryptedText(op, text string, arg bson.Value) (input, look bson.Value, err error) {
	if arg.Type != bson.TypeObject {
		return input, look, mongoerr.New(10065, "invalid parameter: expected an object (%s)", op)
	}
	for it := arg.Doc().Iter(); it.Next(); {
		switch it.Key() {
		case "input":
			if input = it.Value(); input.Type != bson.TypeString {
				return input, look, mongoerr.New(mongoerr.TypeMismatch, "BSON field '%s.input' is the wrong type '%s', expected type 'string'", op, input.Type)
			}
		case text:
			look = it.Value()
		default:
			return input, look, mongoerr.New(40415, "BSON field '%s.%s' is an unknown field.", op, it.Key())
		}
	}
	for _, f := range []struct {
		name string
		v    bson.Value
	}{{"input", input}, {text, look}} {
		if f.v.IsMissing() {
			return input, look, mongoerr.New(40414, "BSON field '%s.%s' is missing but a required field", op, f.name)
		}
	}
	return input, look, nil
}

func isFindText(v bson.Value) bool {
	kind := encryptedKind(v)
	return kind == placeholderKind || kind == findTextKind
}

// encryptedKind is what kind of encrypted data v is, -1 for any other value.
func encryptedKind(v bson.Value) int {
	if v.Type != bson.TypeBinary {
		return -1
	}
	subtype, data := v.Binary()
	if subtype != encryptedSubtype || len(data) == 0 {
		return -1
	}
	return int(data[0])
}

func evalEncryptedText(env *Env, c *call) (bson.Value, error) {
	v, err := c.args[0].Eval(env)
	if err != nil || v.IsNullish() {
		return bson.Null, err
	}
	look, err := c.args[1].Eval(env)
	switch {
	case err != nil:
		return bson.Missing, err
	case look.Type == bson.TypeString:
		return bson.Missing, mongoerr.New(10111808, "Expression%s can't be evaluated without binary payload", strings.ToUpper(c.op.Name[1:2])+c.op.Name[2:])
	case encryptedKind(v) == storedTextKind:
		return bson.Missing, mongoerr.New(mongoerr.NotImplemented, "queries on encrypted strings are not implemented yet")
	}
	return bson.Bool(false), nil
}
