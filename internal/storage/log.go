package storage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/history"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/logwatch"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/storage/oplog"
	"github.com/ebbdb/ebb/internal/storage/preimage"
	"github.com/ebbdb/ebb/internal/storage/walk"
)

// The oplog is a collection whose records are written with the commits that they tell of: what transactions do is collected
// while they do it (Txn.log), made entries before the commit, and given timestamps when it is ordered. The record ids are
// the timestamps, so entries lie in the order of commits, and nobody sees one before those that come before it.

// CreateOplog makes the collection of the oplog, of so many bytes, unless it is there. From then on all that is written is told in it
// (Options.Oplog).
func (s *Store) CreateOplog(ctx context.Context, bytes int64) error {
	options := bson.Build().Bool("capped", true).Int64("size", bytes).Bool("autoIndexId", false).Doc()
	if err := s.createHistories(ctx); err != nil { // first: where there is an oplog they are, too
		return err
	}
	return s.createOnce(ctx, catalog.OplogNS, options)
}

// createHistories makes the collections that keep what sessions did, and how documents were.
func (s *Store) createHistories(ctx context.Context) error {
	options := bson.Build().Object("clusteredIndex").Int32("v", 2).Object("key").Int32("_id", 1).End().String("name", "_id_").Bool("unique", true).End().Doc()
	for _, ns := range []namespace.NS{catalog.TransactionsNS, catalog.ImagesNS, catalog.PreImagesNS} {
		if err := s.createOnce(ctx, ns, options); err != nil {
			return err
		}
		if c := s.Catalog().Collection(ns); c == nil || !c.IsHistory() || len(c.Indexes) > 0 {
			return mongoerr.New(mongoerr.IllegalOperation, "%s is there, and not as a member of a replica set needs it: drop or rename it first", ns)
		}
	}
	return nil
}

// createOnce makes a collection unless it is there.
func (s *Store) createOnce(ctx context.Context, ns namespace.NS, options bson.Doc) error {
	_, err := s.CreateCollection(ctx, ns, options)
	if mongoerr.Is(err, mongoerr.NamespaceExists) {
		return nil
	}
	return err
}

// oplog is the collection of the oplog, nil where what is written is not told.
func (s *Store) oplog(v *version) *collection {
	if s.options.Oplog == nil {
		return nil
	}
	return v.oplog
}

// checkWrite refuses to write to what a member keeps of sessions, which only commits do, and of its replica set, without which it could not go on.
func (s *Store) checkWrite(c *catalog.Collection) error {
	if s.options.Oplog == nil || !c.OfReplicaSet() {
		return nil
	}
	return mongoerr.New(mongoerr.IllegalOperation, "cannot write to %s while replicating", c.NS).Early()
}

// checkDrop refuses to drop the oplog while it is written, and what is kept of sessions and of the replica set.
func (s *Store) checkDrop(c *catalog.Collection) error {
	switch {
	case s.options.Oplog == nil:
		return nil
	case c.IsOplog():
		return mongoerr.New(mongoerr.IllegalOperation, "can't drop live oplog while replicating")
	case c.OfReplicaSet():
		return mongoerr.New(mongoerr.IllegalOperation, "can't drop %s while replicating", c.NS)
	}
	return nil
}

// logs says whether what happens in a collection is told. What is in local is this server's own, and so are its profiles.
func (s *Store) logs(c *collection, v *version) bool {
	return s.oplog(v) != nil && c.NS.DB != catalog.LocalDB && c.NS.Coll != catalog.ProfileCollection && c.NS != catalog.PreImagesNS
}

// logOf is where a transaction tells what it does to a collection; nil where nobody is told.
func (t *Txn) logOf(c *collection) *oplog.Log {
	if !t.store.logs(c, t.view.version) {
		return nil
	}
	return &t.log
}

// logRemoval tells of a document that is deleted, and by what where its time was over.
func (w *Writer) logRemoval(op meaning.DocumentOp, rec Record) {
	w.log.Series(w.c.Options.TimeSeries)
	if op == meaning.DocumentExpired {
		if w.c.Options.ExpirationEvents.SumUp() {
			_, rule := w.c.rules.Deadline(rec.Doc, rec.Modified)
			w.summary.Add(rule, 1)
			return
		}
		if deadline, rule := w.c.rules.Deadline(rec.Doc, rec.Modified); rule != nil {
			by := oplog.Expiration{Field: rule.Field(), Deadline: deadline, Rule: rule.Basis(rec.Doc)}
			if rule.Index != nil {
				by.Index = rule.Index.Name
			}
			w.log.Expire(w.c.NS, w.c.UUID, rec.Doc, by)
			w.keepPreImage(rec.Doc)
			return
		}
	}
	w.log.Delete(w.c.NS, w.c.UUID, rec.Doc)
	w.txn.history.KeepImage(rec.Doc, nil)
	w.keepPreImage(rec.Doc)
}

// keepPreImage keeps what the operation that was logged last has changed.
func (w *Writer) keepPreImage(old bson.Doc) {
	if !w.c.Options.ChangeStreamPreAndPostImages {
		return
	}
	if w.txn.preImages == nil {
		w.txn.preImages = &preimage.Images{}
	}
	w.txn.preImages.Keep(w.log.Len()-1, w.c.UUID, old)
}

// Note has the transaction tell of something that happens to no document. The oplog must be there.
func (t *Txn) Note(o bson.Doc) {
	t.log.Series(nil)
	t.log.Note(o)
}

