package projection

import (
	"encoding/binary"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// run is one application of a projection.
type run struct {
	p        *Projection
	env      *expr.Env
	root     bson.Doc
	start    int  // of what is made, in the buffer that it is appended to
	position int  // that the query matched, or -1
	picking  bool // an element of what is being made: the first array on the path of the positional operator
}

func openDoc(dst []byte) ([]byte, int) { return append(dst, 0, 0, 0, 0), len(dst) }

func closeDoc(dst []byte, start int) []byte {
	dst = append(dst, 0)
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start))
	return dst
}

func element(dst []byte, name string, v bson.Value) []byte {
	dst = append(dst, byte(v.Type))
	dst = append(dst, name...)
	dst = append(dst, 0)
	return append(dst, v.Data...)
}

// seen is the set of fields of a node that were met in a document.
type seen struct {
	small uint64
	large []bool
}

func newSeen(n int) (s seen) {
	if n > 64 {
		s.large = make([]bool, n)
	}
	return s
}

func (s *seen) add(i int) {
	if s.large != nil {
		s.large[i] = true
	} else {
		s.small |= 1 << i
	}
}

func (s *seen) has(i int) bool {
	if s.large != nil {
		return s.large[i]
	}
	return s.small>>i&1 != 0
}

// object projects a document: fields that were there keep their order, computed ones follow in the order of the
// specification. Arrays is how many arrays
// lie directly around d, and stays when it is more than one: $slice does not look into arrays of arrays.
func (r *run) object(dst []byte, n *node, d bson.Doc, arrays int) ([]byte, error) {
	dst, start := openDoc(dst)
	met, left, err := newSeen(len(n.fields)), len(n.fields), error(nil)
	keep := r.p.kind != Inclusion
	from, pos := 4, 4 // d[from:pos] is still to be copied
	for it := d.Iter(); it.Next(); {
		key, v := it.Key(), it.Value()
		next := pos + 2 + len(key) + len(v.Data)
		i := n.find(key)
		copied := i < 0 && keep || i >= 0 && n.fields[i].action == include
		if !copied {
			if from < pos {
				dst = append(dst, d[from:pos]...)
			}
			from = next
		}
		if i >= 0 && !met.has(i) {
			met.add(i)
			left--
			if !copied {
				if dst, err = r.field(dst, &n.fields[i], v, arrays); err != nil {
					return dst, err
				}
			}
		}
		pos = next
		if left == 0 && !n.computes {
			if keep {
				pos = len(d) - 1
			}
			break
		}
	}
	dst = append(dst, d[from:pos]...)
	if n.computes {
		if dst, err = r.computed(dst, n, &met); err != nil {
			return dst, err
		}
	}
	return closeDoc(dst, start), nil
}

// field writes what becomes of a field that exists and is not just copied.
func (r *run) field(dst []byte, f *field, v bson.Value, arrays int) ([]byte, error) {
	switch f.action {
	case nested:
		return r.nested(dst, f, v, arrays)
	case slice:
		if v.Type != bson.TypeArray || arrays > 1 {
			return element(dst, f.name, v), nil
		}
		return f.slice(dst, v.Doc()), nil
	case positional:
		if v.Type != bson.TypeArray || r.picking {
			return element(dst, f.name, v), nil
		}
		return r.positional(dst, f.name, v.Doc())
	case compute, elemMatch:
		if r.p.kind == Inclusion {
			return dst, nil // they come last
		}
		return r.compute(dst, f)
	}
	return dst, nil
}

