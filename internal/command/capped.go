package command

import (
	"context"
	"math"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/serverlog"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/indexddl"
)

func cappedCommands() []*Command {
	return []*Command{
		{Name: "convertToCapped", Needs: Needs{OnCollection: actions(privilege.ConvertToCapped), Also: needsForce}, Doc: "Makes a capped collection of a collection.", WriteConcern: true, ChangesTTL: true, Run: convertToCapped},
		{Name: "cloneCollectionAsCapped", Needs: Needs{OnCollection: actions(privilege.Find), Also: needsCloneAsCapped}, Doc: "Copies a collection into a capped one.", WriteConcern: true, Run: cloneCollectionAsCapped},
	}
}

// convertToCapped bounds a collection. As in MongoDB its indexes but the one on _id go.
func convertToCapped(op *Op) (bson.Doc, error) {
	a := op.Args
	ns := a.Collection(op.DB)
	size, err := cappedSize(a)
	how := op.readOnHidden(a)
	a.ignoreRest()
	if e := a.Done(); e != nil {
		return nil, e
	}
	if e := findable(ns); e != nil {
		return nil, e
	}
	if isServersOwn(ns) || op.Replica != nil && (ns == catalog.ElectionNS || ns == catalog.OplogNS) { // which would lose the oldest of what it has
		return nil, mongoerr.New(mongoerr.IllegalOperation, "can't convert system collection %s to a capped collection", ns)
	}
	if err == nil {
		err = indexddl.CappedCopy(ns).CheckLength()
	}
	if err != nil {
		return nil, err
	}
	if ns.Coll == systemViews && op.hasViews(ns.DB) {
		return nil, mongoerr.New(mongoerr.BadValue, "%s cannot be converted to a capped collection", ns)
	}
	coll, err := op.copyable(ns)
	if err != nil {
		return nil, err
	}
	if coll.Options.IsEncrypted {
		return nil, mongoerr.New(6367302, "Cannot convert an encrypted collection to a capped collection")
	}
	done, err := op.Query.DDL.Cap(op.patiently(), ns, how, func(c *catalog.Collection) (*catalog.Collection, error) {
		if c.IsView() || c.IsTimeSeries() { // since it was looked at
			return nil, mongoerr.New(mongoerr.ConflictingOperationInProgress, "%s was replaced meanwhile", ns)
		}
		var kept []*index.Definition
		if id := c.IDIndex(); id != nil {
			kept = append(kept, id)
		}
		return c.WithIndexes(kept).WithOptions(catalog.ReadOptions(cappedOptions(c, size))), nil
	})
	if err != nil {
		return nil, err
	}
	reply := bson.Build()
	op.noteHidden(reply, done)
	return reply.Doc(), op.trim(ns)
}

// trim deletes the oldest documents of a collection that the operation has made capped, or has them deleted when it is known that it is.
func (op *Op) trim(ns namespace.NS) error {
	if op.leftCommit() == nil {
		if err := op.Server.trim(op.patiently(), ns); err != nil || op.leftCommit() == nil {
			return err
		}
	}
	s := op.Server
	s.Query.Store.Afterwards(op.patiently(), func(ctx context.Context) {
		if !s.Writes.TryEnter() { // whoever inserts next does it
			return
		}
		defer s.Writes.Leave()
		if err := s.trim(ctx, ns); err != nil {
			s.Log.Warn("A collection that was made capped could not be trimmed", "namespace", ns.String(), "error", serverlog.Client(err))
		}
	})
	return nil
}

