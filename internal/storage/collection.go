package storage

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/keystring"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// version is one version of the catalogue with what the store keeps about each collection. It is not changed once it is
// published.
type version struct {
	catalog     *catalog.Catalog
	collections map[uint32]*collection
}

// collection is one version of a collection.
type collection struct {
	*catalog.Collection
	steady  *steady
	indexes []*tableIndex // those that keep entries
	id      *tableIndex   // the one on _id, nil when clustered or a time series
	rules   policy.Rules
	// idLength is the length of record ids, 0 when it varies.
	idLength int
	// idCollation orders the ids of a clustered collection; nil for the order of bytes.
	idCollation keystring.Collator
}

// steady is what all versions of a collection share.
type steady struct {
	lock     lock
	sequence sequence
	measured measured
	// trimmed is a record of a capped collection up to which all are gone; lock, held exclusively, guards it. The search for
	// the oldest begins there: what the engine keeps of deleted records would make it longer with each.
	trimmed RecordID
	news    news
	// builds are the index builds whose side tables writers fill; lock, held exclusively, guards it, and anybody may look.
	builds atomic.Pointer[[]*Build]
	// writes counts commits beside builds.
	writes atomic.Int64
}

// tableIndex is an index that keeps entries.
type tableIndex struct {
	entries
	multikey *multikey
	// roots are the first components of the key's paths; nil when any change of a document may change its keys.
	roots []string
}

// next is v with another catalogue: collections that did not change stay as they are, and of those that did what is
// steady does. fresh finds the multikey bits of indexes that v does not have.
func (v *version) next(c *catalog.Catalog, fresh func(*index.Definition) *multikey) *version {
	n := &version{c, make(map[uint32]*collection, len(v.collections)+1)}
	for _, entry := range c.All() {
		old := v.collections[entry.ID]
		if old == nil || old.Collection != entry {
			old = makeCollection(entry, old, fresh)
		}
		n.collections[entry.ID] = old
	}
	return n
}

func makeCollection(entry *catalog.Collection, old *collection, fresh func(*index.Definition) *multikey) *collection {
	c := &collection{Collection: entry, idLength: sequenceLength}
	if old != nil {
		c.steady = old.steady
	} else {
		c.steady = &steady{sequence: sequence{collection: entry.ID}}
	}
	if entry.IsClustered() || entry.IsTimeSeries() {
		c.idLength = 0
	}
	if entry.CollatedIDs {
		if parsed, err := collation.Parse(entry.Options.Collation); err == nil && parsed != nil {
			c.idCollation = parsed
		}
	}
	for _, d := range entry.Indexes {
		if !d.Built() {
			continue
		}
		ix := &tableIndex{entries: entries{d, c.idLength}, roots: d.Roots()}
		if o := old.index(d.ID); o != nil {
			ix.multikey = o.multikey
		} else {
			ix.multikey = fresh(d)
		}
		c.indexes = append(c.indexes, ix)
		if d.IsID() {
			c.id = ix
		}
	}
	c.rules = rulesOf(entry)
	return c
}

func rulesOf(entry *catalog.Collection) policy.Rules {
	var own *policy.Rule
	cell := int64(0)
	if entry.IsTimeSeries() {
		cell = entry.Options.TimeSeries.SpanSeconds
	}
	switch {
	case !entry.Options.HasTTL:
	case entry.IsClustered():
		r := policy.ForClustered(entry.Options.ExpireAfterSeconds)
		own = &r
	case entry.IsTimeSeries():
		r := policy.ForSeries(entry.Options.TimeSeries.TimeField, entry.Options.ExpireAfterSeconds, cell)
		own = &r
	}
	return policy.NewRules(entry.Indexes, own, cell)
}

func (c *collection) index(id uint32) *tableIndex {
	if c == nil {
		return nil
	}
	for _, ix := range c.indexes {
		if ix.ID == id {
			return ix
		}
	}
	return nil
}

// sequence hands out the ids of a plain collection. The first is one more than the highest that is stored.
type sequence struct {
	collection uint32
	mu         struct {
		sync.Mutex
		last  uint64
		known bool
	}
}

func (q *sequence) next(e kv.Engine) (RecordID, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.mu.known {
		last, err := lastSequence(e, q.collection)
		if err != nil {
			return nil, err
		}
		q.mu.last, q.mu.known = last, true
	}
	q.mu.last++
	return sequenceID(q.mu.last), nil
}

func lastSequence(e kv.Engine, collection uint32) (last uint64, err error) {
	s, err := e.Snapshot()
	if err != nil {
		return 0, fmt.Errorf("storage: last record: %w", err)
	}
	defer s.Close()
	start := recordKey(nil, collection, nil)
	it, err := s.NewIter(kv.IterOptions{Lower: start, Upper: After(start)})
	if err != nil {
		return 0, fmt.Errorf("storage: last record: %w", err)
	}
	defer it.Close()
	if it.Last() {
		id := it.Key()[tableLength:]
		if len(id) != sequenceLength {
			return 0, fmt.Errorf("storage: record id %x is not one of a plain collection", id)
		}
		return binary.BigEndian.Uint64(id), nil
	}
	return 0, it.Err()
}
