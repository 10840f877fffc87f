package vectorsearch

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// maxFields is how many fields a definition has at most.
const maxFields = 256

// Definition is what a vectorSearch index is defined as.
type Definition struct {
	// NestedRoot is the array whose documents have the vectors, "" where documents have them themselves.
	NestedRoot string
	// StoresSource says that the index was told which fields to keep.
	StoresSource bool

	vectors map[string]vectorField
	filters map[string]bool
}

type vectorField struct {
	dimensions int
	similarity Similarity
}

// ParseDefinition reads the definition of an index.
func ParseDefinition(spec bson.Doc) (*Definition, error) {
	d := &Definition{vectors: map[string]vectorField{}, filters: map[string]bool{}}
	fields := bson.Missing
	for it := spec.Iter(); it.Next(); {
		var err error
		switch name, v := it.Key(), it.Value(); name {
		case "fields":
			fields = v
		case "nestedRoot":
			d.NestedRoot, err = text(name, v)
		case "storedSource":
			d.StoresSource, err = storesSource(v)
		case "numPartitions":
			if n, ok := v.AsInt64(); !v.IsNumber() || !ok || n < 1 {
				err = wrong(`"numPartitions" must be a positive integer`)
			}
		default:
			err = wrong(`Unrecognized field "%s" in the definition of a vectorSearch index`, name)
		}
		if err != nil {
			return nil, err
		}
	}
	if fields.Type != bson.TypeArray {
		return nil, wrong(`"fields" is required, and must be an array`)
	}
	if fields.Doc().Count() > maxFields {
		return nil, wrong(`"fields" cannot have more than %d elements`, maxFields)
	}
	for it := fields.Doc().Iter(); it.Next(); {
		if err := d.addField(it.Value()); err != nil {
			return nil, err
		}
	}
	if len(d.vectors) == 0 {
		return nil, wrong(`"fields" must have at least one of type "vector"`)
	}
	return d, d.checkRoot()
}

func storesSource(v bson.Value) (bool, error) {
	switch {
	case v.Type == bson.TypeBool && !v.Bool():
		return false, nil
	case v.Type == bson.TypeObject:
		for it := v.Doc().Iter(); it.Next(); {
			if name := it.Key(); name != "include" && name != "exclude" || it.Value().Type != bson.TypeArray {
				return false, wrong(`"storedSource" must have "include" or "exclude", which are arrays of paths`)
			}
		}
		return true, nil
	}
	return false, wrong(`"storedSource" must be false, or have "include" or "exclude"`)
}

func text(name string, v bson.Value) (string, error) {
	if v.Type != bson.TypeString {
		return "", wrong(`"%s" must be a string`, name)
	}
	if v.Str() == "" {
		return "", wrong(`"%s" cannot be empty`, name)
	}
	return strings.Clone(v.Str()), nil
}

// addField reads one of the fields.
func (d *Definition) addField(v bson.Value) error {
	if v.Type != bson.TypeObject {
		return wrong(`"fields" must be an array of documents`)
	}
	spec := v.Doc()
	path, err := text("path", spec.Lookup("path"))
	if err != nil {
		return err
	}
	if _, err := fieldpath.New(path); err != nil {
		return wrong(`"path" "%s" is no path: %s`, path, err)
	}
	if _, vector := d.vectors[path]; vector || d.filters[path] {
		return wrong(`"fields" has "%s" more than once`, path)
	}
	kind, err := text("type", spec.Lookup("type"))
	if err != nil {
		return err
	}
	switch kind {
	case "vector":
		d.vectors[path], err = readVectorField(spec)
	case "filter":
		d.filters[path] = true
		err = only(spec, "type", "path")
	default:
		err = wrong(`"type" of "%s" must be "vector" or "filter", and is "%s"`, path, kind)
	}
	return err
}

// only refuses fields that spec has beside those.
func only(spec bson.Doc, names ...string) error {
	for it := spec.Iter(); it.Next(); {
		known := false
		for _, name := range names {
			known = known || it.Key() == name
		}
		if !known {
			return wrong(`Unrecognized field "%s" in "fields"`, it.Key())
		}
	}
	return nil
}

// readVectorField reads the field of a vector. How vectors are kept and searched is not this server's: quantization and hnswOptions are
// looked at, and change nothing.
func readVectorField(spec bson.Doc) (f vectorField, err error) {
	if err := only(spec, "type", "path", "numDimensions", "similarity", "quantization", "hnswOptions", "indexingMethod"); err != nil {
		return f, err
	}
	n, whole := spec.Lookup("numDimensions"), false
	var dimensions int64
	if n.IsNumber() && n.Type != bson.TypeDecimal {
		dimensions, whole = n.AsInt64()
	}
	switch {
	case !whole:
		return f, wrong(`"numDimensions" is required, and must be an integer`)
	case dimensions < 1 || dimensions > MaxDimensions:
		return f, wrong(`"numDimensions" must be within bounds [1, %d]`, MaxDimensions)
	}
	similarity, err := text("similarity", spec.Lookup("similarity"))
	if err != nil {
		return f, err
	}
	f = vectorField{int(dimensions), similarities[similarity]}
	if f.similarity == 0 {
		return f, wrong(`"similarity" must be one of [cosine, dotProduct, euclidean]`)
	}
	switch q := spec.Lookup("quantization"); {
	case q.IsMissing():
	case q.Type != bson.TypeString || q.Str() != "none" && q.Str() != "scalar" && q.Str() != "binary":
		return f, wrong(`"quantization" must be one of [none, scalar, binary]`)
	}
	if h := spec.Lookup("hnswOptions"); !h.IsMissing() && h.Type != bson.TypeObject {
		return f, wrong(`"hnswOptions" must be a document`)
	}
	return f, nil
}

// checkRoot holds the vectors to the root.
func (d *Definition) checkRoot() error {
	if d.NestedRoot == "" {
		return nil
	}
	for path := range d.vectors {
		if _, below := d.below(path); !below {
			return mongoerr.New(mongoerr.CommandFailed, `"nestedRoot" "%s" must be above the path of each vector, and is not above "%s"`, d.NestedRoot, path)
		}
	}
	return nil
}

// below is what remains of a path below the root.
func (d *Definition) below(path string) (rest string, ok bool) {
	return strings.CutPrefix(path, d.NestedRoot+".")
}
