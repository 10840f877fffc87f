package exec

import (
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
)

// Metadata is what is known of a document beside its fields: "textScore", "geoNearDistance" and so on. There is hardly ever
// more than one.
type Metadata struct {
	names  []string
	values []bson.Value
}

// Set gives the metadata name a value, which it copies.
func (m *Metadata) Set(name string, v bson.Value) {
	for i, n := range m.names {
		if n == name {
			m.values[i] = v.Clone()
			return
		}
	}
	m.names = append(m.names, name)
	m.values = append(m.values, v.Clone())
}

// Get is the metadata name, missing when there is none.
func (m *Metadata) Get(name string) bson.Value {
	for i, n := range m.names {
		if n == name {
			return m.values[i]
		}
	}
	return bson.Missing
}

// take gives m what other has. Values are never changed in place, so that both may hold their bytes.
func (m *Metadata) take(other *Metadata) {
	m.names, m.values = append(m.names[:0], other.names...), append(m.values[:0], other.values...)
}

// Remove forgets the metadata with the names.
func (m *Metadata) Remove(names ...string) {
	for i := len(m.names) - 1; i >= 0; i-- {
		if slices.Contains(names, m.names[i]) {
			m.names, m.values = slices.Delete(m.names, i, i+1), slices.Delete(m.values, i, i+1)
		}
	}
}

// Clear forgets everything.
func (m *Metadata) Clear() { m.names, m.values = m.names[:0], m.values[:0] }

func (m *Metadata) empty() bool { return len(m.names) == 0 }

// doc is m as a document, nil when it is empty; from reads it back.
func (m *Metadata) doc() bson.Doc {
	if m.empty() {
		return nil
	}
	b := bson.Build()
	for i, n := range m.names {
		b.Value(n, m.values[i])
	}
	return b.Doc()
}

func (m *Metadata) from(d bson.Doc) {
	m.Clear()
	for it := d.Iter(); it.Next(); {
		m.names = append(m.names, string(append([]byte(nil), it.Key()...)))
		m.values = append(m.values, it.Value().Clone())
	}
}
