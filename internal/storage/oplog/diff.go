package oplog

import (
	"bytes"
	"strconv"

	"github.com/ebbdb/ebb/internal/bson"
)

// A delta is {d: {field: false}, u: {field: value}, i: {field: value}, s<field>: delta}: what is deleted, what is changed where it
// stands, what is added at the end, and what is changed within a document or an array. The delta of an array is {a: true, l: length,
// u<index>: value, s<index>: delta}, with l where the array is shorter than before.

// maxDiffDepth bounds how deep a delta looks into documents; what lies deeper is changed as a whole.
const maxDiffDepth = 32

// appendDiff appends the elements of the delta that makes old into doc.
func appendDiff(b *bson.Builder, old, doc bson.Doc) {
	diffDocuments(b, old, doc, 0)
}

// changed is a field of both documents whose values differ.
type changed struct {
	key      string
	old, now bson.Value
	delta    bson.Doc // of what has changed within it
}

func diffDocuments(b *bson.Builder, old, doc bson.Doc, depth int) {
	var updates, inserts, within []changed
	deletes := map[string]bool{}
	var order []string // of deletes
	was, is := old.Iter(), doc.Iter()
	more, now := was.Next(), is.Next()
	for more && now {
		if was.Key() != is.Key() { // gone, or further behind, where it is then added
			deletes[was.Key()] = true
			order = append(order, was.Key())
			more = was.Next()
			continue
		}
		if a, v := was.Value(), is.Value(); a.Type != v.Type || !bytes.Equal(a.Data, v.Data) {
			c := changed{key: is.Key(), old: a, now: v}
			if c.delta = deltaWithin(a, v, depth); c.delta != nil {
				within = append(within, c)
			} else {
				updates = append(updates, c)
			}
		}
		more, now = was.Next(), is.Next()
	}
	for ; now; now = is.Next() {
		inserts = append(inserts, changed{key: is.Key(), now: is.Value()})
		delete(deletes, is.Key())
	}
	for ; more; more = was.Next() {
		deletes[was.Key()] = true
		order = append(order, was.Key())
	}
	if len(deletes) > 0 {
		b.Object("d")
		for _, key := range order {
			if deletes[key] {
				b.Bool(key, false)
				delete(deletes, key)
			}
		}
		b.End()
	}
	appendValues(b, "u", updates)
	appendValues(b, "i", inserts)
	for _, c := range within {
		b.Document("s"+c.key, c.delta)
	}
}

func appendValues(b *bson.Builder, section string, values []changed) {
	if len(values) == 0 {
		return
	}
	b.Object(section)
	for _, c := range values {
		b.Value(c.key, c.now)
	}
	b.End()
}

// deltaWithin is the delta of two documents or two arrays; nil where one of them is neither, or the delta is not worth it.
func deltaWithin(old, now bson.Value, depth int) bson.Doc {
	if depth >= maxDiffDepth || old.Type != now.Type {
		return nil
	}
	b := bson.Build()
	switch now.Type {
	case bson.TypeObject:
		diffDocuments(b, old.Doc(), now.Doc(), depth+1)
	case bson.TypeArray:
		diffArrays(b, old.Doc(), now.Doc(), depth+1)
	default:
		return nil
	}
	if b.Len() >= len(now.Data) {
		return nil
	}
	return b.Doc()
}

func diffArrays(b *bson.Builder, old, array bson.Doc, depth int) {
	b.Bool("a", true)
	if n := array.Count(); n < old.Count() {
		b.Int32("l", int32(n))
	}
	was, is := old.Iter(), array.Iter()
	more := was.Next()
	for i := 0; is.Next(); i++ {
		v := is.Value()
		if !more {
			b.Value("u"+strconv.Itoa(i), v)
			continue
		}
		a := was.Value()
		more = was.Next()
		if a.Type == v.Type && bytes.Equal(a.Data, v.Data) {
			continue
		}
		if d := deltaWithin(a, v, depth); d != nil {
			b.Document("s"+strconv.Itoa(i), d)
		} else {
			b.Value("u"+strconv.Itoa(i), v)
		}
	}
}
