package storage

import (
	"github.com/ebbdb/ebb/internal/storage/due"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/ttlchange"
)

// Dates is where the collection has the dates that its rules count from, for those who ask when documents expire. What it finds
// is stored, hidden or not.
func (r *Reader) Dates() *due.Source {
	return &due.Source{Ctx: r.view.ctx, Snapshot: r.view.reader, Collection: r.c.Collection, Rules: r.c.rules, Order: r.c.order,
		IsNumbered: r.c.idLength > 0, State: (*dates)(r)}
}

// dates is a Reader as due asks it.
type dates Reader

func (d *dates) Tombstones() (expiryorder.Tombstones, error) { return (*Reader)(d).swept() }

func (d *dates) Floor(span byte) int64 { return (*Reader)(d).floor(span) }

func (d *dates) IsInOrder() bool { return (*Reader)(d).isInOrder() }

func (d *dates) Index(number uint32) (e layout.Entries, multikey bool) {
	ix := d.c.index(number)
	if ix == nil {
		return layout.Entries{}, false
	}
	return ix.Entries, ix.Multikey.Any()
}

// isInOrder says whether all records that the view sees are known to lie in the order of expiry.
func (r *Reader) isInOrder() bool {
	s := r.c.state
	return r.c.order.Relocates() && s.inOrder.Load() == r.c.order.Number && s.inOrderSince.Load() <= r.view.swept
}

// BeforeChange is the collection before its TTLs change, for those who tell what the change does.
func (r *Reader) BeforeChange() *ttlchange.Collection {
	return &ttlchange.Collection{Dates: r.Dates(), Now: r.view.now, HiddenAt: r.at, All: r.view.hiding.All,
		Count: r.Count, Each: r.each, Stored: r.Unhidden().GetMany}
}

// each calls f with each visible record.
func (r *Reader) each(f func(Record) error) error {
	c, err := r.Scan(RecordScan{})
	if err != nil {
		return err
	}
	defer c.Close()
	for c.Next() {
		if err := f(c.Record()); err != nil {
			return err
		}
	}
	return c.Err()
}
