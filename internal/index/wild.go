package index

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
)

// PathField is the field before a wildcard's value in its keys: the path of what was found there, a string.
const PathField = "$_path"

// Wild is what a wildcard index is beyond an ordered one.
type Wild struct {
	// Position is that of the wildcard among the fields.
	Position int
	scope    *scope
	// keys has the fields as its keys have them: PathField and the wildcard's value.
	keys *Definition
}

func (d *Definition) newWild() *Wild {
	w := &Wild{}
	for i, f := range d.Fields {
		if f.Kind == Wildcard {
			w.Position, w.scope = i, newScope(f.Path, d.projection())
		}
	}
	w.keys = d.at(w.Position, "$**")
	return w
}

// kept is d with the fields that its keys have.
func (d *Definition) kept() *Definition {
	if d.Wild != nil {
		return d.Wild.keys
	}
	return d
}

// Width is how many values a key of d has.
func (d *Definition) Width() int { return len(d.kept().Fields) }

// Covers says whether the value at a path has a key, or keys, in the index.
func (w *Wild) Covers(path string) bool { return w.scope.has(strings.Split(path, ".")) }

// At is a wildcard index as its keys are kept, with PathField and path in the place of the wildcard.
func (d *Definition) At(path string) *Definition { return d.at(d.Wild.Position, path) }

func (d *Definition) at(position int, path string) *Definition {
	c := *d
	c.Fields = append([]Field(nil), d.Fields[:position]...)
	c.Fields = append(c.Fields, Field{Path: PathField, Parts: []string{PathField}, Plain: true},
		Field{Path: path, Parts: strings.Split(path, "."), Descending: d.Fields[position].Descending})
	c.Fields = append(c.Fields, d.Fields[position+1:]...)
	b := bson.Build()
	i := 0
	for it := d.Key.Iter(); it.Next(); i++ {
		if i == position {
			b.Int32(PathField, 1).Value(path, it.Value())
		} else {
			b.Value(it.Key(), it.Value())
		}
	}
	c.Key, c.keyText = b.Doc(), ""
	return &c
}
