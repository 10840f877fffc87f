package pebblekv

import (
	"bytes"
	"slices"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/ebbdb/ebb/internal/kv"
)

// regions cuts tables where a region of keys ends that much is written to.
//
// Who loads a collection writes at the end of its records, and often at the end of its indexes. What one flush writes of a region
// then lies behind what the flush before has written. Nothing overlaps, so nothing has to be merged: tables only move down. But
// Pebble cuts what it flushes by size alone. A table with the end of one region and the start of the next overlaps all that comes
// to lie between them later, and so links all flushes to one large merge. Cut at the ends of regions they stay apart.
//
// A region that little is written to shares its tables with its neighbours: a thousand small collections need no table each. Much
// is what has filled a table by itself in the flush before.
type regions struct {
	of   func(key []byte) kv.Range // Options.RegionOf
	full uint64                    // the size of a table that counts as filled
	// large are the regions that much is written to, in the order of their keys. It is replaced as a whole.
	large atomic.Pointer[[]kv.Range]
}

// policy is a pebble.SpanPolicyFunc: a table that begins with key ends before end, or anywhere if that is nil.
func (r *regions) policy(key []byte) (policy pebble.SpanPolicy, end []byte, err error) {
	list := r.large.Load()
	if list == nil {
		return policy, nil, nil
	}
	i, _ := slices.BinarySearchFunc(*list, key, func(g kv.Range, key []byte) int {
		if bytes.Compare(g.End, key) <= 0 {
			return -1
		}
		return 1
	})
	switch {
	case i == len(*list):
		return policy, nil, nil
	case bytes.Compare((*list)[i].Start, key) > 0:
		return policy, (*list)[i].Start, nil
	}
	return policy, (*list)[i].End, nil
}

// flushed looks at the tables that a flush has made, which lie in the order of their keys.
func (r *regions) flushed(tables []pebble.TableInfo) {
	if r.of == nil {
		return
	}
	var list []kv.Range
	for _, t := range tables {
		if t.Size < r.full {
			continue
		}
		g := r.of(t.Smallest.UserKey)
		isInside := bytes.Compare(t.Largest.UserKey, g.End) < 0
		isNew := len(list) == 0 || bytes.Compare(list[len(list)-1].End, g.Start) <= 0
		if isInside && isNew {
			list = append(list, g)
		}
	}
	r.large.Store(&list)
}

const (
	// tablesPerFlush is how many tables a full memtable makes, at least about: few enough to be no burden, and so many that flushes that
	// have to be merged are more than growthTables times as much as one of the tables of the level below.
	//
	// Pebble adds to a merge of flushed tables what else of them it could merge beside it, with no regard to whether that overlaps anything, up
	// to growthTables tables of that level. Where there is more it adds nothing. That is the case here as soon as it merges at all, so that
	// what overlaps nothing is not merged but moved.
	tablesPerFlush = 48
	growthTables   = 25
	// minTableBytes is the least that such a table has, for memtables that are small.
	minTableBytes = 64 << 10
	// lowTableBytes is the size of tables two levels below, from where on it doubles with each level.
	lowTableBytes = 8 << 20
)

// setTableSizes sets how large the tables of each level are, beside a memtable of so many bytes.
func setTableSizes(p *pebble.Options, memTable int64) {
	flushed := max(memTable/tablesPerFlush, minTableBytes)
	p.TargetFileSizes[0], p.TargetFileSizes[1], p.TargetFileSizes[2] = flushed, 2*flushed, lowTableBytes
}
