package storage

import (
	"fmt"

	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/storage/expiry"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// Count is how many documents there are. Where some may be hidden it costs as much as there are expired documents that are
// still stored; otherwise nothing.
func (r *Reader) Count() (int64, error) {
	documents, _, err := r.storedCounts()
	if err != nil || !r.hides {
		return documents, err
	}
	hidden, ok, err := r.Dates().CountOf(r.hidingRules(), r.at)
	if err != nil || ok {
		return documents - hidden, err
	}
	return r.scanCount()
}

// Bytes is the size of all stored documents, hidden ones included.
func (r *Reader) Bytes() (int64, error) {
	_, bytes, err := r.storedCounts()
	return bytes, err
}

// Stored is how many documents are stored, expired ones that are hidden included.
func (r *Reader) Stored() (int64, error) {
	documents, _, err := r.storedCounts()
	return documents, err
}

// Entries is how many entries an index has; 0 when it keeps none.
func (r *Reader) Entries(d *index.Definition) (int64, error) {
	if r.c.index(d.ID) == nil {
		return 0, nil
	}
	documents, _, err := r.storedCounts()
	if err != nil {
		return 0, err
	}
	surplus, err := r.view.reader.Counter(layout.CounterKey(nil, layout.OfIndex, d.ID, layout.CountSurplus))
	if err != nil {
		return 0, fmt.Errorf("storage: count entries of %s: %w", r.c.NS, err)
	}
	if !r.MayHaveTombstones() {
		return documents + surplus, nil
	}
	early, err := expiry.CountedEarly(r.view.reader, d.ID)
	return documents + surplus + early, err
}

// storedCounts are the counters as the view sees them, a transaction's own changes included.
func (r *Reader) storedCounts() (documents, bytes int64, err error) {
	if r.view.txn != nil {
		r.view.txn.flush()
	}
	return r.counters()
}

// Expired is how many documents of the collection have expired and were deleted since it was made, also before a restart.
func (r *Reader) Expired() (n int64, err error) {
	if n, err = r.view.reader.Counter(layout.CounterKey(nil, layout.OfCollection, r.c.ID, layout.CountExpired)); err != nil {
		err = fmt.Errorf("storage: count what has expired of %s: %w", r.c.NS, err)
	}
	return n, err
}

func (r *Reader) counters() (documents, bytes int64, err error) {
	if documents, err = r.view.reader.Counter(layout.CounterKey(nil, layout.OfCollection, r.c.ID, layout.CountDocuments)); err == nil {
		bytes, err = r.view.reader.Counter(layout.CounterKey(nil, layout.OfCollection, r.c.ID, layout.CountBytes))
	}
	if err != nil {
		err = fmt.Errorf("storage: count %s: %w", r.c.NS, err)
	}
	return documents, bytes, err
}

// hidingRules are the rules that hide.
func (r *Reader) hidingRules() (hiding []*policy.Rule) {
	for i := range r.c.rules.All() {
		if rule := &r.c.rules.All()[i]; rule.Hides(r.view.hiding.All) {
			hiding = append(hiding, rule)
		}
	}
	return hiding
}

func (r *Reader) scanCount() (n int64, err error) {
	c, err := r.Scan(RecordScan{})
	if err != nil {
		return 0, err
	}
	defer c.Close()
	for c.Next() {
		n++
	}
	return n, c.Err()
}
