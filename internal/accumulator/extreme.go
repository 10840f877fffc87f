package accumulator

import (
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
)

func extremeOperators() []Operator {
	return []Operator{
		{Name: "$min", Since: "2.2", Doc: "The smallest value; null and missing ones are ignored.", Group: oneWith(newMin, grows), Window: foldWindow},
		{Name: "$max", Since: "2.2", Doc: "The largest value; null and missing ones are ignored.", Group: oneWith(newMax, grows), Window: foldWindow},
		{Name: "$minN", Since: "5.2", Doc: "The n smallest values.", Group: several(newMinN), Window: foldWindow},
		{Name: "$maxN", Since: "5.2", Doc: "The n largest values.", Group: several(newMaxN), Window: foldWindow},
	}
}

// extreme is the smallest value (sign 1) or the largest (sign -1).
type extreme struct {
	kept
	sign    int
	collate bson.Collator
}

func newMin(p *Parser) maker { return newExtreme(p, 1) }
func newMax(p *Parser) maker { return newExtreme(p, -1) }

func newExtreme(p *Parser, sign int) maker {
	return func(bson.Value) (Fold, error) { return &extreme{sign: sign, collate: p.collator}, nil }
}

func (e *extreme) Add(args []bson.Value) error {
	v := args[0]
	if v.IsNullish() {
		return nil
	}
	if e.IsMissing() || e.sign*bson.CompareWith(v, e.kept.Value, e.collate) < 0 {
		e.set(v)
	}
	return nil
}

// Remove can take out all but the extreme itself.
func (e *extreme) Remove(args []bson.Value) bool {
	return args[0].IsNullish() || bson.CompareWith(args[0], e.kept.Value, e.collate) != 0
}

func (e *extreme) Value() (bson.Value, error)     { return e.kept.Value, nil }
func (e *extreme) Partial() bson.Value            { return wrap(e.kept.Value) }
func (e *extreme) Merge(partial bson.Value) error { return e.Add([]bson.Value{unwrap(partial)}) }
func (e *extreme) Size() int                      { return cap(e.Data) + 64 }

// extremes are the n smallest or largest values, best first.
type extremes struct {
	op      string
	n       int64
	sign    int
	collate bson.Collator
	vs      []bson.Value
	held    int
	out     growing
}

func newMinN(p *Parser) maker { return newExtremes(p, "$minN", 1) }
func newMaxN(p *Parser) maker { return newExtremes(p, "$maxN", -1) }

func newExtremes(p *Parser, op string, sign int) maker {
	return func(init bson.Value) (Fold, error) {
		n, err := readN(op, init)
		return &extremes{op: op, n: n, sign: sign, collate: p.collator}, err
	}
}

func (e *extremes) Add(args []bson.Value) error {
	v := args[0]
	if v.IsNullish() {
		return nil
	}
	full := int64(len(e.vs)) == e.n
	if full && e.compare(v, e.vs[len(e.vs)-1]) >= 0 {
		return nil
	}
	// Behind its equals, so that the first of them stay.
	at, _ := slices.BinarySearchFunc(e.vs, v, func(a, b bson.Value) int {
		if e.compare(a, b) <= 0 {
			return -1
		}
		return 1
	})
	if full {
		e.held -= len(e.vs[len(e.vs)-1].Data) + 32
		e.vs = e.vs[:len(e.vs)-1]
	}
	e.vs = slices.Insert(e.vs, at, v.Clone())
	e.held += len(v.Data) + 32
	if e.held > MaxArrayBytes {
		return tooMuchMemory(e.op)
	}
	return nil
}

func (e *extremes) compare(a, b bson.Value) int { return e.sign * bson.CompareWith(a, b, e.collate) }

func (e *extremes) Value() (bson.Value, error) { return collect(&e.out, e.vs), nil }
func (e *extremes) Partial() bson.Value        { return collect(&e.out, e.vs) }
func (e *extremes) Size() int                  { return e.held + e.out.size() }

func (e *extremes) Merge(partial bson.Value) error {
	for it := partial.Doc().Iter(); it.Next(); {
		if err := e.Add([]bson.Value{it.Value()}); err != nil {
			return err
		}
	}
	return nil
}
