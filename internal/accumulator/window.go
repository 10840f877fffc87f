package accumulator

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/sortpattern"
)

// Rows is a partition as window functions see it.
type Rows interface {
	Len() int
	// Eval evaluates es on document i into dst. The values are good until the next call.
	Eval(i int, es []expr.Expr, dst []bson.Value) error
	// SortValue is document i's value of the first sort key; it is good until the next call.
	SortValue(i int) (bson.Value, error)
	// SameSort says whether documents i and j are equal to the sort pattern.
	SameSort(i, j int) (bool, error)
}

// Frame is a document of a partition and its window: the documents from Low up to, not including, High.
type Frame struct{ At, Low, High int }

// Window is a window function at work on one partition. Next is called for each document in order; its value is good until
// the next call.
type Window interface {
	Next(rows Rows, f Frame) (bson.Value, error)
}

// WindowSpec is a parsed window function.
type WindowSpec struct {
	Op     *Operator
	Bounds Bounds
	exprs  []expr.Expr
	make   func() (Window, error)
}

// New starts a partition.
func (w *WindowSpec) New() (Window, error) { return w.make() }

// Exprs are all expressions of the function.
func (w *WindowSpec) Exprs() []expr.Expr { return w.exprs }

// WindowScope is what a window function is parsed for.
type WindowScope struct {
	Scope *expr.Scope
	// Sort is the stage's sortBy, nil without; Sorted says that one was given, be it empty.
	Sort   *sortpattern.Pattern
	Sorted bool
}

type parseWindow func(p *Parser, w *WindowSpec, arg bson.Value, in windowInput) error

// windowInput is what stands around the function's argument.
type windowInput struct {
	WindowScope
	// bounds says that a window was given.
	bounds bool
}

// Window reads {$sum: "$a", window: {…}}, the value of the field name of a $setWindowFields.
func (p *Parser) Window(name string, v bson.Value, in WindowScope) (*WindowSpec, error) {
	if v.Type != bson.TypeObject {
		return nil, mongoerr.New(mongoerr.FailedToParse, "The field '%s' must be an object that specifies a window function", name)
	}
	var op *Operator
	arg, window := bson.Missing, bson.Missing
	for it := v.Doc().Iter(); it.Next(); {
		if op != nil && op.alone {
			return nil, mongoerr.New(5371601, "Rank style window functions take no other arguments")
		}
		switch key := it.Key(); {
		case key == "window":
			if it.Value().Type != bson.TypeObject {
				return nil, mongoerr.New(mongoerr.FailedToParse, "'window' field must be an object")
			}
			window = it.Value()
		case !strings.HasPrefix(key, "$"):
			return nil, mongoerr.New(mongoerr.FailedToParse, "Window function found an unknown argument: %s", key)
		case op != nil:
			return nil, mongoerr.New(mongoerr.FailedToParse, "Cannot specify two functions in window function spec: %s", v)
		default:
			if op = p.table[key]; op == nil || op.Window == nil {
				return nil, mongoerr.New(mongoerr.FailedToParse, "Unrecognized window function, %s", key)
			}
			arg = it.Value()
		}
	}
	if op == nil {
		return nil, mongoerr.New(mongoerr.FailedToParse, "Expected a $-prefixed window function, in: %s", v)
	}
	w := &WindowSpec{Op: op, Bounds: wholePartition()}
	if !window.IsMissing() {
		var err error
		if w.Bounds, err = parseBounds(window.Doc(), in); err != nil {
			return nil, err
		}
	}
	return w, op.Window(p, w, arg, windowInput{in, !window.IsMissing()})
}

// foldWindow makes a window function of an accumulator.
func foldWindow(p *Parser, w *WindowSpec, arg bson.Value, in windowInput) error {
	_, _, err := foldOf(p, w, arg, in)
	return err
}

