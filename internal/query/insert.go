package query

import (
	"context"
	"encoding/binary"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/update"
)

// maxBatchBytes is how much a commit of many writes holds: what is larger is committed in parts.
const maxBatchBytes = 16 << 20

// WriteError is a document or statement that was refused.
type WriteError struct {
	// Index is its position in what was asked for.
	Index int
	Err   error
}

// Insert adds docs, in order; with ordered the first that is refused ends it, otherwise all others are still added.
// Documents are committed many at a time. An error of the store itself is returned as err; what was committed before stays.
func (e *Engine) Insert(ctx context.Context, ns namespace.NS, docs []bson.Doc, ordered bool, call *Call) (inserted int, refused []WriteError, err error) {
	if behind := e.behindBuckets(ns); behind != nil {
		return e.insertBuckets(ctx, behind, docs, ordered, call)
	}
	series := e.isTimeSeries(ns)
	if series && call.Txn != nil {
		return 0, nil, mongoerr.New(mongoerr.OperationNotSupportedInTransaction, "Cannot insert into a time-series collection in a multi-document transaction: %s", ns)
	}
	keep := call.KeepTimestamps || series
	ready := make([]bson.Doc, len(docs))
	bad := make([]error, len(docs))
	for i, d := range docs {
		_, done, err := call.Retry.before(ns, call.Statement+i)
		switch {
		case mongoerr.Is(err, mongoerr.IllegalOperation):
			bad[i] = err
		case err != nil:
			return 0, nil, err
		case done:
			bad[i] = errRepeated
		default:
			ready[i], bad[i] = e.insertable(d, call.Now, keep)
		}
	}
	for start := 0; start < len(docs); {
		if repeated := leading(bad[start:], errRepeated); start+repeated == len(docs) {
			return inserted + repeated, refused, nil
		}
		if err := bad[start]; err != nil && err != errRepeated { // for which no collection is made
			if refused = append(refused, WriteError{start, err}); ordered {
				break
			}
			start++
			continue
		}
		part, err := e.insertPart(ctx, ns, ready[start:], bad[start:], ordered, call, start)
		if mongoerr.Is(err, mongoerr.CollectionUUIDMismatch) || mongoerr.Is(err, mongoerr.WriteConcernTimeout) { // the error of each document, not of all
			part = insertedPart{done: len(docs) - start}
			for i := range part.done {
				if part.refused = append(part.refused, WriteError{i, err}); ordered {
					break
				}
			}
			part.done, err = len(part.refused), nil
		}
		if err != nil {
			return inserted, refused, err
		}
		inserted += part.done - len(part.refused)
		for _, r := range part.refused {
			refused = append(refused, WriteError{start + r.Index, r.Err})
		}
		if ordered && len(refused) > 0 {
			break
		}
		start += part.done
	}
	return inserted, refused, nil
}

// leading is how many errors in the beginning are err.
func leading(errs []error, err error) (n int) {
	for n < len(errs) && errs[n] == err {
		n++
	}
	return n
}

// insertedPart is what one commit of an insert did with the first done documents that were left.
type insertedPart struct {
	done    int
	refused []WriteError
}

func (e *Engine) insertPart(ctx context.Context, ns namespace.NS, docs []bson.Doc, bad []error, ordered bool, call *Call, start int) (part insertedPart, err error) {
	err = e.writeOne(ctx, ns, true, call, func(w *storage.Writer) error {
		part = insertedPart{}
		check, err := e.validator(ctx, w.Catalog(), call)
		if err != nil {
			return err
		}
		before := w.Txn().Size()
		for i, d := range docs {
			if w.Txn().Size()-before > maxBatchBytes {
				return nil
			}
			err := bad[i]
			if err == errRepeated {
				part.done++
				continue
			}
			if call.Retry != nil {
				w.Statement(call.Retry.number(call.Statement + start + i))
			}
			if t := w.Catalog().Options.TimeSeries; t != nil && err == nil {
				d, err = measurement(t, d, false)
			}
			if err == nil {
				err = check.document(d)
			}
			if err == nil {
				_, err = w.Insert(d)
			}
			if err != nil && !isUserError(err) {
				return err
			}
			part.done++
			if err != nil {
				part.refused = append(part.refused, WriteError{i, err})
				if ordered {
					return nil
				}
			}
		}
		return nil
	})
	return part, err
}

