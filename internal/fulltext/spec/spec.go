// Package spec reads documents that users write for a search, and tells what is wrong with them in the words of MongoDB's search process. It
// knows nothing of what they mean.
package spec

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Wrong is an error as MongoDB has it from its search process.
func Wrong(format string, args ...any) error {
	return mongoerr.New(mongoerr.UnknownError, format, args...)
}

// At is an error about what a path of the document has, "" for the document itself.
func At(path, format string, args ...any) error {
	if path != "" {
		format, args = `"%s" `+format, append([]any{path}, args...)
	}
	return Wrong(format, args...)
}

// Reader reads the fields of a document. The first thing that is wrong with it, or with what is read of the documents in it, is kept, and makes
// what is read afterwards zero. A field that is null is taken for one that is not there.
type Reader struct {
	path  string
	doc   bson.Doc
	asked []string
	err   *error
}

// New reads a document that is at a path, "" where that is not inside of another.
func New(path string, doc bson.Doc) *Reader { return &Reader{path: path, doc: doc, err: new(error)} }

// Doc is what is read.
func (r *Reader) Doc() bson.Doc { return r.doc }

// Path is that of a field.
func (r *Reader) Path(name string) string {
	if r.path == "" {
		return name
	}
	return r.path + "." + name
}

// Err is what is wrong as far as was read.
func (r *Reader) Err() error { return *r.err }

// Keep keeps an error, if it is the first.
func (r *Reader) Keep(err error) {
	if *r.err == nil {
		*r.err = err
	}
}

// Refuse says what is wrong with the document.
func (r *Reader) Refuse(format string, args ...any) { r.Keep(At(r.path, format, args...)) }

// RefuseField says what is wrong with a field.
func (r *Reader) RefuseField(name, format string, args ...any) {
	r.Keep(At(r.Path(name), format, args...))
}

// Done is the first thing that is wrong, or an error about fields that nobody asked for.
func (r *Reader) Done() error {
	var unknown []string
	for it := r.doc.Iter(); *r.err == nil && it.Next(); {
		if !slices.Contains(r.asked, it.Key()) {
			unknown = append(unknown, strconv.Quote(it.Key()))
		}
	}
	switch {
	case len(unknown) == 1:
		r.Refuse("unrecognized field %s", unknown[0])
	case len(unknown) > 1:
		r.Refuse("unrecognized fields [%s]", strings.Join(unknown, ", "))
	}
	return *r.err
}

// Value is a field, missing where it is null.
func (r *Reader) Value(name string) bson.Value {
	r.asked = append(r.asked, name)
	if *r.err != nil {
		return bson.Missing
	}
	if v := r.doc.Lookup(name); v.Type != bson.TypeNull {
		return v
	}
	return bson.Missing
}

// Required is a field that must be there.
func (r *Reader) Required(name string) bson.Value {
	v := r.Value(name)
	if v.IsMissing() {
		r.RefuseField(name, "is required")
	}
	return v
}

// typed is a field of a type that is called so.
func (r *Reader) typed(name string, required bool, of bson.Type, called string) (v bson.Value, ok bool) {
	if required {
		v = r.Required(name)
	} else {
		v = r.Value(name)
	}
	if v.IsMissing() {
		return v, false
	}
	if v.Type != of {
		r.RefuseField(name, "must be a %s", called)
		return v, false
	}
	return v, true
}

// Text is a string, which is "" where it is not there.
func (r *Reader) Text(name string, required bool) (text string, ok bool) {
	v, ok := r.typed(name, required, bson.TypeString, "string")
	if !ok {
		return "", false
	}
	return strings.Clone(v.Str()), true
}

// NonEmpty is a string that is not empty.
func (r *Reader) NonEmpty(name string, required bool) (text string, ok bool) {
	if text, ok = r.Text(name, required); ok && text == "" {
		r.RefuseField(name, "cannot be empty")
	}
	return text, ok
}

// NonBlank is a string that is not only spaces.
func (r *Reader) NonBlank(name string, required bool) (text string, ok bool) {
	if text, ok = r.Text(name, required); ok && strings.TrimSpace(text) == "" {
		r.RefuseField(name, "cannot be blank")
	}
	return text, ok
}

