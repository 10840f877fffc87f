package changestream

import (
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
)

// maxPath bounds how deep a delta is followed; those that the oplog has are less deep.
const maxPath = bson.MaxDepth

// appendUpdate appends what an update has changed, out of the oplog's delta.
func (e *Event) appendUpdate(b *bson.Builder) {
	if e.spec.RawUpdates {
		b.Value("rawUpdateDescription", e.op.o)
		return
	}
	d := description{updated: bson.Build(), disambiguated: bson.Build()}
	d.document(e.diff)
	b.Object("updateDescription").Document("updatedFields", d.updated.Doc()).Strings("removedFields", d.removed).
		Value("truncatedArrays", bson.ArrayOf(d.truncated...))
	if e.spec.Expanded {
		b.Document("disambiguatedPaths", d.disambiguated.Doc())
	}
	b.End()
}

// description is what a delta has changed, as far as it was read.
type description struct {
	updated, disambiguated *bson.Builder
	removed                []string
	truncated              []bson.Value
	path                   []step
}

// step is a component of a path: a field, or a place in an array.
type step struct {
	name  string
	index int // where name is ""
	array bool
}

func (s step) text() string {
	if s.array {
		return strconv.Itoa(s.index)
	}
	return s.name
}

// document reads {d, u, i, s<field>}: first what is set, then what is removed, then what is changed within fields.
func (d *description) document(delta bson.Doc) {
	if len(d.path) > maxPath {
		return
	}
	for _, section := range []string{"u", "i"} {
		if v := delta.Lookup(section); v.Type == bson.TypeObject {
			for it := v.Doc().Iter(); it.Next(); {
				d.set(step{name: it.Key()}, it.Value())
			}
		}
	}
	if v := delta.Lookup("d"); v.Type == bson.TypeObject {
		for it := v.Doc().Iter(); it.Next(); {
			d.enter(step{name: it.Key()}, func(path string) { d.removed = append(d.removed, path) })
		}
	}
	for it := delta.Iter(); it.Next(); {
		if key := it.Key(); len(key) > 0 && key[0] == 's' && it.Value().Type == bson.TypeObject {
			d.within(step{name: key[1:]}, it.Value().Doc())
		}
	}
}

// within reads the delta of a document or an array.
func (d *description) within(s step, delta bson.Doc) {
	d.path = append(d.path, s)
	if delta.Lookup("a").Truthy() {
		d.elements(delta)
	} else {
		d.document(delta)
	}
	d.path = d.path[:len(d.path)-1]
}

// elements reads {a: true, l: length, u<index>, s<index>}.
func (d *description) elements(delta bson.Doc) {
	if len(d.path) > maxPath {
		return
	}
	if size := delta.Lookup("l"); size.Type == bson.TypeInt32 {
		d.note(func(path string) {
			d.truncated = append(d.truncated, bson.Build().String("field", path).Int32("newSize", size.Int32()).Doc().Value())
		})
	}
	for it := delta.Iter(); it.Next(); {
		key := it.Key()
		if len(key) < 2 {
			continue
		}
		index, err := strconv.Atoi(key[1:])
		switch {
		case err != nil:
		case key[0] == 'u':
			d.set(step{index: index, array: true}, it.Value())
		case key[0] == 's' && it.Value().Type == bson.TypeObject:
			d.within(step{index: index, array: true}, it.Value().Doc())
		}
	}
}

func (d *description) set(s step, v bson.Value) {
	d.enter(s, func(path string) { d.updated.Value(path, v) })
}

// enter notes something of what lies at s within the path.
func (d *description) enter(s step, note func(path string)) {
	d.path = append(d.path, s)
	d.note(note)
	d.path = d.path[:len(d.path)-1]
}

// note notes something of what lies at the path, and how the path is to be read where its text does not tell.
func (d *description) note(note func(path string)) {
	texts := make([]string, len(d.path))
	ambiguous := false
	for i, s := range d.path {
		texts[i] = s.text()
		ambiguous = ambiguous || !s.array && (i > 0 && isNumeric(s.name) || strings.IndexByte(s.name, '.') >= 0)
	}
	path := strings.Join(texts, ".")
	note(path)
	if !ambiguous {
		return
	}
	d.disambiguated.Array(path)
	for i, s := range d.path {
		if s.array {
			d.disambiguated.Int32(bson.IndexKey(i), int32(s.index))
		} else {
			d.disambiguated.String(bson.IndexKey(i), s.name)
		}
	}
	d.disambiguated.End()
}

// isNumeric says whether a field could be taken for a place in an array: digits without a zero in front.
func isNumeric(name string) bool {
	if name == "" || len(name) > 1 && name[0] == '0' {
		return false
	}
	return strings.Trim(name, "0123456789") == ""
}