// foldOf is foldWindow, and the accumulator with what it begins with.
func foldOf(p *Parser, w *WindowSpec, arg bson.Value, in windowInput) (s *Spec, init bson.Value, err error) {
	if s, err = w.Op.Group(p, w.Op, arg, in.Scope); err != nil {
		return nil, init, err
	}
	w.exprs = s.Exprs()
	if s.Init != nil {
		if expr.HasVariables(s.Init) { // of a $lookup, which have no values yet
			return nil, init, mongoerr.New(mongoerr.NotImplemented, "'n' of a window function with variables is not implemented")
		}
		if init, err = s.Init.Eval(p.exprs.NewEnv()); err != nil { // before there is a document: its fields are missing
			return nil, init, err
		}
		init = init.Clone()
		if _, err = readN(w.Op.Name, init); err != nil {
			return nil, init, err
		}
	}
	w.make = func() (Window, error) { return newSliding(s, init) }
	return s, init, nil
}

// leftBehind is foldWindow with another fold for windows that leave documents behind them: leaving, or that of the accumulator where it is nil.
func leftBehind(leaving func(*Parser) maker) parseWindow {
	return func(p *Parser, w *WindowSpec, arg bson.Value, in windowInput) error {
		group, init, err := foldOf(p, w, arg, in)
		if err != nil || w.Bounds.Lower.Unbounded {
			return err
		}
		make := group.leaving
		if leaving != nil {
			make = leaving(p)
		}
		s := &Spec{Op: w.Op, Args: group.Args, make: make}
		w.make = func() (Window, error) { return newSliding(s, init) }
		return nil
	}
}

// sliding is an accumulator over a window that moves forward.
type sliding struct {
	spec      *Spec
	init      bson.Value
	fold      Fold
	low, high int // what fold holds
	args      []bson.Value
}

func newSliding(s *Spec, init bson.Value) (Window, error) {
	w := &sliding{spec: s, init: init, args: make([]bson.Value, len(s.Args))}
	return w, w.restart(0)
}

func (w *sliding) restart(low int) error {
	var err error
	w.fold, err = w.spec.New(w.init)
	w.low, w.high = low, low
	return err
}

// Next takes in the documents that have come, and then takes out those that the window has left: MongoDB's order, which shows in
// the last digits of sums that are not exact.
func (w *sliding) Next(rows Rows, f Frame) (bson.Value, error) {
	if f.High < f.Low {
		f.High = f.Low
	}
	r, removes := w.fold.(Remover)
	if f.Low < w.low || f.Low > w.low && (!removes || w.low == w.high) {
		if err := w.restart(f.Low); err != nil {
			return bson.Missing, err
		}
	}
	if err := w.add(rows, f.High); err != nil {
		return bson.Missing, err
	}
	for ; w.low < f.Low; w.low++ {
		if err := rows.Eval(w.low, w.spec.Args, w.args); err != nil {
			return bson.Missing, err
		}
		if r.Remove(w.args) {
			continue
		}
		if err := w.restart(f.Low); err != nil {
			return bson.Missing, err
		}
		if err := w.add(rows, f.High); err != nil {
			return bson.Missing, err
		}
		break
	}
	return w.fold.Value()
}

func (w *sliding) add(rows Rows, high int) error {
	for ; w.high < high; w.high++ {
		if err := rows.Eval(w.high, w.spec.Args, w.args); err != nil {
			return err
		}
		if err := w.fold.Add(w.args); err != nil {
			return err
		}
	}
	return nil
}

// edgeWindow is the value of the window's first or last document.
func edgeWindow(last bool) parseWindow {
	return func(p *Parser, w *WindowSpec, arg bson.Value, in windowInput) error {
		e, err := p.exprs.Parse(arg, in.Scope)
		if err != nil {
			return err
		}
		w.exprs = []expr.Expr{e}
		w.make = func() (Window, error) { return &edge{of: w.exprs, last: last}, nil }
		return nil
	}
}

type edge struct {
	of   []expr.Expr
	last bool
	v    [1]bson.Value
}

func (e *edge) Next(rows Rows, f Frame) (bson.Value, error) {
	if f.High <= f.Low {
		return bson.Null, nil
	}
	i := f.Low
	if e.last {
		i = f.High - 1
	}
	err := rows.Eval(i, e.of, e.v[:])
	return e.v[0], err
}
