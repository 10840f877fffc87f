package pipeline

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/sortpattern"
)

// Sort is $sort.
type Sort struct {
	written
	Pattern *sortpattern.Pattern
	// Limit is how many documents are wanted, 0 for all: a rewrite takes it from the stages behind.
	Limit int64
}

func parseSort(_ *parsing, arg bson.Value) ([]Stage, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(15973, "the $sort key specification must be an object")
	}
	pattern, err := sortpattern.Parse(arg.Doc())
	if err != nil {
		return nil, err
	}
	return one(&Sort{written: written{"$sort", arg}, Pattern: pattern}), nil
}

func (s *Sort) needs(d *Dependencies) bool {
	d.paths(s.Pattern.Paths()...)
	d.Meta = append(d.Meta, s.Pattern.Meta()...)
	return true
}
