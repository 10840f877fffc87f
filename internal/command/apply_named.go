package command

import (
	"crypto/rand"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

// An entry of an oplog that says of which collection it is (ui) means that one, whatever it is called where the entry is applied. There a collection may
// have a name that it got later than the entry, as when an oplog is replayed over what came of it, or another one may have the name: one that
// the oplog does not know. So such a command is done to the collection with the UUID, and never to another that only has its name. What is in the way of a
// collection that is made or renamed is not dropped but renamed: after all entries nothing that the oplog knows has such a name any more.

// byUUID makes a command one on the names that its collections have here. done says that nothing is left to do.
func (op *Op) byUUID(l *logged) (done bool, err error) {
	if l.uuid == nil {
		return false, nil
	}
	switch name := l.o.FirstKey(); name {
	case "dropDatabase", "applyOps":
		return false, nil
	case "create":
		return op.makeWay(l.ns.DB, l.o.Lookup(name), *l.uuid)
	case "renameCollection":
		return op.namedRename(l)
	}
	all := op.Query.Store.Catalog()
	ns := namespace.NS{DB: l.ns.DB, Coll: l.o.Lookup(l.o.FirstKey()).Str()}
	switch coll := all.ByUUID(*l.uuid); {
	case coll != nil:
		ns = coll.NS
	case isSeries(all.Collection(ns)):
	default:
		return true, nil
	}
	l.ns.DB, l.o = ns.DB, withFirst(l.o, bson.String(ns.Coll))
	return false, nil
}

// isSeries: a time series has the UUID of its buckets, which nobody sees and no dump keeps, so it is known by its name, too.
func isSeries(c *catalog.Collection) bool { return c != nil && c.IsTimeSeries() }

// ofTheServer: users, roles and the like are there from the first one on, whatever UUID another server has for them. Nothing moves them aside.
func ofTheServer(c *catalog.Collection) bool {
	return c != nil && c.NS.DB == "admin" && strings.HasPrefix(c.NS.Coll, "system.")
}

// withFirst is d with another value of its first field.
func withFirst(d bson.Doc, v bson.Value) bson.Doc {
	it := d.Iter()
	it.Next()
	b := bson.Build().Value(it.Key(), v)
	for it.Next() {
		b.Value(it.Key(), it.Value())
	}
	return b.Doc()
}

// makeWay has nobody else have the name of a collection that is to be made; done says that it is there, under the name.
func (op *Op) makeWay(db string, name bson.Value, uuid [16]byte) (done bool, err error) {
	if name.Type != bson.TypeString {
		return false, nil // which create refuses
	}
	to := namespace.NS{DB: strings.Clone(db), Coll: strings.Clone(name.Str())}
	all := op.Query.Store.Catalog()
	there, here := all.ByUUID(uuid), all.Collection(to)
	switch {
	case there != nil && there == here || isSeries(here) || ofTheServer(here):
		return true, nil
	case there != nil && there.NS.DB != db:
		return false, mongoerr.New(40655, "Invalid name %s for UUID %s", to, catalog.UUIDText(uuid))
	}
	if here != nil && !here.IsView() {
		if err := op.moveAside(here, ".create"); err != nil {
			return false, err
		}
	}
	if there == nil {
		return false, nil
	}
	return true, op.renameApplied(there.NS, to)
}

// namedRename makes a renameCollection one of the collection with the UUID, which drops none but the one that the entry says it has dropped.
func (op *Op) namedRename(l *logged) (done bool, err error) {
	r, err := parseRename(NewArgs("renameCollection", l.o), "renameCollection")
	if err != nil {
		return false, err
	}
	all := op.Query.Store.Catalog()
	source, target := all.ByUUID(*l.uuid), all.Collection(r.to)
	if source == nil && isSeries(all.Collection(r.from)) {
		source = all.Collection(r.from)
	}
	var dropped *catalog.Collection
	if r.target != nil {
		if dropped = all.ByUUID(r.target.UUID); dropped == nil && isSeries(target) {
			dropped = target
		}
	}
	switch {
	case (source == nil || source.NS == r.to) && dropped != nil && dropped != source: // what is left of it to do
		l.ns.DB, l.o = dropped.NS.DB, bson.Build().String("drop", dropped.NS.Coll).Doc()
		return false, nil
	case source == nil || source.NS == r.to:
		return true, nil
	case source.NS.DB != r.to.DB:
		l.o = withFirst(l.o, bson.String(source.NS.String()))
		return false, nil
	}
	if target != nil && target != dropped && !target.IsView() {
		if err := op.moveAside(target, ".renameCollection"); err != nil {
			return false, err
		}
	}
	if dropped != nil && dropped != target {
		drop := func(op *Op) (bson.Doc, error) {
			_, err := op.Query.Store.DropCollection(op.patiently(), dropped.NS)
			return nil, err
		}
		if _, err := op.noted(drop); err != nil {
			return false, err
		}
	}
	l.o = bson.Build().String("renameCollection", source.NS.String()).String("to", r.to.String()).Bool("dropTarget", dropped != nil && dropped == target).Doc()
	return false, nil
}

// moveAside gives a collection a name that nobody has.
func (op *Op) moveAside(c *catalog.Collection, kind string) error {
	if ofTheServer(c) {
		return mongoerr.New(mongoerr.IllegalOperation, "renaming %s collection or renaming to %s is not allowed", c.NS.Coll, c.NS.Coll)
	}
	for range 10 {
		to := namespace.NS{DB: c.NS.DB, Coll: "tmp" + rand.Text()[:5] + kind}
		if op.Query.Store.Catalog().Collection(to) == nil {
			return op.renameApplied(c.NS, to)
		}
	}
	return mongoerr.New(mongoerr.NamespaceExists, "Cannot generate temporary collection namespace for applyOps: collection: %s", c.NS)
}

func (op *Op) renameApplied(from, to namespace.NS) error {
	_, err := op.noted(func(op *Op) (bson.Doc, error) { return nil, op.Query.Store.Rename(op.patiently(), from, to, false) })
	return err
}
