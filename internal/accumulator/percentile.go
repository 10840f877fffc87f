package accumulator

import (
	"math"
	"slices"

	"github.com/caio/go-tdigest/v4"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func percentileOperators() []Operator {
	return []Operator{
		{Name: "$median", Since: "7.0", Doc: "About the middle of all numbers.", Group: parsePercentile(false), Window: leftBehind(nil)},
		{Name: "$percentile", Since: "7.0", Doc: "About the numbers below which given parts of all numbers lie.", Group: parsePercentile(true), Window: leftBehind(nil)},
	}
}

const (
	// exactCount is up to how many numbers percentiles are exact.
	exactCount = 8192
	// digestCompression bounds the error beyond that.
	digestCompression = 1000
	// digestBytes is what a digest takes: it has ten times as much room at once, 16 bytes a centroid.
	digestBytes = 160 * digestCompression
	// percentileBytes is what a percentile takes beside its numbers.
	percentileBytes = 160
)

// parsePercentile reads {input: <expression>, method: "approximate"} and, for $percentile, p: an array of numbers.
func parsePercentile(many bool) parseGroup {
	return func(p *Parser, op *Operator, arg bson.Value, scope *expr.Scope) (*Spec, error) {
		if arg.Type != bson.TypeObject {
			code := mongoerr.Code(7429703)
			if !many {
				code = 7436100
			}
			return nil, mongoerr.New(code, "specification must be an object; found %s: %s", op.Name, arg)
		}
		var input, ps expr.Expr
		method, said := bson.Missing, bson.Missing
		for it := arg.Doc().Iter(); it.Next(); {
			var err error
			switch {
			case it.Key() == "input":
				input, err = p.exprs.Parse(it.Value(), scope)
			case it.Key() == "method":
				method = it.Value()
			case it.Key() == "p" && many:
				said = it.Value()
				ps, err = p.exprs.Parse(said, scope)
			default:
				return nil, mongoerr.New(40415, "BSON field '%s.%s' is an unknown field.", op.Name, it.Key())
			}
			if err != nil {
				return nil, err
			}
		}
		missing := func(field string) error {
			return mongoerr.New(40414, "BSON field '%s.%s' is missing but a required field", op.Name, field)
		}
		switch {
		case input == nil:
			return nil, missing("input")
		case many && ps == nil:
			return nil, missing("p")
		case method.IsMissing():
			return nil, missing("method")
		}
		at := []float64{0.5}
		if many {
			var err error
			if at, err = expr.Percentiles(ps, said); err != nil {
				return nil, err
			}
		}
		if err := expr.CheckPercentileMethod(op.Name, method); err != nil {
			return nil, err
		}
		s := &Spec{Op: op, Args: []expr.Expr{input}, Grows: true}
		s.make = func(bson.Value) (Fold, error) { return newPercentile(at, many), nil }
		s.leaving = func(bson.Value) (Fold, error) { return newLeavingPercentile(op.Name, at, many), nil }
		s.print = func(s *Spec) bson.Value {
			b := bson.Build().Value("input", s.Args[0].Value())
			if many {
				b.Value("p", ps.Value())
			}
			return b.Value("method", method).Doc().Value()
		}
		return s, nil
	}
}

// percentile keeps all numbers up to exactCount, and a t-digest of them from then on.
type percentile struct {
	at       []float64
	many     bool
	numbers  []float64
	sorted   bool
	digest   *tdigest.TDigest
	ordered  []centroid // the digest as Value reads it; nil when that is to be made anew
	neg, pos int64      // infinities, which a digest cannot hold

	least, greatest float64 // of what the digest holds, whose outer centroids do not tell them
}

// centroid is weight numbers around mean, which have the ranks below end that the centroids before it leave.
type centroid struct {
	mean, weight float64
	end          int64
}

func newPercentile(at []float64, many bool) *percentile {
	return &percentile{at: at, many: many, least: math.Inf(1), greatest: math.Inf(-1)}
}

func (p *percentile) Add(args []bson.Value) error {
	if !args[0].IsNumber() || args[0].IsNaN() {
		return nil
	}
	return p.take(args[0].AsDouble(), 1)
}

func (p *percentile) take(f float64, weight uint64) error {
	if p.digest != nil {
		return p.digestOne(f, weight)
	}
	p.sorted = false
	p.numbers = append(p.numbers, f)
	if len(p.numbers) > exactCount {
		return p.startDigest()
	}
	return nil
}

func (p *percentile) startDigest() error {
	d, err := tdigest.New(tdigest.Compression(digestCompression), tdigest.LocalRandomNumberGenerator(1))
	if err != nil {
		return err
	}
	p.digest = d
	for _, f := range p.numbers {
		if err := p.digestOne(f, 1); err != nil {
			return err
		}
	}
	p.numbers = nil
	return nil
}

func (p *percentile) digestOne(f float64, weight uint64) error {
	switch {
	case math.IsInf(f, -1):
		p.neg += int64(weight)
	case math.IsInf(f, 1):
		p.pos += int64(weight)
	default:
		p.widen(f)
		p.ordered = nil
		return p.digest.AddWeighted(f, weight)
	}
	return nil
}

func (p *percentile) widen(f float64) {
	p.least, p.greatest = min(p.least, f), max(p.greatest, f)
}

func (p *percentile) Value() (bson.Value, error) { return quantiles(p.at, p.many, p.quantile), nil }

// quantiles are those at each of several places, or at the one.
func quantiles(at []float64, many bool, quantile func(float64) bson.Value) bson.Value {
	if !many {
		return quantile(at[0])
	}
	vs := make([]bson.Value, len(at))
	for i, p := range at {
		vs[i] = quantile(p)
	}
	return bson.ArrayOf(vs...)
}

// quantile is the number of rank ⌈at·n⌉, null when there is none.
func (p *percentile) quantile(at float64) bson.Value {
	if p.digest != nil {
		return bson.Double(p.digested(at))
	}
	if len(p.numbers) == 0 {
		return bson.Null
	}
	if !p.sorted {
		slices.Sort(p.numbers)
		p.sorted = true
	}
	return bson.Double(p.numbers[trueRank(at, int64(len(p.numbers)))])
}

func trueRank(at float64, n int64) int64 {
	return max(0, min(n-1, int64(math.Ceil(at*float64(n)))-1))
}

func (p *percentile) digested(at float64) float64 {
	finite := int64(p.digest.Count())
	n := finite + p.neg + p.pos
	rank := trueRank(at, n)
	switch {
	case rank < p.neg:
		return math.Inf(-1)
	case rank >= p.neg+finite:
		return math.Inf(1)
	case rank == 0 && at == 0:
		return p.least
	case rank == n-1 && at == 1:
		return p.greatest
	}
	return p.interpolated(rank - p.neg)
}

// interpolated is the number of a rank, when numbers lie evenly between the means of centroids, and between the outer ones
// and the ends.
func (p *percentile) interpolated(rank int64) float64 {
	cs := p.centroids()
	i, _ := slices.BinarySearchFunc(cs, rank, func(c centroid, rank int64) int {
		if c.end > rank {
			return 1
		}
		return -1
	})
	c := cs[i]
	if c.weight == 1 {
		return c.mean
	}
	below, above := centroid{mean: p.least}, c
	behind := c.weight - float64(c.end-1-rank) // how many of the centroid's numbers are up to this rank
	at := 2 * behind
	if behind <= c.weight/2+1 {
		if i > 0 {
			below = cs[i-1]
		}
		at += below.weight
	} else {
		below, above = c, centroid{mean: p.greatest}
		if i+1 < len(cs) {
			above = cs[i+1]
		}
		at -= below.weight
	}
	return min(above.mean, below.mean+(above.mean-below.mean)*at/(below.weight+above.weight))
}

func (p *percentile) centroids() []centroid {
	if p.ordered == nil {
		end := int64(0)
		p.digest.ForEachCentroid(func(mean float64, count uint64) bool {
			end += int64(count)
			p.ordered = append(p.ordered, centroid{mean, float64(count), end})
			return true
		})
	}
	return p.ordered
}

// Partial is an array of numbers and their weights by turns. Those without weight are the ends of a digest.
func (p *percentile) Partial() bson.Value {
	b := bson.Build()
	i := 0
	put := func(f float64, n int64) {
		b.Double(bson.IndexKey(i), f).Int64(bson.IndexKey(i+1), n)
		i += 2
	}
	for _, f := range p.numbers {
		put(f, 1)
	}
	if p.digest != nil {
		put(math.Inf(-1), p.neg)
		put(math.Inf(1), p.pos)
		put(p.least, 0)
		put(p.greatest, 0)
		p.digest.ForEachCentroid(func(mean float64, count uint64) bool {
			put(mean, int64(count))
			return true
		})
	}
	return b.Doc().ArrayValue()
}

func (p *percentile) Merge(partial bson.Value) error {
	for it := partial.Doc().Iter(); it.Next(); {
		f := it.Value().Double()
		it.Next()
		weight := uint64(it.Value().Int64())
		if weight == 0 {
			if !math.IsInf(f, 0) {
				p.widen(f)
			}
			continue
		}
		if weight > 1 && p.digest == nil {
			if err := p.startDigest(); err != nil {
				return err
			}
		}
		if err := p.take(f, weight); err != nil {
			return err
		}
	}
	return nil
}

func (p *percentile) Size() int {
	n := percentileBytes + 8*cap(p.numbers) + 24*cap(p.ordered)
	if p.digest != nil {
		n += digestBytes
	}
	return n
}
