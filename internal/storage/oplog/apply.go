package oplog

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
)

// Apply is the document that a delta makes out of old.
func Apply(old, delta bson.Doc) (bson.Doc, error) {
	b := bson.BuildOn(make([]byte, 0, len(old)+len(delta)))
	if err := applyDocument(b, old, delta, 0); err != nil {
		return nil, err
	}
	return b.Doc(), nil
}

// maxPadding is how many nulls an update puts into an array before an element that it sets beyond its end.
const maxPadding = 1_500_000

func notDelta(delta bson.Doc) error {
	return fmt.Errorf("oplog: %s is not the delta of this document", delta)
}

// sections are the parts of a delta.
type sections struct {
	gone, changed, added bson.Doc
	within               map[string]bson.Doc
}

func sectionsOf(delta bson.Doc) (s sections, err error) {
	for it := delta.Iter(); it.Next(); {
		if it.Value().Type != bson.TypeObject {
			return s, notDelta(delta)
		}
		switch key, d := it.Key(), it.Value().Doc(); {
		case key == "d":
			s.gone = d
		case key == "u":
			s.changed = d
		case key == "i":
			s.added = d
		case key != "" && key[0] == 's':
			if s.within == nil {
				s.within = map[string]bson.Doc{}
			}
			s.within[key[1:]] = d
		default:
			return s, notDelta(delta)
		}
	}
	return s, nil
}

// fieldsOf are a document's fields by name.
func fieldsOf(d bson.Doc) map[string]bson.Value {
	if d == nil {
		return nil
	}
	fields := map[string]bson.Value{}
	for it := d.Iter(); it.Next(); {
		fields[it.Key()] = it.Value()
	}
	return fields
}

func applyDocument(b *bson.Builder, old, delta bson.Doc, depth int) error {
	s, err := sectionsOf(delta)
	if err != nil || depth > maxDiffDepth {
		return notDelta(delta)
	}
	gone, changed, added := fieldsOf(s.gone), fieldsOf(s.changed), fieldsOf(s.added)
	for it := old.Iter(); it.Next(); {
		key, v := it.Key(), it.Value()
		if _, ok := gone[key]; ok {
			continue
		}
		if _, ok := added[key]; ok { // which then stands at the end
			continue
		}
		if now, ok := changed[key]; ok {
			v = now
		}
		if inner, ok := s.within[key]; ok {
			if err := applyWithin(b, key, v, inner, depth+1); err != nil {
				return err
			}
			continue
		}
		b.Value(key, v)
	}
	for it := s.added.Iter(); s.added != nil && it.Next(); {
		b.Value(it.Key(), it.Value())
	}
	return nil
}

// applyWithin appends a document or an array as its delta leaves it.
func applyWithin(b *bson.Builder, key string, old bson.Value, delta bson.Doc, depth int) (err error) {
	switch {
	case old.Type == bson.TypeArray && delta.Lookup("a").Truthy():
		b.Array(key)
		err = applyArray(b, old.Doc(), delta, depth)
	case old.Type == bson.TypeObject:
		b.Object(key)
		err = applyDocument(b, old.Doc(), delta, depth)
	default:
		return notDelta(delta)
	}
	b.End()
	return err
}

func applyArray(b *bson.Builder, old, delta bson.Doc, depth int) error {
	if depth > maxDiffDepth {
		return notDelta(delta)
	}
	length, end := old.Count(), 0
	changes := map[int]bson.Value{}
	within := map[int]bson.Doc{}
	for it := delta.Iter(); it.Next(); {
		key, v := it.Key(), it.Value()
		switch key {
		case "a":
			continue
		case "l":
			if v.Type != bson.TypeInt32 || v.Int32() < 0 || int(v.Int32()) > length {
				return notDelta(delta)
			}
			length = int(v.Int32())
			continue
		}
		i, err := strconv.Atoi(strings.TrimLeft(key, "us"))
		switch {
		case err != nil || i < 0 || i > length+maxPadding:
			return notDelta(delta)
		case key[0] == 'u':
			changes[i] = v
			end = max(end, i+1)
		case key[0] == 's' && v.Type == bson.TypeObject && i < length:
			within[i] = v.Doc()
		default:
			return notDelta(delta)
		}
	}
	was := old.Iter()
	for i := range max(length, end) {
		there := was.Next()
		if v, ok := changes[i]; ok {
			b.Value(bson.IndexKey(i), v)
			continue
		}
		if !there {
			b.Null(bson.IndexKey(i)) // fills up to the next that is set
			continue
		}
		if inner, ok := within[i]; ok {
			if err := applyWithin(b, bson.IndexKey(i), was.Value(), inner, depth); err != nil {
				return err
			}
			continue
		}
		b.Value(bson.IndexKey(i), was.Value())
	}
	return nil
}