// isUserError says whether err is about one document, so that others can still be written.
func isUserError(err error) bool {
	e, ok := err.(*mongoerr.Error)
	if !ok {
		return false
	}
	switch e.Code {
	case mongoerr.WriteConflict, mongoerr.Interrupted, mongoerr.MaxTimeMSExpired, mongoerr.InterruptedAtShutdown, mongoerr.ClientDisconnect,
		mongoerr.TransactionExceededLifetimeLimitSeconds, mongoerr.InterruptedDueToReplStateChange, mongoerr.NamespaceNotFound, mongoerr.CommandNotSupportedOnView, mongoerr.LockTimeout:
		return false
	}
	return true
}

// isTimeSeries says whether ns is a time series, whose measurements keep empty timestamps.
func (e *Engine) isTimeSeries(ns namespace.NS) bool {
	c := e.Store.Catalog().Collection(ns)
	return c != nil && c.IsTimeSeries()
}

// insertable is doc as it is stored: _id first, made where there is none, empty timestamps of the first level filled unless
// they are kept.
func (e *Engine) insertable(doc bson.Doc, now int64, keepTimestamps bool) (bson.Doc, error) {
	if len(doc) > bson.MaxDocSize {
		return nil, mongoerr.New(mongoerr.BSONObjectTooLarge, "object to insert too large. size in bytes: %d, max size: %d", len(doc), bson.MaxDocSize)
	}
	id := bson.Missing
	fill := false // an empty timestamp
	for it := doc.Iter(); it.Next(); {
		v := it.Value()
		switch {
		case it.Key() == "_id":
			if !id.IsMissing() {
				return nil, mongoerr.New(mongoerr.BadValue, "can't have multiple _id fields in one document")
			}
			id = v
		case v.Type == bson.TypeTimestamp && !keepTimestamps && emptyTimestamp(v):
			fill = true
		}
	}
	if err := update.CheckStorable(doc); err != nil {
		return nil, err
	}
	if !id.IsMissing() && !fill && doc.FirstKey() == "_id" {
		return doc, nil
	}
	if id.IsMissing() {
		id = bson.ObjectID(e.ids.objectID(now))
	}
	b := bson.BuildOn(make([]byte, 0, len(doc)+20)).Value("_id", id)
	for it := doc.Iter(); it.Next(); {
		switch v := it.Value(); {
		case it.Key() == "_id":
		case fill && v.Type == bson.TypeTimestamp && emptyTimestamp(v):
			seconds, increment := e.ids.timestamp(now)
			b.Timestamp(it.Key(), seconds, increment)
		default:
			b.Value(it.Key(), v)
		}
	}
	return b.Doc(), nil
}

func emptyTimestamp(v bson.Value) bool {
	t, i := v.Timestamp()
	return t == 0 && i == 0
}

// ids makes what tells documents apart.
type ids struct {
	process    [5]byte
	objects    atomic.Uint32
	timestamps atomic.Uint32
}

func (g *ids) objectID(now int64) (id [12]byte) {
	binary.BigEndian.PutUint32(id[:], uint32(now/1000))
	copy(id[4:9], g.process[:])
	n := g.objects.Add(1)
	id[9], id[10], id[11] = byte(n>>16), byte(n>>8), byte(n)
	return id
}

// timestamp is what an empty timestamp is filled with: the second, and a number that grows.
func (g *ids) timestamp(now int64) (seconds, increment uint32) {
	return uint32(now / 1000), g.timestamps.Add(1)
}

// clusterTime is what the pipeline of an update sees as $$CLUSTER_TIME on a server that has none.
func (g *ids) clusterTime(now int64) uint64 {
	seconds, increment := g.timestamp(now)
	return uint64(seconds)<<32 | uint64(increment)
}
