package spec

import (
	"math"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
)

// at reads a document inside of the one that r reads.
func (r *Reader) at(path string, doc bson.Doc) *Reader {
	return &Reader{path: path, doc: doc, err: r.err}
}

// Has says whether there is a field.
func (r *Reader) Has(name string) bool { return !r.doc.Lookup(name).IsNullish() }

// Known takes note of fields, whose values are of no account.
func (r *Reader) Known(names ...string) { r.asked = append(r.asked, names...) }

// RefuseAt says what is wrong with something at a path.
func (r *Reader) RefuseAt(path, format string, args ...any) { r.Keep(At(path, format, args...)) }

// Only refuses all but one of the fields that are there, and says which that is, "" where there is none.
func (r *Reader) Only(names ...string) (found string) {
	n := 0
	for _, name := range names {
		if r.Has(name) {
			found, n = name, n+1
		}
	}
	if n > 1 {
		r.Refuse("only one of [%s] may be present", strings.Join(names, ", "))
	}
	return found
}

// OneOf is the one field of these that is there.
func (r *Reader) OneOf(names ...string) string {
	found := r.Only(names...)
	if found == "" {
		r.Refuse("one of [%s] must be present", strings.Join(names, ", "))
	}
	return found
}

// Inner reads a field that is a document, nil where it is not there.
func (r *Reader) Inner(name string) *Reader {
	v := r.Value(name)
	if v.IsMissing() {
		return nil
	}
	return r.Inside(r.Path(name), v)
}

// RequiredInner reads one that must be there, as if it were empty where it is not.
func (r *Reader) RequiredInner(name string) *Reader {
	if in := r.Inner(name); in != nil {
		return in
	}
	r.RefuseField(name, "is required")
	return r.at(r.Path(name), bson.EmptyDoc)
}

// Inside reads a value that is to be a document.
func (r *Reader) Inside(path string, v bson.Value) *Reader {
	if v.Type != bson.TypeObject {
		r.RefuseAt(path, "must be a document")
		return r.at(path, bson.EmptyDoc)
	}
	return r.at(path, v.Doc())
}

// Element is a value of an array, and its path.
type Element struct {
	Path string
	bson.Value
}

// List are the values of a field that is an array, or, where single is set, the one value in place of an array. there is false where it is not
// there.
func (r *Reader) List(name string, single bool) (list []Element, there bool) {
	v := r.Value(name)
	switch {
	case v.IsMissing():
		return nil, false
	case v.Type == bson.TypeArray:
		for it := v.Doc().Iter(); it.Next(); {
			list = append(list, Element{r.Path(name) + "[" + strconv.Itoa(len(list)) + "]", it.Value()})
		}
	case single:
		list = append(list, Element{r.Path(name), v})
	default:
		r.RefuseField(name, "must be a array")
	}
	return list, true
}

// RequiredList are values of which there must be some.
func (r *Reader) RequiredList(name string, single bool) []Element {
	list, there := r.List(name, single)
	switch {
	case !there:
		r.RefuseField(name, "is required")
	case len(list) == 0:
		r.RefuseField(name, "cannot be empty")
	}
	return list
}

// Strings is a string or an array of them, none of which is empty.
func (r *Reader) Strings(name string) (texts []string) {
	for _, e := range r.RequiredList(name, true) {
		switch {
		case e.Type == bson.TypeNull:
			r.RefuseAt(e.Path, "is required")
		case e.Type != bson.TypeString:
			r.RefuseAt(e.Path, "must be a string")
		case e.Str() == "":
			r.RefuseAt(e.Path, "cannot be empty")
		default:
			texts = append(texts, strings.Clone(e.Str()))
		}
	}
	return texts
}

// Str is a string, "" where it is not there.
func (r *Reader) Str(name string) string {
	text, _ := r.Text(name, false)
	return text
}

// RequiredStr is a string that must be there.
func (r *Reader) RequiredStr(name string) string {
	text, _ := r.Text(name, true)
	return text
}

// Word is a string that is not empty, "" where it is not there.
func (r *Reader) Word(name string) string {
	text, _ := r.NonEmpty(name, false)
	return text
}

// Count is an integer that is not negative, otherwise where it is not there.
func (r *Reader) Count(name string, otherwise int) int {
	n, _ := r.IntOr(name, 0, otherwise)
	return n
}

// Positive is an integer above 0, otherwise where it is not there.
func (r *Reader) Positive(name string, otherwise int) int {
	n, _ := r.IntOr(name, 1, otherwise)
	return n
}

// Number is a finite number, otherwise where it is not there.
func (r *Reader) Number(name string, otherwise float64) float64 {
	v := r.Value(name)
	switch {
	case v.IsMissing():
		return otherwise
	case !v.IsNumber() || v.Type == bson.TypeDecimal:
		r.RefuseField(name, "must be a number")
		return otherwise
	}
	f := v.AsDouble()
	if math.IsNaN(f) || math.IsInf(f, 0) {
		r.RefuseField(name, "must be finite")
		return otherwise
	}
	return f
}

// RequiredNumber is a finite number that must be there.
func (r *Reader) RequiredNumber(name string) float64 {
	if !r.Has(name) {
		r.Required(name)
	}
	return r.Number(name, 0)
}
