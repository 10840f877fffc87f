package accumulator

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func objectOperators() []Operator {
	return []Operator{
		{Name: "$mergeObjects", Since: "3.6", Doc: "One document with the fields of all, the last of each name winning.", Group: one(newMerge, grows)},
	}
}

// merged is the fields of several documents, each where its name stood first.
type merged struct {
	keys   []string
	values []bson.Value
	at     map[string]int
	held   int
}

// mergedBytes is about what a merged without fields takes.
const mergedBytes = 300

func newMerge(bson.Value) (Fold, error) { return &merged{at: map[string]int{}}, nil }

func (m *merged) Add(args []bson.Value) error {
	v := args[0]
	if v.IsNullish() {
		return nil
	}
	if v.Type != bson.TypeObject {
		return mongoerr.New(5911200, "$mergeObjects only supports objects, but got: %s of type %s", v.Computed(), v.Type)
	}
	return m.Merge(v)
}

func (m *merged) Merge(v bson.Value) error {
	for it := v.Doc().Iter(); it.Next(); {
		m.set(it.Key(), it.Value())
	}
	if m.held > MaxArrayBytes {
		return tooMuchMemory("$mergeObjects")
	}
	return nil
}

func (m *merged) set(key string, v bson.Value) {
	if i, known := m.at[key]; known {
		m.held += len(v.Data) - len(m.values[i].Data)
		m.values[i] = v.Clone()
		return
	}
	key = string(append([]byte(nil), key...)) // the key shares the document's bytes
	m.at[key] = len(m.keys)
	m.keys = append(m.keys, key)
	m.values = append(m.values, v.Clone())
	m.held += len(v.Data) + 2*len(key) + 96
}

func (m *merged) Value() (bson.Value, error) { return m.Partial(), nil }

func (m *merged) Partial() bson.Value {
	b := bson.BuildOn(make([]byte, 0, m.held+16))
	for i, k := range m.keys {
		b.Value(k, m.values[i])
	}
	return b.Doc().Value()
}

func (m *merged) Size() int { return mergedBytes + m.held }
