package fieldpath

import "github.com/ebbdb/ebb/internal/bson"

// Get is the value at p through documents alone: an array on the way, or anything else that is no document, makes it
// missing.
func (p Path) Get(d bson.Doc) bson.Value {
	for i := range p.parts {
		v := d.Lookup(p.parts[i].name)
		if i == len(p.parts)-1 {
			return v
		}
		if v.Type != bson.TypeObject {
			break
		}
		d = v.Doc()
	}
	return bson.Missing
}

// Eval is the value at p in the sense of expressions: an array on the way gives an array of what the rest of the path is in
// its elements, without those where it is missing; digits are field names only.
func (p Path) Eval(d bson.Doc) bson.Value { return evalDoc(p.parts, d) }

// EvalValue is Eval from any value.
func (p Path) EvalValue(v bson.Value) bson.Value {
	switch {
	case len(p.parts) == 0:
		return v
	case v.Type == bson.TypeObject:
		return evalDoc(p.parts, v.Doc())
	case v.Type == bson.TypeArray:
		return evalArray(p.parts, v.Doc())
	}
	return bson.Missing
}

func evalDoc(parts []part, d bson.Doc) bson.Value {
	for i := range parts {
		v := d.Lookup(parts[i].name)
		switch {
		case i == len(parts)-1:
			return v
		case v.Type == bson.TypeArray:
			return evalArray(parts[i+1:], v.Doc())
		case v.Type != bson.TypeObject:
			return bson.Missing
		}
		d = v.Doc()
	}
	return bson.Missing
}

func evalArray(parts []part, array bson.Doc) bson.Value {
	b := bson.BuildOn(make([]byte, 0, 64))
	n := 0
	for it := array.Iter(); it.Next(); {
		e := it.Value()
		if e.Type != bson.TypeObject { // an array in the array, too
			continue
		}
		v := evalDoc(parts, e.Doc())
		if !v.IsMissing() {
			b.Value(bson.IndexKey(n), v)
			n++
		}
	}
	return b.Doc().ArrayValue()
}
