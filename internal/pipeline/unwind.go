package pipeline

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Unwind is $unwind.
type Unwind struct {
	written
	Path fieldpath.Path
	// Preserve keeps documents without elements.
	Preserve bool
	// Index is where the element's position goes; it has no components when that is not asked for.
	Index fieldpath.Path
}

func parseUnwind(_ *parsing, arg bson.Value) ([]Stage, error) {
	u := &Unwind{written: written{"$unwind", arg}}
	path := bson.Missing
	switch arg.Type {
	case bson.TypeString:
		path = arg
	case bson.TypeObject:
		for it := arg.Doc().Iter(); it.Next(); {
			var err error
			switch it.Key() {
			case "path":
				if path = it.Value(); path.Type != bson.TypeString {
					return nil, mongoerr.New(28808, "expected a string as the path for $unwind stage, got %s", path.Type)
				}
			case "preserveNullAndEmptyArrays":
				if it.Value().Type != bson.TypeBool {
					return nil, mongoerr.New(28809, "expected a boolean for the preserveNullAndEmptyArrays option to $unwind stage, got %s", it.Value().Type)
				}
				u.Preserve = it.Value().Bool()
			case "includeArrayIndex":
				u.Index, err = parseArrayIndex(it.Value())
			default:
				return nil, mongoerr.New(28811, "unrecognized option to $unwind stage: %s", it.Key())
			}
			if err != nil {
				return nil, err
			}
		}
	default:
		return nil, mongoerr.New(15981, "expected either a string or an object as specification for $unwind stage, got %s", arg.Type)
	}
	if path.IsMissing() || path.Str() == "" {
		return nil, mongoerr.New(28812, "no path specified to $unwind stage")
	}
	text := path.Str()
	if text[0] != '$' {
		return nil, mongoerr.New(28818, "path option to $unwind stage should be prefixed with a '$': %s", text)
	}
	if strings.IndexByte(text, 0) >= 0 {
		return nil, mongoerr.New(16419, "field path must not contain embedded null characters. %s", text)
	}
	var err error
	u.Path, err = fieldpath.New(text[1:])
	return one(u), err
}

func parseArrayIndex(v bson.Value) (fieldpath.Path, error) {
	if v.Type != bson.TypeString || v.Str() == "" {
		return fieldpath.Path{}, mongoerr.New(28810, "expected a non-empty string for the includeArrayIndex  option to $unwind stage, got %s", v.Type)
	}
	if v.Str()[0] == '$' {
		return fieldpath.Path{}, mongoerr.New(28822, "includeArrayIndex option to $unwind stage should not be prefixed with a '$': %s", v.Str())
	}
	return fieldpath.New(v.Str())
}

func (u *Unwind) needs(d *Dependencies) bool {
	d.paths(u.Path.String())
	return true
}
