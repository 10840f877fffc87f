package accumulator

import (
	"github.com/tidwall/btree"

	"github.com/ebbdb/ebb/internal/bson"
)

// leavingSet is set over a window that leaves documents behind it: the different values of those that are left, in the order
// in which they come first among these. Each value comes and goes once.
type leavingSet struct {
	op      string
	keys    bson.StringKeyer
	unions  bool // of arrays, whose elements are the values
	members map[string]*member
	order   *btree.BTreeG[*member] // by the first of their places
	came    int                    // how many values have
	held    int
	key     []byte
	array   growing
	changed bool // array does not show what is there
}

// member is a value of a leavingSet, as it came at each place and has not gone: 1 and 1.0 are one value, which shows as the first.
type member struct{ came []placed[bson.Value] }

func (m *member) first() *placed[bson.Value] { return &m.came[0] }

// memberBytes is about what a member takes beside its key, placeBytes what each of its places does beside the value.
const (
	memberBytes = 128
	placeBytes  = 40
)

func newLeavingAddToSet(p *Parser) maker { return newLeavingSet(p, "$addToSet", false) }
func newLeavingUnion(p *Parser) maker    { return newLeavingSet(p, "$setUnion", true) }

func newLeavingSet(p *Parser, op string, unions bool) maker {
	return func(bson.Value) (Fold, error) {
		less := func(a, b *member) bool { return a.first().place < b.first().place }
		return &leavingSet{op: op, keys: p.keys, unions: unions, members: map[string]*member{},
			order: btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})}, nil
	}
}

func (s *leavingSet) Add(args []bson.Value) error {
	switch v := args[0]; {
	case v.IsMissing():
		return nil
	case !s.unions:
		return s.enter(v)
	case v.Type != bson.TypeArray:
		return needsArray(s.op, v)
	default:
		for it := v.Doc().Iter(); it.Next(); {
			if err := s.enter(it.Value()); err != nil {
				return err
			}
		}
		return nil
	}
}

func (s *leavingSet) enter(v bson.Value) error {
	s.key = bson.AppendCanonical(s.key[:0], v, s.keys)
	m := s.members[string(s.key)]
	known := m != nil
	if !known {
		m = &member{}
		s.members[string(s.key)] = m
		s.held += memberBytes + len(s.key)
	}
	if last := len(m.came) - 1; last >= 0 && bson.Identical(m.came[last].of, v) {
		v = m.came[last].of
	} else {
		v = v.Clone()
	}
	m.came = append(m.came, placed[bson.Value]{v, s.came})
	s.came++
	if !known {
		s.order.Set(m)
		s.changed = true
	}
	if s.held += placeBytes + len(v.Data); s.held > MaxArrayBytes {
		return tooMuchMemory(s.op)
	}
	return nil
}

// Remove implements Remover.
func (s *leavingSet) Remove(args []bson.Value) bool {
	switch v := args[0]; {
	case v.IsMissing():
		return true
	case !s.unions:
		return s.leave(v)
	case v.Type != bson.TypeArray:
		return false
	default:
		for it := v.Doc().Iter(); it.Next(); {
			if !s.leave(it.Value()) {
				return false
			}
		}
		return true
	}
}

// leave takes out the first v, and says whether there was one, as there is unless the expression draws random numbers.
func (s *leavingSet) leave(v bson.Value) bool {
	s.key = bson.AppendCanonical(s.key[:0], v, s.keys)
	m := s.members[string(s.key)]
	if m == nil {
		return false
	}
	s.changed = true
	s.order.Delete(m)
	s.held -= placeBytes + len(m.first().of.Data)
	if m.came = m.came[1:]; len(m.came) > 0 {
		s.order.Set(m)
		return true
	}
	delete(s.members, string(s.key))
	s.held -= memberBytes + len(s.key)
	return true
}

func (s *leavingSet) Value() (bson.Value, error) {
	if s.changed {
		s.array.clear()
		s.changed = false
		var err error
		s.order.Scan(func(m *member) bool {
			err = s.array.append(s.op, m.first().of)
			return err == nil
		})
		if err != nil {
			return bson.Missing, err
		}
	}
	return s.array.value(), nil
}

// Partial and Merge are for groups, which nothing leaves.
func (s *leavingSet) Partial() bson.Value    { panic("accumulator: a part of a window") }
func (s *leavingSet) Merge(bson.Value) error { panic("accumulator: a part of a window") }
func (s *leavingSet) Size() int              { return s.held + s.array.size() }
