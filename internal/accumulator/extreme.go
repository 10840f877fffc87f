package accumulator

import (
	"github.com/ebbdb/ebb/internal/bson"
)

func extremeOperators() []Operator {
	return []Operator{
		{Name: "$min", Since: "2.2", Doc: "The smallest value; null and missing ones are ignored.", Group: oneWith(newMin, grows), Window: leftBehind(newLeavingMin)},
		{Name: "$max", Since: "2.2", Doc: "The largest value; null and missing ones are ignored.", Group: oneWith(newMax, grows), Window: leftBehind(newLeavingMax)},
		{Name: "$minN", Since: "5.2", Doc: "The n smallest values.", Group: several(5787900, newMinN), Window: leftBehind(newLeavingMinN)},
		{Name: "$maxN", Since: "5.2", Doc: "The n largest values.", Group: several(5787900, newMaxN), Window: leftBehind(newLeavingMaxN)},
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

func (e *extreme) Value() (bson.Value, error)     { return e.kept.Value, nil }
func (e *extreme) Partial() bson.Value            { return wrap(e.kept.Value) }
func (e *extreme) Merge(partial bson.Value) error { return e.Add([]bson.Value{unwrap(partial)}) }
func (e *extreme) Size() int                      { return cap(e.Data) + 64 }

// leavingExtreme is the extreme of what is left after the first values are taken out again. It keeps those that may still become
// it: each is behind all that are better, so that the first is the extreme. Each comes and goes once, whatever their order. Of
// equal ones $min shows the first and $max the last, as MongoDB does, which keeps all in order.
type leavingExtreme struct {
	extreme
	op       string
	may      []candidate
	in, out  int // how many values were added and removed
	mayBytes int
}

type candidate struct {
	value bson.Value
	place int // among all that were added
}

func (c *candidate) bytes() int { return len(c.value.Data) + 40 }

func newLeavingMin(p *Parser) maker { return newLeaving(p, "$min", 1) }
func newLeavingMax(p *Parser) maker { return newLeaving(p, "$max", -1) }

func newLeaving(p *Parser, op string, sign int) maker {
	return func(bson.Value) (Fold, error) {
		return &leavingExtreme{op: op, extreme: extreme{sign: sign, collate: p.collator}}, nil
	}
}

func (e *leavingExtreme) Add(args []bson.Value) error {
	v, place := args[0], e.in
	e.in++
	if v.IsNullish() {
		return nil
	}
	for n := len(e.may); n > 0 && e.beats(v, e.may[n-1].value); n-- {
		e.mayBytes -= e.may[n-1].bytes()
		e.may = e.may[:n-1]
	}
	e.may = append(e.may, candidate{v.Clone(), place})
	if e.mayBytes += e.may[len(e.may)-1].bytes(); e.mayBytes > MaxArrayBytes {
		return tooMuchMemory(e.op)
	}
	return nil
}

// beats says whether a, which came later, leaves b no chance.
func (e *leavingExtreme) beats(a, b bson.Value) bool {
	c := e.sign * bson.CompareWith(a, b, e.collate)
	return c < 0 || c == 0 && e.sign < 0
}

// Remove implements Remover.
func (e *leavingExtreme) Remove([]bson.Value) bool {
	if len(e.may) > 0 && e.may[0].place == e.out {
		e.mayBytes -= e.may[0].bytes()
		e.may = e.may[1:]
	}
	e.out++
	return true
}

func (e *leavingExtreme) Value() (bson.Value, error) {
	if len(e.may) == 0 {
		return bson.Missing, nil
	}
	return e.may[0].value, nil
}

func (e *leavingExtreme) Size() int { return e.mayBytes + 64 }

// extremes are the n smallest or largest values, best first, and of equals the ones that came first.
type extremes struct {
	*inOrder[bson.Value]
	n     int64
	array growing
}

func newMinN(p *Parser) maker { return newExtremes(p, "$minN", 1) }
func newMaxN(p *Parser) maker { return newExtremes(p, "$maxN", -1) }

func newExtremes(p *Parser, op string, sign int) maker {
	compare := func(a, b *bson.Value) int { return sign * bson.CompareWith(*a, *b, p.collator) }
	return func(init bson.Value) (Fold, error) {
		n, err := readN(op, init)
		return &extremes{inOrder: newInOrder(op, compare, valueBytes), n: n}, err
	}
}

func (e *extremes) Add(args []bson.Value) error {
	v := args[0]
	if v.IsNullish() || !e.admits(e.n, false, func(with *bson.Value) int { return e.compare(&v, with) }) {
		return nil
	}
	return e.add(v.Clone())
}

func (e *extremes) all() bson.Value {
	e.array.clear()
	e.fromFront(e.n, func(v *bson.Value) { e.array.put(*v) })
	return e.array.value()
}

func (e *extremes) Value() (bson.Value, error) { return e.all(), nil }
func (e *extremes) Partial() bson.Value        { return e.all() }
func (e *extremes) Size() int                  { return treeBytes + e.held + e.array.size() }

func (e *extremes) Merge(partial bson.Value) error {
	for it := partial.Doc().Iter(); it.Next(); {
		if err := e.Add([]bson.Value{it.Value()}); err != nil {
			return err
		}
	}
	return nil
}
