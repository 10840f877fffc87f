package column

import (
	"encoding/binary"

	"github.com/ebbdb/ebb/internal/bson"
)

// step is one of those by which an object is put together that was taken apart.
type step struct {
	kind  stepKind
	name  string
	array bool
	// empty: the reference has nothing in it, so that it is there though no field is.
	empty bool
	// stream is the number of a field's.
	stream int
}

type stepKind uint8

const (
	enter stepKind = iota
	leave
	field
)

// plan is the steps of all objects that have fields of a reference, and their streams.
type plan struct {
	steps   []step
	streams []stream
	arrays  bool // arrays are taken apart, too
}

// add adds what is in d.
func (p *plan) add(name string, d bson.Doc, array bool) {
	p.steps = append(p.steps, step{kind: enter, name: name, array: array})
	for it := d.Iter(); it.Next(); {
		v := it.Value()
		if v.Type == bson.TypeObject || v.Type == bson.TypeArray && p.arrays {
			p.add(it.Key(), v.Doc(), v.Type == bson.TypeArray)
			continue
		}
		p.steps = append(p.steps, step{kind: field, name: it.Key(), stream: len(p.streams)})
		p.streams = append(p.streams, begin(v))
	}
	p.steps = append(p.steps, step{kind: leave, empty: d.IsEmpty()})
}

// interleaved reads objects that were taken apart. last is the last of them.
func (r *reader) interleaved(control byte) (last bson.Value, err error) {
	t := bson.TypeObject
	if control == interleavedArrays {
		t = bson.TypeArray
	}
	reference, n, err := bson.ReadValue(t, r.rest[1:], maxDepth)
	if err != nil {
		return bson.Missing, invalid("%v", err)
	}
	r.rest = r.rest[1+n:]
	p := plan{arrays: control != interleavedOld}
	p.add("", reference.Doc(), t == bson.TypeArray)
	if len(p.streams) == 0 {
		return bson.Missing, invalid("a reference has no fields")
	}
	if next, err := r.control(); err != nil || next == end {
		return bson.Missing, invalid("a reference is followed by nothing")
	}
	for {
		d, ok, err := r.object(&p)
		switch {
		case err != nil:
			return bson.Missing, err
		case !ok:
			return last, nil
		case d == nil:
			last = bson.Missing
		default:
			last = bson.Value{Type: t, Data: d}
		}
		if err := r.add(last); err != nil {
			return bson.Missing, err
		}
	}
}

// object is the next one, nil where it has no fields, if there is one.
func (r *reader) object(p *plan) (d bson.Doc, ok bool, err error) {
	if err := r.spend(len(p.steps)); err != nil {
		return nil, false, err
	}
	b := assembly{}
	for i := range p.steps {
		s := &p.steps[i]
		switch s.kind {
		case enter:
			b.enter(s)
		case leave:
			b.leave(s)
		case field:
			v, ok, err := r.field(&p.streams[s.stream])
			if err != nil {
				return nil, false, err
			}
			if !ok {
				return nil, false, r.leaveAll(p, s.stream)
			}
			if err := r.spend(len(v.Data)); err != nil {
				return nil, false, err
			}
			b.field(s.name, v)
		}
	}
	return b.bytes, true, nil
}

// field is a field's next value. There is none where the column goes on behind the objects.
func (r *reader) field(s *stream) (v bson.Value, ok bool, err error) {
	for range 2 {
		if v, ok, err = s.next(); ok || err != nil {
			return v, ok, err
		}
		control, err := r.control()
		if err != nil {
			return bson.Missing, false, err
		}
		if control == end {
			return bson.Missing, false, nil
		}
		if isInterleaved(control) {
			return bson.Missing, false, invalid("objects begin among the fields of others")
		}
		if err := r.part(s); err != nil {
			return bson.Missing, false, err
		}
	}
	return bson.Missing, false, invalid("blocks have no values")
}

// leaveAll is called where a field has no more values. All must have as many.
func (r *reader) leaveAll(p *plan, at int) error {
	if at != 0 {
		return invalid("the last object ends at a field")
	}
	r.rest = r.rest[1:]
	for i := range p.streams {
		if p.streams[i].left() {
			return invalid("fields have more values than there are objects")
		}
	}
	return nil
}

func (s *stream) left() bool { return s.literal || s.blocks.left > 0 || len(s.blocks.words) > 0 }

// assembly is an object that is put together.
type assembly struct {
	bytes bson.Doc
	open  []opened
}

// opened is an object that has no end yet.
type opened struct{ head, body int }

func (a *assembly) enter(s *step) {
	head := len(a.bytes)
	if len(a.open) > 0 {
		t := bson.TypeObject
		if s.array {
			t = bson.TypeArray
		}
		a.element(s.name, t)
	}
	a.open = append(a.open, opened{head, len(a.bytes)})
	a.bytes = append(a.bytes, 0, 0, 0, 0)
}

func (a *assembly) leave(s *step) {
	o := a.open[len(a.open)-1]
	a.open = a.open[:len(a.open)-1]
	if len(a.bytes) == o.body+4 && !s.empty {
		if a.bytes = a.bytes[:o.head]; o.head == 0 {
			a.bytes = nil
		}
		return
	}
	a.bytes = append(a.bytes, 0)
	binary.LittleEndian.PutUint32(a.bytes[o.body:], uint32(len(a.bytes)-o.body))
}

func (a *assembly) field(name string, v bson.Value) {
	if !v.IsMissing() {
		a.element(name, v.Type)
		a.bytes = append(a.bytes, v.Data...)
	}
}

func (a *assembly) element(name string, t bson.Type) {
	a.bytes = append(append(append(a.bytes, byte(t)), name...), 0)
}
