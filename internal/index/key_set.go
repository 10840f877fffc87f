package index

import (
	"bytes"
	"sort"

	"github.com/ebbdb/ebb/internal/bson"
)

// KeySet is the keys of a document, or of none.
type KeySet struct {
	Keys
	None bool
}

// Count is how many there are.
func (k *KeySet) Count() int {
	if k.None {
		return 0
	}
	return k.Len()
}

// Has says whether key is among the keys, which are in order.
func (k *KeySet) Has(key []byte) bool {
	_, found := sort.Find(k.Count(), func(i int) int { return bytes.Compare(key, k.Key(i)) })
	return found
}

// CompareKeys orders the i-th of a and the j-th of b; one that does not exist comes last.
func CompareKeys(a *KeySet, i int, b *KeySet, j int) int {
	switch {
	case i >= a.Count():
		return 1
	case j >= b.Count():
		return -1
	}
	return bytes.Compare(a.Key(i), b.Key(j))
}

// MayDiffer says whether two documents may have different keys, by the fields that the key's paths begin with (Definition.Roots).
func MayDiffer(roots []string, old, doc bson.Doc) bool {
	if roots == nil {
		return true
	}
	for _, root := range roots {
		if !bson.Identical(old.Lookup(root), doc.Lookup(root)) {
			return true
		}
	}
	return false
}
