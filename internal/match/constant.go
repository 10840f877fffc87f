package match

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/fieldpath"
)

func miscellaneousOperators() []Operator {
	return []Operator{
		{Name: "$comment", Doc: "Says something to people who read logs; matches everything.", Since: "2.4",
			top: func(*parsing, bson.Value) (Node, error) { return nil, nil }},
		{Name: "$sampleRate", Doc: "Matches each document with a given probability.", Since: "4.4.2", top: parseSampleRate},
		{Name: "$alwaysTrue", Doc: "Matches everything.", Since: "3.6", top: parseAlwaysTrue},
		{Name: "$alwaysFalse", Doc: "Matches nothing.", Since: "3.6", top: parseAlwaysFalse},
		{Name: "$ref", Doc: "Compares the collection of a DBRef.", Since: "1.0", top: refField("$ref")},
		{Name: "$id", Doc: "Compares the identity in a DBRef.", Since: "1.0", top: refField("$id")},
		{Name: "$db", Doc: "Compares the database of a DBRef.", Since: "1.0", top: refField("$db")},
	}
}

// AlwaysTrue matches everything.
type AlwaysTrue struct{}

// AlwaysFalse matches nothing.
type AlwaysFalse struct{}

func (*AlwaysTrue) match(run, subject) (bool, error)    { return true, nil }
func (*AlwaysTrue) test(run, bson.Value) (bool, error)  { return true, nil }
func (*AlwaysFalse) match(run, subject) (bool, error)   { return false, nil }
func (*AlwaysFalse) test(run, bson.Value) (bool, error) { return false, nil }

func parseAlwaysTrue(_ *parsing, arg bson.Value) (Node, error) {
	return &AlwaysTrue{}, isOne("$alwaysTrue", arg)
}

func parseAlwaysFalse(_ *parsing, arg bson.Value) (Node, error) {
	return &AlwaysFalse{}, isOne("$alwaysFalse", arg)
}

func isOne(name string, arg bson.Value) error {
	n, err := integer(name, arg)
	switch {
	case err != nil:
		return failedToParse("%s", err)
	case n != 1:
		return failedToParse("%s must be an integer value of 1", name)
	}
	return nil
}

// refField parses a field of a DBRef, which looks like an operator. Only the identity knows the collation.
func refField(name string) func(*parsing, bson.Value) (Node, error) {
	return func(p *parsing, arg bson.Value) (Node, error) {
		if arg.Type == bson.TypeUndefined {
			return nil, badValue("cannot compare to undefined")
		}
		var c *collation.Collation
		if name == "$id" {
			c = p.Collation
		}
		return &Compare{fieldpath.Split(name), Eq, arg, c}, nil
	}
}

// SampleRate matches each document with probability Rate.
type SampleRate struct{ Rate float64 }

func (n *SampleRate) match(c run, _ subject) (bool, error) {
	if c.env == nil || c.env.Rand == nil {
		panic("match: $sampleRate needs an Env with Rand")
	}
	return c.env.Rand() < n.Rate, nil
}

func (n *SampleRate) test(c run, _ bson.Value) (bool, error) { return n.match(c, subject{}) }

func parseSampleRate(p *parsing, arg bson.Value) (Node, error) {
	if p.level != topLevel {
		return nil, badValue("$sampleRate can only be applied to the top-level document")
	}
	if !arg.IsNumber() {
		return nil, badValue("argument to $sampleRate must be a numeric type")
	}
	rate := arg.AsDouble()
	if !(rate >= 0 && rate <= 1) {
		return nil, badValue("numeric argument to $sampleRate must be in [0, 1]")
	}
	return &SampleRate{rate}, nil
}