// stamp adds the entries of what log has collected to a commit, what history keeps of it, unless that is nil, and the images, unless they
// are.
func (s *Store) stamp(t kv.Txn, m *meaning.Meaning, log *oplog.Log, v *version, c oplog.Circumstances, h *history.Commit, images *preimage.Images) {
	to := s.oplog(v)
	if to == nil || log.Len() == 0 {
		return
	}
	c.Term = s.options.Oplog()
	m.StampEntries(t, to.target, log, c)
	log.Release()
	if h != nil {
		h.Stamp(t, m, v.transactions, v.images, c)
	}
	if images != nil {
		images.Stamp(t, m, v.preImages, c)
	}
}

// TruncateOplog deletes the first entries of the oplog, so many of so many bytes, up to one, as a range. What it counts stays true.
func (s *Store) TruncateOplog(ctx context.Context, last RecordID, entries, bytes int64) error {
	c := s.current.Load().oplog
	if c == nil {
		return notFound(catalog.OplogNS) // it was dropped meanwhile
	}
	to := c.target
	t, err := s.engine.Begin()
	if err != nil {
		return fmt.Errorf("storage: begin: %w", err)
	}
	low, high := layout.RecordKey(nil, to.ID, nil), append(layout.RecordKey(nil, to.ID, last), 0)
	if s.can.RangeDeletes {
		t.DeleteRange(low, high)
	} else if err := walk.DeleteEach(t, low, high); err != nil {
		t.Rollback()
		return err
	}
	to.Add(t, -entries, -bytes)
	t.Mean(&meaning.Meaning{})
	if err := t.Commit(ctx, kv.Buffered); err != nil {
		return fmt.Errorf("storage: truncate the oplog: %w", err)
	}
	return nil
}

// ImagesKept is how many documents as they were before changes this store's own writers have kept since it was opened.
func (s *Store) ImagesKept() int64 { return s.imagesKept.Load() }

// LastLogged is the timestamp of the youngest entry of the oplog that can be read; 0 where there is none.
func (s *Store) LastLogged() oplog.Timestamp { return s.logClock.Visible() }

// LogWatches are those who follow the oplog.
func (s *Store) LogWatches() *logwatch.Watches { return s.logWatches }

// readLog has timestamps go on behind the youngest entry, and behind those that somebody may have been told before a restart without that an
// entry has them (oplog.Clock.Tell): in the second that follows.
func (s *Store) readLog(r kv.Reader, v *version) (err error) {
	if v.oplog == nil {
		return nil
	}
	it, err := r.NewIter(kv.IterOptions{Lower: layout.RecordKey(nil, v.oplog.ID, nil), Upper: layout.RecordKey(nil, v.oplog.ID+1, nil)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if !it.Last() {
		return it.Err()
	}
	if s.options.Oplog != nil && !s.options.Follows {
		s.logClock.Hear(oplog.NewTimestamp(uint32(max(s.Now(), s.seen)/1000+1), 0))
	}
	id := it.Key()[layout.TableLength:]
	if len(id) != layout.SequenceLength {
		return fmt.Errorf("an entry of the oplog has the id %x", id)
	}
	s.logClock.Follow(oplog.Timestamp(binary.BigEndian.Uint64(id)))
	s.logClock.Show(oplog.Timestamp(binary.BigEndian.Uint64(id)))
	return nil
}

// ClusterTime is the newest time of the logical clock that the store has given out or heard of.
func (s *Store) ClusterTime() oplog.Timestamp { return s.logClock.Newest() }

// HearClusterTime has the next entry be later than t.
func (s *Store) HearClusterTime(t oplog.Timestamp) { s.logClock.Hear(t) }

// Note has the transaction tell of something that happens to the collection, and to no document of which the oplog tells. Who follows the
// collection hears of it.
func (w *Writer) Note(o bson.Doc) {
	if w.log != nil {
		w.log.Series(w.c.Options.TimeSeries)
		w.log.NoteOf(w.c.NS, w.c.UUID, o)
	}
}

// LogModified writes an entry of a collMod that has changed nothing: asked is what it asked for, and index, if it is not nil, what the index
// had of it. Of what the oplog does not tell of, and of views, there is none.
func (s *Store) LogModified(ctx context.Context, ns namespace.NS, asked, index bson.Doc) error {
	_, err := Apart(ctx, s, func(ctx context.Context, _ *struct{}) error { return s.logModified(ctx, ns, asked, index) })
	return err
}

func (s *Store) logModified(ctx context.Context, ns namespace.NS, asked, index bson.Doc) error {
	t, err := s.Begin(ctx)
	if err != nil {
		return err
	}
	defer t.Rollback()
	coll := t.view.Catalog().Collection(ns)
	if coll == nil || coll.IsView() || !s.logs(t.view.version.collections[coll.ID], t.view.version) {
		return nil
	}
	t.log.Series(coll.Options.TimeSeries)
	before := bson.Build().Fields(meaning.OptionsBefore(coll))
	if index != nil {
		before.Document("indexOptions_old", index)
	}
	t.log.Command(ns.DB, &coll.UUID, bson.Build().String("collMod", ns.Coll).Fields(asked).Doc(), before.Doc())
	change := meaning.NewChange(coll.ID)
	t.meaning.Add(&change)
	return atLast(ctx, func() error { return t.Commit(ctx, kv.Synced) })
}

// LogNote writes an entry of something that happens to no document. It is on stable storage when LogNote returns.
func (s *Store) LogNote(ctx context.Context, o bson.Doc) error {
	_, err := Apart(ctx, s, func(ctx context.Context, _ *struct{}) error {
		t, err := s.Begin(ctx)
		if err != nil {
			return err
		}
		defer t.Rollback()
		t.Note(o)
		return atLast(ctx, func() error { return t.Commit(ctx, kv.Synced) })
	})
	return err
}