// Bool is a boolean.
func (r *Reader) Bool(name string, otherwise bool) bool {
	if v, ok := r.typed(name, false, bson.TypeBool, "boolean"); ok {
		return v.Bool()
	}
	return otherwise
}

// Enum is one of some strings, otherwise where it is not there, which is then "" if the field is required.
func (r *Reader) Enum(name, otherwise string, of ...string) string {
	if otherwise == "" && !r.Has(name) {
		r.Required(name)
	}
	return r.Choice(name, otherwise, of...)
}

// Choice is one of some strings, otherwise where it is not there.
func (r *Reader) Choice(name, otherwise string, of ...string) string {
	text, ok := r.Text(name, false)
	if !ok {
		return otherwise
	}
	if !slices.Contains(of, text) {
		r.RefuseField(name, "must be one of [%s]", strings.Join(slices.Sorted(slices.Values(of)), ", "))
	}
	return text
}

// Int is an integer of 32 bits; a double may have it.
func (r *Reader) Int(name string, required bool) (n int, ok bool) {
	var v bson.Value
	if required {
		v = r.Required(name)
	} else {
		v = r.Value(name)
	}
	if v.IsMissing() {
		return 0, false
	}
	var at float64
	switch v.Type {
	case bson.TypeInt32:
		return int(v.Int32()), true
	case bson.TypeInt64:
		at = float64(v.Int64())
	case bson.TypeDouble:
		at = v.Double()
	default:
		r.RefuseField(name, "must be a integer")
		return 0, false
	}
	switch {
	case at > math.MaxInt32:
		r.RefuseField(name, "overflowed, must fit in a 32 bit integer")
	case at < math.MinInt32:
		r.RefuseField(name, "underflowed, must fit in a 32 bit integer")
	case at != math.Trunc(at):
		r.RefuseField(name, "must be an integer")
	default:
		return int(at), true
	}
	return 0, false
}

// IntOr is an integer that is not below least, otherwise where it is not there. least is 0 or 1.
func (r *Reader) IntOr(name string, least, otherwise int) (n int, given bool) {
	n, ok := r.Int(name, otherwise < 0)
	switch {
	case !ok:
		return otherwise, false
	case n < 0 && least == 0:
		r.RefuseField(name, "cannot be negative")
	case n < 1 && least == 1:
		r.RefuseField(name, "must be positive")
	}
	return n, true
}

// IntWithin is an integer within bounds.
func (r *Reader) IntWithin(name string, least, most, otherwise int) int {
	n, ok := r.Int(name, otherwise < 0)
	if !ok {
		return otherwise
	}
	if n < least || n > most {
		r.RefuseField(name, "must be within bounds [%d..%d]", least, most)
	}
	return n
}

// Object is a document.
func (r *Reader) Object(name string, required bool) (doc bson.Doc, ok bool) {
	v, ok := r.typed(name, required, bson.TypeObject, "document")
	if !ok {
		return nil, false
	}
	return v.Doc(), true
}

// Elements are those of an array, of not more than most.
func (r *Reader) Elements(name string, required bool, most int) (of []bson.Value, ok bool) {
	v, ok := r.typed(name, required, bson.TypeArray, "array")
	if !ok {
		return nil, false
	}
	if n := v.Doc().Count(); n > most {
		r.RefuseField(name, "cannot have more than %d elements", most)
		return nil, false
	}
	return v.Doc().Values(nil), true
}

// Objects are the documents of an array.
func (r *Reader) Objects(name string, required bool, most int) (of []*Reader, ok bool) {
	vs, ok := r.Elements(name, required, most)
	for i, v := range vs {
		path := r.Path(name) + "[" + strconv.Itoa(i) + "]"
		if v.Type != bson.TypeObject {
			r.Keep(At(path, "must be a document"))
			return nil, false
		}
		of = append(of, r.at(path, v.Doc()))
	}
	return of, ok
}

// Texts are the strings of an array.
func (r *Reader) Texts(name string, required bool, most int) (of []string, ok bool) {
	vs, ok := r.Elements(name, required, most)
	for i, v := range vs {
		if v.Type != bson.TypeString {
			r.Keep(At(r.Path(name)+"["+strconv.Itoa(i)+"]", "must be a string"))
			return nil, false
		}
		of = append(of, strings.Clone(v.Str()))
	}
	return of, ok
}
