package oplog

import (
	"bytes"
	"strconv"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
)

// A delta is {d: {field: false}, u: {field: value}, i: {field: value}, s<field>: delta}: what is deleted, what is changed where it
// stands, what is added at the end, and what is changed within a document or an array. The delta of an array is {a: true, l: length,
// u<index>: value, s<index>: delta}, with l where the array is shorter than before.

// maxDiffDepth bounds how deep a delta looks into documents; what lies deeper is changed as a whole.
const maxDiffDepth = 32

// differ makes deltas. Where it knows what an update aimed at, it says what has changed in the update's words: what was changed as a
// whole, and what within. Otherwise it says what is shorter.
type differ struct{ aimed bool }

// appendDiff appends the elements of the delta that makes old into doc, by an update that aimed at these places; nil where nobody knows.
func appendDiff(b *bson.Builder, old, doc bson.Doc, aim *fieldpath.Aim) {
	differ{aim != nil}.documents(b, old, doc, aim, 0)
}

// changed is a field of both documents whose values differ.
type changed struct {
	key      string
	old, now bson.Value
	delta    bson.Doc // of what has changed within it
}

func (d differ) documents(b *bson.Builder, old, doc bson.Doc, aim *fieldpath.Aim, depth int) {
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
			if c.delta = d.within(a, v, aim.Field(c.key), depth); c.delta != nil {
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

// within is the delta of two documents or two arrays; nil where one of them is neither, or the whole value is what is told.
func (d differ) within(old, now bson.Value, aim *fieldpath.Aim, depth int) bson.Doc {
	if depth >= maxDiffDepth || old.Type != now.Type || now.Type != bson.TypeObject && now.Type != bson.TypeArray || d.aimed && setsAll(old, now, aim) {
		return nil
	}
	b := bson.Build()
	if now.Type == bson.TypeObject {
		d.documents(b, old.Doc(), now.Doc(), aim, depth+1)
	} else {
		d.arrays(b, old.Doc(), now.Doc(), aim, depth+1)
	}
	if !d.aimed && b.Len() >= len(now.Data) {
		return nil
	}
	return b.Doc()
}

// setsAll says whether an update that aimed so has set the whole value. One that changes several elements of an array without naming
// them sets the array, and so does one that does more to an array than to add elements at its end.
func setsAll(old, now bson.Value, aim *fieldpath.Aim) bool {
	switch {
	case aim == nil:
		return true
	case aim.Value:
		return now.Type != bson.TypeArray || !aim.Appends || !beginsWith(now.Doc(), old.Doc())
	}
	return !aim.Goes() || now.Type == bson.TypeArray && aim.Each && changedElements(old.Doc(), now.Doc()) > 1
}

// beginsWith says whether an array begins with all the elements of another.
func beginsWith(array, front bson.Doc) bool {
	const head = 4 // the length
	return len(array) >= len(front) && bytes.Equal(array[head:len(front)-1], front[head:len(front)-1])
}

func changedElements(old, now bson.Doc) (n int) {
	was, is := old.Iter(), now.Iter()
	for is.Next() {
		if !was.Next() || !bson.Identical(was.Value(), is.Value()) {
			n++
		}
	}
	return n
}

func (d differ) arrays(b *bson.Builder, old, array bson.Doc, aim *fieldpath.Aim, depth int) {
	b.Bool("a", true)
	if n := array.Count(); n < old.Count() {
		b.Int32("l", int32(n))
	}
	was, is := old.Iter(), array.Iter()
	more := was.Next()
	for i := 0; is.Next(); i++ {
		v := is.Value()
		if !more {
			if d.aimed && !aim.Appends && v.Type == bson.TypeNull && aim.At(i) == nil {
				continue // one that only fills up, which applying the delta does by itself
			}
			b.Value("u"+strconv.Itoa(i), v)
			continue
		}
		a := was.Value()
		more = was.Next()
		if bson.Identical(a, v) {
			continue
		}
		if delta := d.within(a, v, aim.At(i), depth); delta != nil {
			b.Document("s"+strconv.Itoa(i), delta)
		} else {
			b.Value("u"+strconv.Itoa(i), v)
		}
	}
}
