package build

import (
	"maps"
	"slices"

	"github.com/ebbdb/ebb/internal/storage/duplicate"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// maxWaiting bounds the records that wait for a key of a unique index that another one has: with more the build fails
// at once.
const maxWaiting = 1000

// waiting are the records that have a key of a unique index which another one holds, by key string. Until the end of the
// build either may go.
type waiting struct {
	byKey map[string][]holder
	n     int
}

type holder struct {
	id       layout.RecordID
	typeBits []byte
}

// wait adds a record that has the key, beside the one in the table.
func (t *Table) wait(keyString []byte, id layout.RecordID, typeBits []byte) error {
	t.unwait(keyString, id)
	if t.waiting.n == maxWaiting {
		return duplicate.Key(t.Collection, t.Definition, keyString, typeBits)
	}
	if t.waiting.byKey == nil {
		t.waiting.byKey = map[string][]holder{}
	}
	t.waiting.byKey[string(keyString)] = append(t.waiting.byKey[string(keyString)], holder{id.Clone(), slices.Clone(typeBits)})
	t.waiting.n++
	return nil
}

func (t *Table) unwait(keyString []byte, id layout.RecordID) {
	all := t.waiting.byKey[string(keyString)]
	left := slices.DeleteFunc(all, func(h holder) bool { return h.id.IsSame(id) })
	t.waiting.n -= len(all) - len(left)
	if len(left) == 0 {
		delete(t.waiting.byKey, string(keyString))
		return
	}
	t.waiting.byKey[string(keyString)] = left
}

func (t *Table) firstWaiting(keyString []byte) (holder, bool) {
	all := t.waiting.byKey[string(keyString)]
	if len(all) == 0 {
		return holder{}, false
	}
	return all[0], true
}

// EachWaiting calls f with each key of a unique index that records wait for, with those records; the one that has it is in the
// index.
func (t *Table) EachWaiting(f func(keyString []byte, ids []layout.RecordID) error) error {
	for keyString, holders := range t.waiting.byKey {
		ids := make([]layout.RecordID, len(holders))
		for i, h := range holders {
			ids[i] = h.id
		}
		if err := f([]byte(keyString), ids); err != nil {
			return err
		}
	}
	return nil
}

// CheckWaiting fails when a record waits for a key.
func (t *Table) CheckWaiting() error {
	for _, keyString := range slices.Sorted(maps.Keys(t.waiting.byKey)) {
		return duplicate.Key(t.Collection, t.Definition, []byte(keyString), t.waiting.byKey[keyString][0].typeBits)
	}
	return nil
}
