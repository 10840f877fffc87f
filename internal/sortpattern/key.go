package sortpattern

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Meta gives the metadata of the document at hand, missing when there is none of that name.
type Meta func(name string) bson.Value

// Key appends doc's sort key to dst: a value a part, which share doc's bytes.
//
// An array on a path stands for its elements: the smallest sorts when ascending, the largest when descending. One that stands
// at a position by which the path ends stands for itself. An empty array is below null; a missing value is null. When arrays are met by several parts, they must be one and the same array, and the
// document's key is the first in order among those of its elements. Ask, which may be nil, is called now and then while there are many;
// its error ends the search.
func (p *Pattern) Key(dst []bson.Value, doc bson.Doc, meta Meta, c bson.Collator, ask func() error) ([]bson.Value, error) {
	start, arrays := len(dst), 0
	for i := range p.Parts {
		part := &p.Parts[i]
		if part.Meta != "" {
			v, err := metaKey(part.Meta, meta)
			if err != nil {
				return dst, err
			}
			dst = append(dst, v)
			continue
		}
		v, array := straight(part.Path, doc)
		if array {
			arrays++
		}
		dst = append(dst, v)
	}
	if arrays == 0 {
		return dst, nil
	}
	return dst, p.spread(dst[start:], doc, c, ask)
}

func metaKey(name string, meta Meta) (bson.Value, error) {
	v := bson.Missing
	if meta != nil {
		v = meta(name)
	}
	switch {
	case !v.IsMissing():
		return v, nil
	case name == "geoNearDistance":
		return v, mongoerr.New(40218, "query requires $geoNear distance metadata, but it is not available")
	case name == "textScore":
		return v, mongoerr.New(40218, "query requires text score metadata, but it is not available")
	}
	return bson.Null, nil
}

// straight is the value at path through documents; array says that one was met, on the way or at the end.
func straight(path fieldpath.Path, d bson.Doc) (v bson.Value, array bool) {
	for i, n := 0, path.Len(); ; i++ {
		v = d.Lookup(path.Part(i))
		switch {
		case v.Type == bson.TypeArray:
			return v, true
		case i == n-1:
			if v.IsMissing() {
				return bson.Null, false
			}
			return v, false
		case v.Type != bson.TypeObject:
			return bson.Null, false
		}
		d = v.Doc()
	}
}

// cursor is how far one part has come: the value it stands at and the components that are left.
type cursor struct {
	value bson.Value
	left  fieldpath.Path
	array bool // value is an array to go through
	done  bool // value is final
}

// spread fills key for a document in which at least one part meets an array.
func (p *Pattern) spread(key []bson.Value, doc bson.Doc, c bson.Collator, ask func() error) error {
	s := spreader{pattern: p, best: key, collator: c, ask: ask}
	at := make([]cursor, len(p.Parts))
	for i := range p.Parts {
		if p.Parts[i].Meta != "" {
			at[i] = cursor{value: key[i], done: true}
		} else {
			var err error
			if at[i], err = advance(doc.Value(), p.Parts[i].Path); err != nil {
				return err
			}
		}
	}
	return s.run(at)
}

type spreader struct {
	pattern  *Pattern
	best     []bson.Value
	found    bool
	collator bson.Collator
	ask      func() error
	work     int // since ask was called
}

// workPerAsk is how many values are looked at between two questions, and bytesPerWork how much is as good as one more.
const (
	workPerAsk   = 1024
	bytesPerWork = 256
)

// tired says, after much work, whether nobody wants the key any more.
func (s *spreader) tired(at []cursor) error {
	for i := range at {
		s.work += 1 + (len(at[i].value.Data)+len(s.best[i].Data))/bytesPerWork
	}
	if s.work < workPerAsk || s.ask == nil {
		return nil
	}
	s.work = 0
	return s.ask()
}

// run tries every key that the cursors stand for.
func (s *spreader) run(at []cursor) error {
	array := -1
	for i := range at {
		if !at[i].array {
			continue
		}
		if array >= 0 && &at[array].value.Data[0] != &at[i].value.Data[0] {
			return mongoerr.New(mongoerr.BadValue, "cannot sort with keys that are parallel arrays")
		}
		array = i
	}
	if array < 0 {
		s.take(at)
		return s.tired(at)
	}
	next := make([]cursor, len(at))
	d := at[array].value.Doc()
	if d.IsEmpty() {
		for i := range at {
			next[i] = at[i]
			if at[i].array {
				next[i] = cursor{value: emptied(at[i]), done: true}
			}
		}
		return s.run(next)
	}
	for it := d.Iter(); it.Next(); {
		for i := range at {
			next[i] = at[i]
			if at[i].array {
				var err error
				if next[i], err = element(it.Value(), at[i].left); err != nil {
					return err
				}
			}
		}
		if err := s.run(next); err != nil {
			return err
		}
	}
	return nil
}

// emptied is what an empty array is at a cursor: below null at the end of a path, else missing.
func emptied(c cursor) bson.Value {
	if c.left.Len() == 0 {
		return bson.Undefined
	}
	return bson.Null
}

func (s *spreader) take(at []cursor) {
	if s.found {
		key := make([]bson.Value, len(at))
		for i := range at {
			key[i] = at[i].value
		}
		if s.pattern.Compare(key, s.best, s.collator) >= 0 {
			return
		}
	}
	s.found = true
	for i := range at {
		s.best[i] = at[i].value
	}
}

// element is the cursor at an element of an array that was gone through: an array at the path's end is not gone through
// again, nor is one inside of an array on the way.
func element(v bson.Value, left fieldpath.Path) (cursor, error) {
	switch {
	case left.Len() == 0:
		return cursor{value: v, done: true}, nil
	case v.Type != bson.TypeObject:
		return cursor{value: bson.Null, done: true}, nil
	}
	return advance(v, left)
}

// advance goes along the path through documents, and through an array where the next component is a position in it, unless
// that is a field of its documents as well. An array at a position by which the path ends is one value, and below null when
// it is empty.
func advance(v bson.Value, left fieldpath.Path) (cursor, error) {
	for positioned := false; ; {
		switch {
		case v.Type == bson.TypeArray && left.Len() > 0:
			if i, ok := left.Position(0); ok {
				if e := v.Doc().Index(i); !e.IsMissing() {
					if err := fieldpath.CheckPosition(v.Doc(), left.Part(0)); err != nil {
						return cursor{}, err
					}
					v, left, positioned = e, left.From(1), true
					continue
				}
			}
			return cursor{value: v, left: left, array: true}, nil
		case v.Type == bson.TypeArray && positioned:
			return cursor{value: atPosition(v), done: true}, nil
		case v.Type == bson.TypeArray:
			return cursor{value: v, array: true}, nil
		case left.Len() == 0 && v.IsMissing():
			return cursor{value: bson.Null, done: true}, nil
		case left.Len() == 0:
			return cursor{value: v, done: true}, nil
		case v.Type != bson.TypeObject:
			return cursor{value: bson.Null, done: true}, nil
		}
		v, left, positioned = v.Doc().Lookup(left.Part(0)), left.From(1), false
	}
}

func atPosition(array bson.Value) bson.Value {
	if array.Doc().IsEmpty() {
		return bson.Undefined
	}
	return array
}