// computed appends the computed fields that are not there yet.
func (r *run) computed(dst []byte, n *node, met *seen) (_ []byte, err error) {
	for i := range n.fields {
		f := &n.fields[i]
		if met.has(i) && (f.action == nested || r.p.kind != Inclusion) {
			continue
		}
		switch {
		case f.action == compute || f.action == elemMatch:
			dst, err = r.compute(dst, f)
		case f.action == nested && f.node.computes:
			dst, err = r.nested(dst, f, bson.Missing, 0)
		}
		if err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// compute writes a computed field, nothing when it has no value.
func (r *run) compute(dst []byte, f *field) ([]byte, error) {
	if f.action == elemMatch {
		return r.elemMatch(dst, f)
	}
	v, err := f.expr.Eval(r.env)
	if err != nil || v.IsMissing() {
		return dst, err
	}
	if err := checkSize(len(dst) - r.start + len(v.Data)); err != nil {
		return dst, err
	}
	return element(dst, f.name, v), nil
}

func (r *run) elemMatch(dst []byte, f *field) ([]byte, error) {
	v := r.root.Lookup(f.name)
	if v.Type != bson.TypeArray {
		return dst, nil
	}
	var details match.Details
	ok, err := f.filter.MatchDetails(r.env, r.root, &details)
	if err != nil || !ok || details.Position < 0 {
		return dst, err
	}
	return single(dst, f.name, v.Doc().Index(details.Position)), nil
}

// single writes an array of one element.
func single(dst []byte, name string, v bson.Value) []byte {
	dst = append(dst, byte(bson.TypeArray))
	dst = append(dst, name...)
	dst, start := openDoc(append(dst, 0))
	return closeDoc(element(dst, "0", v), start)
}

// positional writes the one element that the query matched, of the first array on the path.
func (r *run) positional(dst []byte, name string, array bson.Doc) ([]byte, error) {
	if r.position < 0 {
		return dst, mongoerr.New(51246,
			"positional operator '.$' couldn't find a matching element in the array")
	}
	v := array.Index(r.position)
	if v.IsMissing() {
		return dst, mongoerr.New(51247, "positional operator '.$' element mismatch")
	}
	return single(dst, name, v), nil
}

// pick is positional where the array is not the end of the path: the element is one of what the projection leaves of the array, which has no place
// for elements that are no documents.
func (r *run) pick(dst []byte, f *field, array bson.Doc) ([]byte, error) {
	r.picking = true
	left, err := r.array(nil, f.node, array, 1)
	r.picking = false
	if err != nil {
		return dst, err
	}
	return r.positional(dst, f.name, left)
}

// slice writes the part of an array that f asks for.
func (f *field) slice(dst []byte, array bson.Doc) []byte {
	n := int64(array.Count())
	first, last := int64(0), n
	switch {
	case f.window && f.skip < 0:
		first = max(0, n+f.skip)
		last = min(n, first+f.limit)
	case f.window:
		first = min(n, f.skip)
		last = min(n, first+f.limit)
	case f.limit < 0:
		first = max(0, n+f.limit)
	default:
		last = min(n, f.limit)
	}
	dst = append(dst, byte(bson.TypeArray))
	dst = append(dst, f.name...)
	dst, start := openDoc(append(dst, 0))
	i := int64(0)
	for it := array.Iter(); i < last && it.Next(); i++ {
		if i >= first {
			dst = element(dst, bson.IndexKey(int(i-first)), it.Value())
		}
	}
	return closeDoc(dst, start)
}

// nested writes what becomes of the value that f leads into; missing where there is none.
func (r *run) nested(dst []byte, f *field, v bson.Value, arrays int) ([]byte, error) {
	if arrays == 1 {
		arrays = 0
	}
	if f.node.positional && v.Type == bson.TypeArray && !r.picking {
		return r.pick(dst, f, v.Doc())
	}
	at := len(dst)
	dst = append(dst, 0)
	dst = append(dst, f.name...)
	dst, t, err := r.value(append(dst, 0), f.node, v, arrays)
	if err != nil || t == bson.TypeMissing {
		return dst[:at], err
	}
	dst[at] = byte(t)
	return dst, nil
}

// value writes the bytes of what becomes of v and returns their type, that of a missing value when nothing does.
func (r *run) value(dst []byte, n *node, v bson.Value, arrays int) ([]byte, bson.Type, error) {
	var err error
	switch {
	case v.Type == bson.TypeObject:
		dst, err = r.object(dst, n, v.Doc(), arrays)
		return dst, v.Type, err
	case v.Type == bson.TypeArray:
		dst, err = r.array(dst, n, v.Doc(), arrays+1)
		return dst, v.Type, err
	case n.computes:
		dst, err = r.object(dst, n, bson.EmptyDoc, arrays)
		return dst, bson.TypeObject, err
	case r.p.kind == Inclusion:
		return dst, bson.TypeMissing, nil
	}
	return append(dst, v.Data...), v.Type, nil
}

func (r *run) array(dst []byte, n *node, d bson.Doc, arrays int) ([]byte, error) {
	dst, start := openDoc(dst)
	i := 0
	for it := d.Iter(); it.Next(); {
		at := len(dst)
		dst = append(dst, 0)
		dst = append(dst, bson.IndexKey(i)...)
		var t bson.Type
		var err error
		if dst, t, err = r.value(append(dst, 0), n, it.Value(), arrays); err != nil {
			return dst, err
		}
		if t == bson.TypeMissing {
			dst = dst[:at]
			continue
		}
		dst[at] = byte(t)
		i++
	}
	return closeDoc(dst, start), nil
}
