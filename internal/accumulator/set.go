package accumulator

import "github.com/ebbdb/ebb/internal/bson"

func setOperators() []Operator {
	return []Operator{
		{Name: "$addToSet", Since: "2.2", Doc: "An array of all different values.", Group: oneWith(newAddToSet, grows), Window: leftBehind(newLeavingAddToSet)},
		{Name: "$setUnion", Since: "8.1", Doc: "The different elements of all arrays.", Group: oneWith(newSetUnion, grows), Window: leftBehind(newLeavingUnion)},
	}
}

// set is an array of different values, in the order in which they came first.
type set struct {
	growing
	keys bson.StringKeyer
	seen map[string]struct{}
	key  []byte
	held int
}

// setBytes is about what an empty set takes.
const setBytes = 240

func (s *set) add(op string, v bson.Value) error {
	s.key = bson.AppendCanonical(s.key[:0], v, s.keys)
	if _, known := s.seen[string(s.key)]; known {
		return nil
	}
	s.held += len(s.key) + 48
	if s.held > MaxArrayBytes {
		return tooMuchMemory(op)
	}
	s.seen[string(s.key)] = struct{}{}
	return s.append(op, v)
}

func (s *set) addAll(op string, array bson.Value) error {
	for it := array.Doc().Iter(); it.Next(); {
		if err := s.add(op, it.Value()); err != nil {
			return err
		}
	}
	return nil
}

func (s *set) Value() (bson.Value, error) { return s.value(), nil }
func (s *set) Partial() bson.Value        { return s.value() }
func (s *set) Size() int                  { return setBytes + s.size() + s.held }

type addToSet struct{ set }

func newAddToSet(p *Parser) maker {
	return func(bson.Value) (Fold, error) {
		return &addToSet{set{keys: p.keys, seen: map[string]struct{}{}}}, nil
	}
}

func (a *addToSet) Add(args []bson.Value) error {
	if args[0].IsMissing() {
		return nil
	}
	return a.add("$addToSet", args[0])
}

func (a *addToSet) Merge(partial bson.Value) error { return a.addAll("$addToSet", partial) }

type setUnion struct{ set }

func newSetUnion(p *Parser) maker {
	return func(bson.Value) (Fold, error) {
		return &setUnion{set{keys: p.keys, seen: map[string]struct{}{}}}, nil
	}
}

func (u *setUnion) Add(args []bson.Value) error {
	switch v := args[0]; v.Type {
	case bson.TypeMissing:
		return nil
	case bson.TypeArray:
		return u.addAll("$setUnion", v)
	default:
		return needsArray("$setUnion", v)
	}
}

func (u *setUnion) Merge(partial bson.Value) error { return u.addAll("$setUnion", partial) }
