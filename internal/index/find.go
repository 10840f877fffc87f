package index

import (
	"github.com/ebbdb/ebb/internal/bson"
)

// WithKey finds those of defs whose key pattern is key: the same fields in the same order, with values that compare equal,
// so that 1 and 1.0 are the same and 1 and 2 are not. A text index has the one that listIndexes shows.
func WithKey(defs []*Definition, key bson.Doc) (found []*Definition) {
	for _, d := range defs {
		if bson.CompareDocs(d.Key, key, nil) == 0 {
			found = append(found, d)
		}
	}
	return found
}

// WithoutUnknown is a specification without the options that no index has.
func WithoutUnknown(spec bson.Doc) bson.Doc {
	b := bson.BuildOn(make([]byte, 0, len(spec)))
	for it := spec.Iter(); it.Next(); {
		if _, known := specOptions[it.Key()]; known {
			b.Value(it.Key(), it.Value())
		}
	}
	return b.Doc()
}
