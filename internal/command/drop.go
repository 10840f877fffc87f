package command

import (
	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

func dropCommands() []*Command {
	return []*Command{
		{Name: "drop", Needs: Needs{OnCollection: actions(privilege.DropCollection)}, Doc: "Drops a collection or a view.", WriteConcern: true, ChangesTTL: true, Run: drop},
		{Name: "dropDatabase", Needs: Needs{OnDatabase: actions(privilege.DropDatabase)}, Doc: "Drops a database with all it holds.", WriteConcern: true, ChangesTTL: true, Run: dropDatabase},
	}
}

func drop(op *Op) (bson.Doc, error) {
	a := op.Args
	ns := a.Collection(op.DB)
	expected := a.collectionUUID(ns)
	if err := a.Done(); err != nil {
		return nil, err
	}
	if err := checkDroppable(ns); err != nil {
		return nil, err
	}
	if err := op.Query.CheckExpected(expected); err != nil {
		return nil, err
	}
	if ns.Coll == systemViews && op.Query.Store.Catalog().Collection(ns) == nil {
		return op.dropViews(ns)
	}
	if ns.Coll == systemProfile && op.Profile.Of(op.DB).Level > 0 {
		return nil, mongoerr.New(mongoerr.IllegalOperation, "turn off profiling before dropping system.profile collection")
	}
	was, err := op.Query.Store.DropCollection(op.patiently(), ns)
	if mongoerr.Is(err, mongoerr.NamespaceNotFound) {
		op.tellResult("dropCollection", bson.Build().String("ns", ns.String()).Doc(), mongoerr.NamespaceNotFound, false)
		return bson.EmptyDoc, nil
	}
	if err != nil {
		return nil, err
	}
	b := bson.Build()
	if !was.IsView() {
		b.Int32("nIndexesWas", int32(len(was.Indexes)))
	}
	return b.String("ns", ns.String()).Doc(), nil
}

func checkDroppable(ns namespace.NS) error {
	if err := readable(ns); err != nil {
		return err
	}
	if isServersOwn(ns) {
		return mongoerr.New(mongoerr.IllegalOperation, "can't drop system collection %s", ns)
	}
	return nil
}

// isServersOwn says whether the server goes by what a collection holds: users, roles, versions and the configuration of its replica set.
func isServersOwn(ns namespace.NS) bool {
	return IsAuthCollection(ns) || ns.DB == "admin" && ns.Coll == "system.version" || ns == catalog.ReplicaConfigNS
}

// systemViews is the collection in which MongoDB keeps what views are. Here they are in the catalogue; the name stands for
// all views of a database.
const systemViews = "system.views"

// dropViews drops all views of a database.
func (op *Op) dropViews(ns namespace.NS) (bson.Doc, error) {
	found := false
	for _, c := range op.Query.Store.Catalog().Collections(ns.DB) {
		if !c.IsView() {
			continue
		}
		found = true
		if _, err := op.Query.Store.DropCollection(op.Ctx, c.NS); err != nil && !mongoerr.Is(err, mongoerr.NamespaceNotFound) {
			return nil, err
		}
	}
	if !found {
		return bson.EmptyDoc, nil
	}
	return bson.Build().Int32("nIndexesWas", 1).String("ns", ns.String()).Doc(), nil
}

func dropDatabase(op *Op) (bson.Doc, error) {
	a := op.Args
	a.Required(op.Name())
	n, ok := a.Int(op.Name())
	if ok && n != 1 {
		a.Fail(mongoerr.New(5255100, "Have to pass 1 as 'dropDatabase' parameter"))
	}
	if err := a.Done(); err != nil {
		return nil, err
	}
	if op.DB == "admin" {
		return nil, mongoerr.New(mongoerr.IllegalOperation, "Dropping the '%s' database is prohibited.", op.DB)
	}
	if op.DB == "local" && op.Replica != nil {
		return nil, mongoerr.New(mongoerr.IllegalOperation, "Cannot drop 'local' database while replication is active")
	}
	if _, err := op.Query.Store.DropDatabase(op.patiently(), op.DB); err != nil {
		return nil, err
	}
	op.usage.forgetDatabase(op.DB)
	if err := op.Profile.Set(op.DB, func(p *Profiling) { p.Level, p.Filter = 0, nil }); err != nil { // it was the database's
		return nil, err
	}
	return bson.EmptyDoc, nil
}
