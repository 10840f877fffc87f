package accumulator

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/javascript"
)

const (
	// maxReduced is about how many bytes of values one call of a reduce function is given.
	maxReduced = bson.MaxDocSize / 4
	// reduceEarly is how many bytes of values a group holds before it reduces them ahead of time.
	reduceEarly = 1 << 20
)

// Reduction is mapReduce's own accumulator: of the values of one key, the one that reduce makes of them. A single value is
// not reduced.
func Reduction(p *Parser, reduce *javascript.Function, key, value expr.Expr) *Spec {
	var runtime *javascript.Runtime
	op := &Operator{Name: "$_internalJsReduce"}
	s := &Spec{Op: op, Args: []expr.Expr{key, value}, Grows: true}
	s.make = func(bson.Value) (Fold, error) {
		if runtime == nil {
			runtime = p.exprs.NewEnv().JavaScript()
		}
		return &reduction{reduce: reduce, runtime: runtime}, nil
	}
	s.print = func(*Spec) bson.Value { return bson.Build().String("eval", reduce.Source()).Doc().Value() }
	return s
}

type reduction struct {
	reduce  *javascript.Function
	runtime *javascript.Runtime
	key     bson.Value
	values  []bson.Value
	size    int
}

func (r *reduction) Add(args []bson.Value) error {
	if r.values == nil {
		r.key = orNull(args[0]).Clone()
	}
	r.push(args[1])
	if r.size > reduceEarly && len(r.values) > 1 {
		return r.reduceOnce()
	}
	return nil
}

func (r *reduction) push(v bson.Value) {
	r.values = append(r.values, orNull(v).Clone())
	r.size += len(v.Data) + 32
}

// reduceOnce replaces the first values, as many as one call takes, by one.
func (r *reduction) reduceOnce() error {
	n, bytes := 0, 0
	for n < len(r.values) && (n < 2 || bytes+len(r.values[n].Data) <= maxReduced) {
		bytes += len(r.values[n].Data)
		n++
	}
	v, err := r.runtime.Call(r.reduce, bson.Missing, r.key, bson.ArrayOf(r.values[:n]...))
	if err != nil {
		return err
	}
	rest := r.values[n:]
	r.values, r.size = nil, 0
	r.push(v)
	for _, v := range rest {
		r.push(v)
	}
	return nil
}

func (r *reduction) Value() (bson.Value, error) {
	for len(r.values) > 1 {
		if err := r.reduceOnce(); err != nil {
			return bson.Missing, err
		}
	}
	return r.values[0], nil
}

// Partial is the key and the values, for Merge.
func (r *reduction) Partial() bson.Value {
	return bson.ArrayOf(append([]bson.Value{orNull(r.key)}, r.values...)...)
}

func (r *reduction) Merge(partial bson.Value) error {
	vs := partial.Doc().Values(nil)
	for _, v := range vs[1:] {
		if err := r.Add([]bson.Value{vs[0], v}); err != nil {
			return err
		}
	}
	return nil
}

func (r *reduction) Size() int { return r.size + 128 }
