package pipeline

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Sample is $sample.
type Sample struct {
	written
	Size int64
}

func parseSample(_ *parsing, arg bson.Value) ([]Stage, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(28745, "the $sample stage specification must be an object")
	}
	s := &Sample{written: written{"$sample", arg}}
	found := false
	for it := arg.Doc().Iter(); it.Next(); {
		if it.Key() != "size" {
			return nil, mongoerr.New(28748, "unrecognized option to $sample: %s", it.Key())
		}
		if !it.Value().IsNumber() {
			return nil, mongoerr.New(28746, "size argument to $sample must be a number")
		}
		s.Size = it.Value().RoundInt64()
		found = true
	}
	if !found {
		return nil, mongoerr.New(28749, "$sample stage must specify a size")
	}
	if s.Size <= 0 {
		return nil, mongoerr.New(28747, "size argument to $sample must be a positive integer")
	}
	return one(s), nil
}

func (s *Sample) needs(d *Dependencies) bool {
	d.random = true
	return true
}
