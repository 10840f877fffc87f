package accumulator

import (
	"cmp"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/sortpattern"
)

// What is here are the functions that show several documents of a window, for windows that leave documents behind them. Each document comes and
// goes once: those of the window are kept in order, and not looked for anew for each place of the window.

// leavingExtremes are the n smallest or largest values. Of equals $minN has what came first in front, and $maxN what came last, as MongoDB, which
// reads the same order from either end.
type leavingExtremes struct {
	*inOrder[bson.Value]
	n     int64
	sign  int
	array growing
}

func newLeavingMinN(p *Parser) maker { return newLeavingExtremes(p, "$minN", 1) }
func newLeavingMaxN(p *Parser) maker { return newLeavingExtremes(p, "$maxN", -1) }

func newLeavingExtremes(p *Parser, op string, sign int) maker {
	return func(init bson.Value) (Fold, error) {
		n, err := readN(op, init)
		compare := func(a, b *bson.Value) int { return bson.CompareWith(*a, *b, p.collator) }
		return &leavingExtremes{inOrder: newInOrder(op, compare, valueBytes), n: n, sign: sign}, err
	}
}

func (e *leavingExtremes) Add(args []bson.Value) (err error) {
	if !args[0].IsNullish() {
		err = e.add(args[0].Clone())
	}
	return err
}

// Remove implements Remover.
func (e *leavingExtremes) Remove(args []bson.Value) bool {
	if !args[0].IsNullish() {
		e.remove(args[0])
	}
	return true
}

func (e *leavingExtremes) Value() (bson.Value, error) {
	e.array.clear()
	show := func(v *bson.Value) { e.array.put(*v) }
	if e.sign < 0 {
		e.fromEnd(e.n, show)
	} else {
		e.fromFront(e.n, show)
	}
	return e.array.value(), nil
}

// Partial and Merge are for groups, which nothing leaves.
func (e *leavingExtremes) Partial() bson.Value    { panic("accumulator: a part of a window") }
func (e *leavingExtremes) Merge(bson.Value) error { panic("accumulator: a part of a window") }
func (e *leavingExtremes) Size() int              { return treeBytes + e.held + e.array.size() }

// leavingTop is topN over a window.
type leavingTop struct{ *topN }

func newLeavingTop(p *Parser, op string, pattern *sortpattern.Pattern, many, top bool) maker {
	group := newTop(p, op, pattern, many, top)
	return func(init bson.Value) (Fold, error) {
		f, err := group(init)
		if err != nil {
			return nil, err
		}
		return &leavingTop{f.(*topN)}, nil
	}
}

// Add keeps all, since what is in front may leave.
func (t *leavingTop) Add(args []bson.Value) error {
	key, err := t.sortKey(args)
	if err != nil {
		return err
	}
	return t.add(t.rank(key, args[0]))
}

// Remove implements Remover.
func (t *leavingTop) Remove(args []bson.Value) bool {
	key, err := t.sortKey(args)
	if err != nil {
		return false
	}
	t.remove(t.rank(key, bson.Null))
	return true
}

func (t *leavingTop) Partial() bson.Value    { panic("accumulator: a part of a window") }
func (t *leavingTop) Merge(bson.Value) error { panic("accumulator: a part of a window") }

// leavingPercentile is percentile over a window, whose numbers are all kept, so that it is exact, as in MongoDB.
type leavingPercentile struct {
	*inOrder[float64]
	at   []float64
	many bool
}

func newLeavingPercentile(op string, at []float64, many bool) *leavingPercentile {
	size := func(*float64) int { return 32 }
	return &leavingPercentile{inOrder: newInOrder(op, func(a, b *float64) int { return cmp.Compare(*a, *b) }, size), at: at, many: many}
}

func (p *leavingPercentile) Add(args []bson.Value) (err error) {
	if args[0].IsNumber() && !args[0].IsNaN() {
		err = p.add(args[0].AsDouble())
	}
	return err
}

// Remove implements Remover.
func (p *leavingPercentile) Remove(args []bson.Value) bool {
	if args[0].IsNumber() && !args[0].IsNaN() {
		p.remove(args[0].AsDouble())
	}
	return true
}

func (p *leavingPercentile) Value() (bson.Value, error) {
	return quantiles(p.at, p.many, func(at float64) bson.Value {
		if p.tree.Len() == 0 {
			return bson.Null
		}
		number, _ := p.tree.GetAt(int(trueRank(at, int64(p.tree.Len()))))
		return bson.Double(number.of)
	}), nil
}

func (p *leavingPercentile) Partial() bson.Value    { panic("accumulator: a part of a window") }
func (p *leavingPercentile) Merge(bson.Value) error { panic("accumulator: a part of a window") }
func (p *leavingPercentile) Size() int              { return treeBytes + p.held }

// edgesWindow is the values of the first or last n documents of a window that leaves some behind it: no others are looked at.
func edgesWindow(last bool) parseWindow {
	return func(p *Parser, w *WindowSpec, arg bson.Value, in windowInput) error {
		s, init, err := foldOf(p, w, arg, in)
		if err != nil || w.Bounds.Lower.Unbounded {
			return err
		}
		w.make = func() (Window, error) {
			n, err := readN(w.Op.Name, init)
			return &edges{spec: s, init: init, n: n, last: last, args: make([]bson.Value, len(s.Args))}, err
		}
		return nil
	}
}

type edges struct {
	spec *Spec
	init bson.Value
	n    int64
	last bool
	args []bson.Value
}

func (e *edges) Next(rows Rows, f Frame) (bson.Value, error) {
	fold, err := e.spec.New(e.init)
	if err != nil {
		return bson.Missing, err
	}
	low, high := f.Low, max(f.Low, f.High)
	if int64(high-low) > e.n {
		if e.last {
			low = high - int(e.n)
		} else {
			high = low + int(e.n)
		}
	}
	for i := low; i < high; i++ {
		if err := rows.Eval(i, e.spec.Args, e.args); err != nil {
			return bson.Missing, err
		}
		if err := fold.Add(e.args); err != nil {
			return bson.Missing, err
		}
	}
	return fold.Value()
}
