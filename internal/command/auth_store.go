package command

import (
	"errors"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/oplog"
	"github.com/ebbdb/ebb/internal/storage/ttlchange"
)

const (
	// maxAuthTries is how often a change of users and roles is tried before another one that goes on at the same time wins.
	maxAuthTries = 10
	// maxAuthBytes is how much all users, or all roles, may take that one command looks through.
	maxAuthBytes = 256 << 20
)

// authStore is users and roles as one transaction sees and changes them.
type authStore struct {
	op  *Op
	txn *storage.Txn
}

// changeAuth runs f in a transaction over users and roles, and commits what it has done. f may run several times.
func (op *Op) changeAuth(f func(*authStore) error) error {
	for try := 1; ; try++ {
		err := op.changeAuthOnce(f)
		if try == maxAuthTries || !mongoerr.Is(err, mongoerr.WriteConflict) && !mongoerr.Is(err, mongoerr.LockTimeout) {
			return err
		}
	}
}

func (op *Op) changeAuthOnce(f func(*authStore) error) error {
	txn, err := op.Query.Store.BeginAt(op.Ctx, op.Now)
	if err != nil {
		return err
	}
	if err := f(&authStore{op, txn}); err != nil {
		txn.Rollback()
		return err
	}
	durability := op.Durability()
	if durability == kv.Synced { // the command's end waits for the disk, with others
		durability = kv.Unsynced
	}
	if err := txn.CommitWithin(op.Ctx, durability, op.commitPatience(), func(error) {}); err != nil {
		return err
	}
	if op.leftCommit() != nil {
		return nil
	}
	if durability == kv.Unsynced {
		op.committed = max(op.committed, txn.Number())
	}
	return nil
}

// readAuth runs f over users and roles as they are.
func (op *Op) readAuth(f func(*authStore) error) error {
	txn, err := op.Query.Store.BeginAt(op.Ctx, op.Now)
	if err != nil {
		return err
	}
	defer txn.Rollback()
	return f(&authStore{op, txn})
}

// get is the document of a user or a role, nil for none.
func (s *authStore) get(ns namespace.NS, name auth.Name) (bson.Doc, error) {
	r, ok := s.txn.View().Collection(ns)
	if !ok {
		return nil, nil
	}
	rec, ok, err := r.GetByID(bson.String(name.ID()))
	if err != nil || !ok {
		return nil, err
	}
	return rec.Doc.Clone(), nil
}

func (s *authStore) user(name auth.Name) (bson.Doc, error) { return s.get(auth.UsersNS(), name) }
func (s *authStore) role(name auth.Name) (bson.Doc, error) { return s.get(auth.RolesNS(), name) }

// insert adds a document; taken is its error where there is one with its _id.
func (s *authStore) insert(ns namespace.NS, doc bson.Doc, taken error) error {
	w, err := s.txn.Writer(ns)
	if err != nil {
		return err
	}
	if _, err = w.Insert(doc); mongoerr.Is(err, mongoerr.DuplicateKey) {
		return taken
	}
	return err
}

// replace puts doc in the place of the one with its _id, and remove takes it out; without one they do nothing.
func (s *authStore) replace(ns namespace.NS, doc bson.Doc) error {
	return s.withRecord(ns, doc.Lookup("_id"), func(w *storage.Writer, old storage.Record) error {
		old.Doc = old.Doc.Clone()
		_, _, err := w.UpdateAs(oplog.Telling{Form: oplog.Whole}, old, doc)
		return err
	})
}

func (s *authStore) remove(ns namespace.NS, id bson.Value) error {
	return s.withRecord(ns, id, func(w *storage.Writer, old storage.Record) error { return w.Delete(old.Clone()) })
}

func (s *authStore) withRecord(ns namespace.NS, id bson.Value, f func(*storage.Writer, storage.Record) error) error {
	w, err := s.txn.Writer(ns)
	if err != nil {
		return err
	}
	rec, ok, err := w.GetByID(id)
	if err != nil || !ok {
		return err
	}
	return f(w, rec)
}

// all are the documents of a collection that wanted wants.
func (s *authStore) all(ns namespace.NS, wanted func(bson.Doc) bool) (docs []bson.Doc, err error) {
	r, ok := s.txn.View().Collection(ns)
	if !ok {
		return nil, nil
	}
	c, err := r.Scan(storage.RecordScan{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for bytes := 0; c.Next(); {
		if d := c.Record().Doc; wanted(d) {
			if bytes += len(d); bytes > maxAuthBytes {
				return nil, mongoerr.New(mongoerr.ExceededMemoryLimit, "%s is larger than the %d bytes that one command looks through", ns, maxAuthBytes)
			}
			docs = append(docs, d.Clone())
		}
	}
	return docs, c.Err()
}

// ofDatabase wants the documents of a database's users or roles.
func ofDatabase(db string) func(bson.Doc) bool {
	return func(d bson.Doc) bool {
		v := d.Lookup("db")
		return v.Type == bson.TypeString && v.Str() == db
	}
}

// ensureAuthCollection makes the collection of users or that of roles, whose names are unique by its index, and notes in which form
// they are.
func (op *Op) ensureAuthCollection(ns namespace.NS, key string) error {
	if op.Query.Store.Catalog().Collection(ns) != nil {
		return nil
	}
	spec := bson.Build().Int32("v", 2).Object("key").Int32(key, 1).Int32("db", 1).End().String("name", key+"_1_db_1").Bool("unique", true).Doc()
	ctx, builder, done := op.startBuilder()
	_, err := op.Query.DDL.CreateIndexesSeen(ctx, ns, ttlchange.OnHidden{}, func(c *catalog.Collection) ([]*index.Definition, error) {
		return op.parseIndexes(c, []bson.Doc{spec})
	}, builder)
	if done(err); err != nil {
		return err
	}
	schema := bson.Build().String("_id", "authSchema").Int32("currentVersion", authSchemaVersion).Doc()
	return op.Query.StoreSetting(op.patiently(), versionNS(), schema, op.Now)
}

// authSchemaVersion is MongoDB's number for the form of the documents.
const authSchemaVersion = 5

// roleDoc is what a role is among others, and userDoc a user.
func roleDoc(n auth.Name) bson.Doc {
	return bson.Build().String("role", n.Name).String("db", n.DB).Doc()
}

func roleArray(names []auth.Name) bson.Value {
	vs := make([]bson.Value, len(names))
	for i, n := range names {
		vs[i] = roleDoc(n).Value()
	}
	return bson.ArrayOf(vs...)
}

// with is a document with some fields changed: in their place, or at the end; what is missing goes.
func with(d bson.Doc, change ...field) bson.Doc {
	b := bson.Build()
	seen := map[string]bool{}
	for it := d.Iter(); it.Next(); {
		v := it.Value()
		for _, c := range change {
			if c.key == it.Key() {
				v, seen[c.key] = c.v, true
			}
		}
		if !v.IsMissing() {
			b.Value(it.Key(), v)
		}
	}
	for _, c := range change {
		if !seen[c.key] && !c.v.IsMissing() {
			b.Value(c.key, c.v)
		}
	}
	return b.Doc()
}

type field struct {
	key string
	v   bson.Value
}

// checkRoles refuses roles that are not there.
func (s *authStore) checkRoles(names []auth.Name) error {
	for _, n := range names {
		if ok, err := s.hasRole(n); err != nil {
			return err
		} else if !ok {
			return mongoerr.New(mongoerr.RoleNotFound, "Could not find role: %s", n)
		}
	}
	return nil
}

func (s *authStore) resolve(names []auth.Name) (auth.Resolved, error) {
	return auth.Resolve(names, s.role)
}