// trim deletes the oldest documents of a capped collection until it is within its bounds, or ctx's patience is over.
func (s *Server) trim(ctx context.Context, ns namespace.NS) error {
	o := storage.WriteOptions{Durability: kv.Synced, Patience: kv.PatienceOf(ctx)}
	for more := true; more && (o.Patience == nil || o.Patience.Left == nil); {
		err := s.Query.Store.Write(ctx, ns, o, func(w *storage.Writer) (err error) {
			more, err = w.Trim()
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// cappedSize reads the size that old commands need.
func cappedSize(a *Args) (int64, error) {
	v := a.Value("size")
	n := int64(0)
	if v.IsNumber() {
		n = index.WholeSeconds(v)
	}
	switch {
	case n <= 0:
		return 0, invalidOptions("Capped collection size must be greater than zero")
	case n > maxCappedSize:
		return 0, mongoerr.New(mongoerr.BadValue, "Capped collection size must be less than or equal to %d", int64(maxCappedSize))
	}
	return n, nil
}

// cappedOptions are c's options with a bound on its size.
func cappedOptions(c *catalog.Collection, size int64) bson.Doc {
	o := readOptions(c.Options.Doc)
	o.set("capped", bson.True)
	o.set("max", bson.Missing)
	o.set("temp", bson.Missing)
	o.set("clusteredIndex", bson.Missing)
	o.set("expireAfterSeconds", bson.Missing)
	o.set("size", bson.Int64(size))
	if size <= math.MaxInt32 {
		o.set("size", bson.Int32(int32(size)))
	}
	return o.doc()
}

func cloneCollectionAsCapped(op *Op) (bson.Doc, error) {
	a := op.Args
	from := cloneName(a, op.Name(), op.DB)
	to := cloneName(a, "toCollection", op.DB)
	size, err := cappedSize(a)
	a.ignoreRest()
	if e := a.Done(); e != nil {
		return nil, e
	}
	for _, ns := range [...]namespace.NS{from, to} {
		if e := readable(ns); e != nil {
			return nil, e
		}
	}
	if err != nil {
		return nil, err
	}
	source, err := op.copyable(from)
	if err != nil {
		return nil, err
	}
	if existing := op.Query.Store.Catalog().Collection(to); existing != nil {
		if existing.IsView() {
			return nil, mongoerr.New(mongoerr.CommandNotSupportedOnView, "cloneCollectionAsCapped not supported for views: %s", to)
		}
		return nil, mongoerr.New(mongoerr.NamespaceExists, "cloneCollectionAsCapped failed - destination collection %s already exists", to)
	}
	if err := checkCreateName(&createRequest{ns: to}); err != nil {
		return nil, err
	}
	if _, err := op.Query.Store.CreateCollection(op.patiently(), to, cappedOptions(source, size)); err != nil {
		return nil, err
	}
	return bson.EmptyDoc, op.copyAll(from, to)
}

func cloneName(a *Args, key, db string) namespace.NS {
	v := a.Value(key)
	if v.Type != bson.TypeString {
		a.Fail(mongoerr.New(mongoerr.TypeMismatch, "'%s' must be of type String", key))
		return namespace.NS{DB: db}
	}
	return namespace.NS{DB: db, Coll: string([]byte(v.Str()))}
}

// copyable is the collection called ns.
func (op *Op) copyable(ns namespace.NS) (*catalog.Collection, error) {
	coll := op.Query.Store.Catalog().Collection(ns)
	switch {
	case op.Query.Store.Catalog().BehindBuckets(ns) != nil:
		return nil, mongoerr.New(mongoerr.IllegalOperation, "cannot copy the buckets of a time-series collection: %s", ns)
	case coll == nil:
		return nil, mongoerr.New(mongoerr.NamespaceNotFound, "source collection %s does not exist", ns)
	case coll.IsView() || coll.IsTimeSeries():
		return nil, mongoerr.New(mongoerr.CommandNotSupportedOnView, "not supported for views: %s", ns)
	}
	return coll, nil
}

// copyBatchBytes is about how much one transaction of a copy writes.
const copyBatchBytes = 4 << 20

// copyAll inserts the documents of from, as they are now, into to.
func (op *Op) copyAll(from, to namespace.NS) error {
	view, err := op.Query.Store.ViewAt(op.Ctx, op.Now)
	if err != nil {
		return err
	}
	defer view.Close()
	r, ok := view.Collection(from)
	if !ok {
		return mongoerr.New(mongoerr.NamespaceNotFound, "source collection %s does not exist", from)
	}
	cursor, err := r.Scan(storage.RecordScan{})
	if err != nil {
		return err
	}
	defer cursor.Close()
	for more := true; more; {
		var batch []bson.Doc
		for size := 0; size < copyBatchBytes; {
			if more = cursor.Next(); !more {
				break
			}
			batch = append(batch, cursor.Record().Doc.Clone())
			size += len(cursor.Record().Doc)
		}
		if err := op.insertAll(to, batch); err != nil {
			return err
		}
	}
	return cursor.Err()
}

func (op *Op) insertAll(to namespace.NS, batch []bson.Doc) error {
	if len(batch) == 0 {
		return nil
	}
	return op.Query.Store.Write(op.Ctx, to, storage.WriteOptions{Durability: op.Durability(), Now: op.Now, Patience: op.commitPatience()}, func(w *storage.Writer) error {
		for _, d := range batch {
			if _, err := w.Insert(d); err != nil {
				return err
			}
		}
		return nil
	})
}
