package storage

import (
	"context"
	"errors"
	"fmt"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/expiryclock"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/oplog"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// View is what one operation reads: one version of the catalogue, one state of the data, one now. It is used by one
// goroutine at a time. A cursor that waits for its client closes its View and goes on in a new one.
type View struct {
	store       *Store
	ctx         context.Context
	version     *version
	reader      kv.Reader
	snapshot    kv.Snapshot // nil in a transaction, whose end is the transaction's
	txn         *Txn        // nil outside of one
	past        *PastState  // nil where it reads what is there now, or was when its transaction began
	now         int64
	hiding      expiryclock.State
	swept       uint64 // how many sweeps there had been before it began
	relocations uint64 // and how many commits that moved records
	// first is the first reader of the view, taken that there is one: most views have no other.
	first Reader
	taken bool
}

// View returns a view of what is committed, at the store's time. Close it soon. Long reads in it end with ctx.
func (s *Store) View(ctx context.Context) (*View, error) {
	now := s.Now()
	if least, ok := ctx.Value(leastNow{}).(int64); ok {
		now = max(now, least)
	}
	return s.ViewAt(ctx, now)
}

type leastNow struct{}

// NotBefore has the views of a context, but for those whose now is given, not be before a moment in milliseconds since the epoch.
func NotBefore(ctx context.Context, millis int64) context.Context {
	return context.WithValue(ctx, leastNow{}, millis)
}

// ViewAt is View for an operation whose now was fixed before.
func (s *Store) ViewAt(ctx context.Context, now int64) (*View, error) {
	for {
		version, swept, relocations, hiding := s.current.Load(), s.sweeps.Load(), s.relocations.Load(), s.expiryClock.State()
		snapshot, err := s.engine.Snapshot()
		if err != nil {
			return nil, fmt.Errorf("storage: view: %w", err)
		}
		if s.current.IsCurrent(version) {
			snapshot.Within(ctx)
			v := s.spareView()
			v.store, v.ctx, v.version, v.reader, v.snapshot, v.now, v.hiding = s, ctx, version, snapshot, snapshot, now, hiding
			v.swept, v.relocations = swept, relocations
			return v, nil
		}
		if err := snapshot.Close(); err != nil {
			return nil, fmt.Errorf("storage: view: %w", err)
		}
		if err := s.current.Await(ctx); err != nil {
			return nil, err
		}
	}
}

func (s *Store) newView(ctx context.Context, v *version, r kv.Reader, snapshot kv.Snapshot, now int64, h expiryclock.State) *View {
	return &View{store: s, ctx: ctx, version: v, reader: r, snapshot: snapshot, now: now, hiding: h}
}

// spareView is a view that has not begun.
func (s *Store) spareView() *View {
	if v, ok := s.views.Get().(*View); ok {
		return v
	}
	return &View{}
}

// Release is Close for a view of ViewAt that nobody knows any more, nor a reader or a cursor of it: another view takes its memory.
func (v *View) Release() error {
	err, s := v.Close(), v.store
	*v = View{}
	s.views.Put(v)
	return err
}

// Close ends the view; cursors opened in it must be closed before.
func (v *View) Close() error {
	if v.snapshot == nil {
		return nil
	}
	err := v.snapshot.Close()
	v.snapshot = nil
	return err
}

// InTransaction says whether the view is a transaction's, and shows its writes.
func (v *View) InTransaction() bool { return v.txn != nil }

// Now is the operation's time in milliseconds since the epoch.
func (v *View) Now() int64 { return v.now }

// Catalog is the catalogue that belongs to the view.
func (v *View) Catalog() *catalog.Catalog { return v.version.catalog }

// Collection reads the collection called ns. ok is false when there is none, or when it is a view.
func (v *View) Collection(ns namespace.NS) (r *Reader, ok bool) {
	entry := v.version.catalog.Collection(ns)
	if entry == nil || entry.IsView() {
		return nil, false
	}
	return v.read(v.version.collections[entry.ID]), true
}

// CollectionByID is Collection by number: a cursor finds its collection again, whatever it is called now.
func (v *View) CollectionByID(id uint32) (r *Reader, ok bool) {
	c := v.version.collections[id]
	if c == nil || c.IsView() {
		return nil, false
	}
	return v.read(c), true
}

// hidesUpTo is up to when what has expired stays hidden although the clock was turned back. For a transaction of several statements that
// was decided when it began: what it has read does not expire under it.
func (v *View) hidesUpTo() int64 {
	if v.past != nil {
		return v.past.hidesUpTo
	}
	if v.txn != nil && v.txn.statements != nil {
		return v.txn.statements.hidesUpTo
	}
	return v.store.options.HidesUpTo()
}

func (v *View) read(c *collection) *Reader {
	r := &v.first
	if v.taken {
		r = &Reader{}
	}
	v.taken = true
	r.view, r.c, r.hides, r.at = v, c, c.rules.Hiding(v.hiding.All), v.now
	if v.past != nil {
		r.at = v.past.now
	}
	if r.hides {
		r.at = max(r.at, v.hidesUpTo())
	}
	if frozen := v.hiding.Frozen; frozen != 0 {
		r.at = min(r.at, frozen)
	}
	if frozen := c.frozen.Load(); frozen != 0 {
		r.at = min(r.at, frozen)
	}
	r.key = r.room[:0]
	if o := c.order; r.hides && o != nil && o.Rule.Hides(v.hiding.All) {
		r.bounds = o.HiddenBounds(r.at)
		r.hiddenTells = c.rules.HidesBy(o.Rule, v.hiding.All)
	}
	return r
}

// Reader reads one collection in a View. Expired documents that are hidden are not there.
type Reader struct {
	view  *View
	c     *collection
	hides bool
	at    int64 // what has expired by then is hidden: the view's now, unless less is about to be hidden
	key   []byte
	room  [48]byte // for the keys of most
	// What has been swept and is not vacuumed, once it was asked for.
	tombstones     expiryorder.Tombstones
	tombstonesRead bool
	// Of what has expired by the rule that orders, when it hides, the id tells that it is hidden, unless its place is coarse and
	// near the bound; hiddenTells: of all that is.
	bounds      expiryorder.HiddenBounds
	hiddenTells bool
}

// View is the view that r reads in.
func (r *Reader) View() *View { return r.view }

// Catalog is the collection's entry in the catalogue.
func (r *Reader) Catalog() *catalog.Collection { return r.c.Collection }

// Rules are the collection's rules of expiry.
func (r *Reader) Rules() policy.Rules { return r.c.rules }

// Hides says whether any of the collection's rules hides expired documents.
func (r *Reader) Hides() bool { return r.hides }

// HidesAt is the time up to which what has expired is hidden: the view's, unless expiry is held, or the clock was turned back a
// little.
func (r *Reader) HidesAt() int64 { return r.at }

// Multikey has for each field of d's key a bit for each component of its path that goes through an array in some
// document; nil when d is not an index of this collection that keeps entries. Bits may be added while the view is open,
// never taken away: those that the view's data needs are there from its beginning.
func (r *Reader) Multikey(d *index.Definition) []uint64 {
	ix := r.c.index(d.ID)
	if ix == nil {
		return nil
	}
	return ix.Multikey.Seen()
}

// MultikeyPaths are the paths at which an array stands in some document, for a wildcard index; the rest is as with Multikey.
func (r *Reader) MultikeyPaths(d *index.Definition) *index.PathSet {
	ix := r.c.index(d.ID)
	if ix == nil {
		return nil
	}
	return ix.Multikey.SeenPaths()
}

// Get is the record with the id. ok is false when there is none.
func (r *Reader) Get(id RecordID) (rec Record, ok bool, err error) {
	if r.isBehindBounds(id) {
		return Record{}, false, nil
	}
	rec, ok, err = r.stored(id)
	if ok && r.hidden(&rec) {
		return Record{}, false, nil
	}
	return rec, ok, err
}

// GetMany is Get for many ids at once: found[i].Doc is nil where there is no record ids[i].
func (r *Reader) GetMany(ids []RecordID) (found []Record, err error) {
	keys := make([][]byte, len(ids))
	var buf []byte
	for i, id := range ids {
		start := len(buf)
		buf = layout.RecordKey(buf, r.c.ID, id)
		keys[i] = buf[start:len(buf):len(buf)]
	}
	values, err := r.view.reader.GetMany(keys)
	if err != nil {
		return nil, fmt.Errorf("storage: get records of %s: %w", r.c.NS, err)
	}
	found = make([]Record, len(ids))
	for i, value := range values {
		if value == nil {
			continue
		}
		rec, err := layout.ReadRecord(ids[i], value)
		if err != nil {
			return nil, err
		}
		if !r.hidden(&rec) {
			found[i] = rec
		}
	}
	return found, nil
}

// GetByID is the document whose _id compares equal to id under the collection's collation. In a time series, which has no
// index on _id, that is the first of them.
func (r *Reader) GetByID(id bson.Value) (rec Record, ok bool, err error) {
	if r.c.IsTimeSeries() {
		return r.search(RecordScan{}, id)
	}
	rid, ok, err := r.find(id)
	if !ok || err != nil {
		return Record{}, false, err
	}
	return r.Get(rid)
}

// GetMeasurement is the first measurement of a time series that has the time, the meta value and the _id of another.
func (r *Reader) GetMeasurement(like bson.Doc) (rec Record, ok bool, err error) {
	id, err := r.c.placement.Measurement(like)
	if err != nil {
		return Record{}, false, err
	}
	id = id[:len(id)-8] // without the number that tells those of one moment apart
	return r.search(RecordScan{Low: id, High: layout.After(id)}, like.Lookup("_id"))
}

// search looks at one record after the other for the first with an _id.
func (r *Reader) search(s RecordScan, id bson.Value) (rec Record, ok bool, err error) {
	cursor, err := r.Scan(s)
	if err != nil {
		return Record{}, false, err
	}
	defer cursor.Close()
	for cursor.Next() {
		if rec := cursor.Record(); bson.Equal(rec.Doc.Lookup("_id"), id) {
			return rec.Clone(), true, nil
		}
	}
	return Record{}, false, cursor.Err()
}

// Document is the one of a collection with the _id; nil where there is none.
func (v *View) Document(ns namespace.NS, id bson.Value) (bson.Doc, error) {
	r, ok := v.Collection(ns)
	if !ok {
		return nil, nil
	}
	rec, ok, err := r.GetByID(id)
	if err != nil || !ok {
		return nil, err
	}
	return rec.Doc, nil
}

// LogEntry is the oplog's entry with a timestamp; nil where there is none.
func (v *View) LogEntry(t oplog.Timestamp) (bson.Doc, error) {
	r, ok := v.Collection(catalog.OplogNS)
	if !ok {
		return nil, nil
	}
	rec, ok, err := r.Get(layout.SequenceID(uint64(t)))
	if err != nil || !ok {
		return nil, err
	}
	return rec.Doc, nil
}

// RecordIDOf is the id that a record with the _id has in a clustered collection.
func (r *Reader) RecordIDOf(id bson.Value) RecordID { return r.c.placement.AppendID(nil, id) }

// find is the record id of an _id, hidden or not.
func (r *Reader) find(id bson.Value) (rid RecordID, ok bool, err error) {
	if r.c.id == nil {
		return r.c.placement.AppendID(nil, id), true, nil
	}
	r.key = r.c.placement.AppendID(layout.TableKey(r.key[:0], r.c.id.Definition), id) // whose entries hold their ids in the value
	rid, err = r.holder(r.key)
	return rid, rid != nil, err
}

// holder is the record id in an entry that holds one, or nil.
// Holder is the record whose entry has the key in an index whose entries hold their ids in the value; nil when there is none.
func (r *Reader) Holder(key []byte) (RecordID, error) { return r.holder(key) }

func (r *Reader) holder(key []byte) (RecordID, error) {
	value, err := r.view.reader.Get(key)
	return r.held(value, err)
}

// taker is holder for a key that is likely free.
func (r *Reader) taker(key []byte) (RecordID, error) {
	value, err := r.view.reader.Probe(key)
	return r.held(value, err)
}

func (r *Reader) held(value []byte, err error) (RecordID, error) {
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("storage: look up in an index of %s: %w", r.c.NS, err)
	}
	id, _, err := layout.SplitID(value)
	return id, err
}

// stored is the record with the id, hidden or not.
func (r *Reader) stored(id RecordID) (rec Record, ok bool, err error) {
	r.key = layout.RecordKey(r.key[:0], r.c.ID, id)
	value, err := r.view.reader.Get(r.key)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return Record{}, false, nil
	case err != nil:
		return Record{}, false, fmt.Errorf("storage: get a record of %s: %w", r.c.NS, err)
	}
	rec, err = layout.ReadRecord(id, value)
	return rec, err == nil, err
}

// IsHidden says whether a record that was read Unhidden is hidden to r.
func (r *Reader) IsHidden(rec *Record) bool { return r.hidden(rec) }

func (r *Reader) hidden(rec *Record) bool {
	switch {
	case !r.hides:
		return false
	case r.isBehindBounds(rec.ID):
		return true
	case r.hiddenTells && r.c.order.IsAhead(&r.bounds, rec.ID):
		return false
	}
	return r.c.rules.Hidden(rec.Doc, rec.Modified, r.at, r.view.hiding.All)
}
