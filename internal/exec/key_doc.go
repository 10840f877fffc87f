package exec

import (
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/planner"
)

// keyDoc makes a document of the values of an index's key, as far as its fields tell: nested paths as nested documents, in
// the order of the index.
type keyDoc struct {
	fields []keyField
	buf    []byte
}

// keyField is a name with the place of its value in the key, or with fields below it.
type keyField struct {
	name  string
	value int // -1 for one that has fields
	below []keyField
}

// newKeyDoc makes documents of those of x's fields that keep says yes to, but for those that stand below another one.
func newKeyDoc(x planner.Index, keep func(path string) bool) *keyDoc {
	d := &keyDoc{}
	for i, f := range x.Fields {
		below := slices.ContainsFunc(x.Fields, func(o index.Field) bool { return keep(o.Path) && strings.HasPrefix(f.Path, o.Path+".") })
		if keep(f.Path) && !below {
			d.fields = withKeyField(d.fields, f.Parts, i)
		}
	}
	return d
}

func withKeyField(in []keyField, parts []string, value int) []keyField {
	for i := range in {
		if in[i].name == parts[0] && len(parts) > 1 && in[i].value < 0 {
			in[i].below = withKeyField(in[i].below, parts[1:], value)
			return in
		}
	}
	if len(parts) == 1 {
		return append(in, keyField{name: parts[0], value: value})
	}
	return append(in, keyField{parts[0], -1, withKeyField(nil, parts[1:], value)})
}

// of is the document of one key, valid until the next.
func (d *keyDoc) of(key []bson.Value) bson.Doc {
	b := bson.BuildOn(d.buf[:0])
	appendKeyFields(b, d.fields, key)
	doc := b.Doc()
	d.buf = doc
	return doc
}

func appendKeyFields(b *bson.Builder, fields []keyField, key []bson.Value) {
	for _, f := range fields {
		if f.value >= 0 {
			b.Value(f.name, key[f.value])
			continue
		}
		b.Object(f.name)
		appendKeyFields(b, f.below, key)
		b.End()
	}
}
