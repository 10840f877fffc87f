package projection

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// UnsetPaths reads the specification of an $unset stage.
func UnsetPaths(v bson.Value) ([]string, error) {
	var paths []string
	switch v.Type {
	case bson.TypeString:
		paths = []string{v.Str()}
	case bson.TypeArray:
		if v.Doc().IsEmpty() {
			return nil, mongoerr.New(31119, "$unset specification must be a string or an array with at least one field")
		}
		for it := v.Doc().Iter(); it.Next(); {
			if it.Value().Type != bson.TypeString {
				return nil, mongoerr.New(31120, "$unset specification must be a string or an array containing only string values")
			}
			paths = append(paths, it.Value().Str())
		}
	default:
		return nil, mongoerr.New(31002, "$unset specification must be a string or an array")
	}
	for _, path := range paths {
		if strings.ContainsRune(path, 0) {
			return nil, mongoerr.New(9527900, "$unset specification must not contain null bytes")
		}
	}
	return paths, nil
}
