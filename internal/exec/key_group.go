package exec

import (
	"bytes"
	"slices"

	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/recordset"
)

// keyGroup remembers which records an index scan has given under the key that it is at. Among those with the same key, the
// ones that lie in the collection's order come behind those that do not yet. So when records are brought into order while a
// scan is parked there, some may come in front of it again, and one that walks backwards goes on from the end of the key.
type keyGroup struct {
	key   []byte
	given []uint64 // sequences, until the scan is parked; then seen has them
	seen  *recordset.Set
}

// maxKeyGroup is how many sequences are kept one by one.
const maxKeyGroup = 1 << 12

// add takes note of an entry, and says whether its record has not been given under this key.
func (g *keyGroup) add(e *storage.IndexEntry) bool {
	n, ok := e.RecordID.Sequence()
	if !ok {
		return true
	}
	if !bytes.Equal(e.Key, g.key) {
		g.key, g.given, g.seen = append(g.key[:0], e.Key...), g.given[:0], nil
	}
	if g.seen != nil {
		return g.seen.AddSequence(n)
	}
	if g.given = append(g.given, n); len(g.given) >= maxKeyGroup {
		g.mayComeAgain()
	}
	return true
}

// remove has the record of e not be given under its key yet.
func (g *keyGroup) remove(e *storage.IndexEntry) {
	n, ok := e.RecordID.Sequence()
	if !ok || !bytes.Equal(e.Key, g.key) {
		return
	}
	g.given = slices.DeleteFunc(g.given, func(m uint64) bool { return m == n })
	if g.seen != nil {
		g.seen.RemoveSequence(n)
	}
}

// mayComeAgain is told that records may have moved.
func (g *keyGroup) mayComeAgain() {
	if g.seen != nil {
		return
	}
	g.seen = &recordset.Set{}
	for _, n := range g.given {
		g.seen.AddSequence(n)
	}
}
