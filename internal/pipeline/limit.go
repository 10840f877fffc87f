package pipeline

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Limit is $limit.
type Limit struct {
	written
	N int64
}

func newLimit(n int64) *Limit { return &Limit{written{"$limit", bson.Int64(n)}, n} }

func parseLimit(_ *parsing, arg bson.Value) ([]Stage, error) {
	n, err := wholeNumber(5107201, "$limit", arg)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, mongoerr.New(15958, "the limit must be positive")
	}
	return one(newLimit(n)), nil
}

// wholeNumber is a number of documents: no fraction, not negative, fits a long.
func wholeNumber(code mongoerr.Code, name string, arg bson.Value) (int64, error) {
	fail := func(what string) error {
		return mongoerr.New(code, "invalid argument to %s stage: %s in: %s: %s", name, what, name, arg)
	}
	if !arg.IsNumber() {
		return 0, fail("Expected a number")
	}
	n, exact := arg.AsInt64()
	switch {
	case arg.IsNaN():
		return 0, fail("Expected an integer, but found NaN")
	case !exact:
		return 0, fail("Expected an integer")
	case n < 0:
		return 0, fail("Expected a non-negative number")
	}
	return n, nil
}

func (l *Limit) needs(*Dependencies) bool { return true }
