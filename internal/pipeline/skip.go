package pipeline

import "github.com/ebbdb/ebb/internal/bson"

// Skip is $skip.
type Skip struct {
	written
	N int64
}

func newSkip(n int64) *Skip { return &Skip{written{"$skip", bson.Int64(n)}, n} }

func parseSkip(_ *parsing, arg bson.Value) ([]Stage, error) {
	n, err := wholeNumber(5107200, "$skip", arg)
	if err != nil {
		return nil, err
	}
	return one(newSkip(n)), nil
}

func (s *Skip) needs(*Dependencies) bool { return true }
