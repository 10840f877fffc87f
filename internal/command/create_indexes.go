package command

import (
	"slices"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/query"
	"github.com/ebbdb/ebb/internal/storage/indexddl"
	"github.com/ebbdb/ebb/internal/storage/ttlchange"
)

func createIndexesCommands() []*Command {
	return []*Command{{Name: "createIndexes", RawData: true, Needs: Needs{OnCollection: actions(privilege.CreateIndex), Also: needsForce}, Doc: "Makes indexes on a collection.", WriteConcern: true, ChangesTTL: true, Lasts: true, Run: createIndexes}}
}

// maxIndexesAtOnce is how many indexes one command may ask for.
const maxIndexesAtOnce = 1000

func createIndexes(op *Op) (bson.Doc, error) {
	a := op.Args
	ns := a.Collection(op.DB)
	specs := op.indexSpecs(a)
	expected := a.collectionUUID(ns)
	a.SafeBool("ignoreUnknownIndexOptions", false)
	a.Ignore("isTimeseriesNamespace", "returnOnStart")
	op.checkCommitQuorum(a, ns)
	how, dryRun := op.readOnHidden(a), false
	if !op.APIStrict { // to which it is unknown
		dryRun = a.SafeBool("dryRun", false)
	}
	look := op.readPreview(a, dryRun)
	if err := a.Done(); err != nil {
		return nil, err
	}
	if op.APIStrict {
		if err := checkStableIndexes(specs); err != nil {
			return nil, err
		}
	}
	if err := indexable(ns); err != nil {
		return nil, err
	}
	if op.txn != nil {
		if err := op.checkDefines(ns, expected, dryRun); err != nil {
			return nil, err
		}
	} else if err := op.Query.CheckExpected(expected); err != nil {
		return nil, err
	}
	if len(specs) == 0 {
		return nil, mongoerr.New(mongoerr.BadValue, "Must specify at least one index to create")
	}
	if dryRun {
		return op.tryIndexes(ns, specs, how, look)
	}
	made, err := op.makeIndexes(ns, specs, how)
	if err != nil {
		return nil, err
	}
	b := bson.Build().Fields(createdReply(made, specs))
	op.noteHidden(b, made.Hidden)
	return b.Doc(), nil
}

// checkDefines refuses what createIndexes cannot do in a transaction.
func (op *Op) checkDefines(ns namespace.NS, expected *query.Expected, dryRun bool) error {
	switch {
	case ns.IsSystem():
		return mongoerr.New(mongoerr.OperationNotSupportedInTransaction, "Cannot write to system collection %s within a transaction.", ns)
	case dryRun:
		return mongoerr.New(mongoerr.OperationNotSupportedInTransaction, "Cannot run createIndexes with dryRun in a multi-document transaction.")
	}
	return op.Query.CheckExpectedIn(expected, op.txn)
}

func (op *Op) makeIndexes(ns namespace.NS, specs []bson.Doc, how ttlchange.OnHidden) (made indexddl.Created, err error) {
	if op.txn != nil {
		made, err = indexddl.DefineIndexes(op.Ctx, op.txn, ns, func(c *catalog.Collection) ([]*index.Definition, error) { return op.parseIndexes(c, specs) })
		made.Collection = true // as MongoDB says, though an earlier statement may have made it
		return made, err
	}
	ctx, builder, done := op.startBuilder()
	defer func() {
		done(err)
		op.tellFailedBuild(ns, specs, err)
	}()
	dryRun := func() (indexddl.DryRun, error) { return op.dryRunIndexes(ns, specs, false) }
	apply := func(seen *catalog.Collection) (err error) {
		made, err = op.Query.DDL.CreateIndexesSeen(ctx, ns, how, func(c *catalog.Collection) ([]*index.Definition, error) {
			if err := unmoved(seen, c); err != nil {
				return nil, err
			}
			return op.parseIndexes(c, specs)
		}, builder)
		return err
	}
	if askForTTL(specs) {
		return made, op.guarded(ns, how, dryRun, apply)
	}
	return made, apply(nil)
}

func askForTTL(specs []bson.Doc) bool {
	return slices.ContainsFunc(specs, func(spec bson.Doc) bool { return !spec.Lookup("expireAfterSeconds").IsMissing() })
}

func (op *Op) dryRunIndexes(ns namespace.NS, specs []bson.Doc, thorough bool) (indexddl.DryRun, error) {
	return op.Query.DDL.DryRunIndexes(op.Ctx, ns, op.Now, func(c *catalog.Collection) ([]*index.Definition, error) {
		return op.parseIndexes(c, specs)
	}, thorough)
}

// tryIndexes answers what would be answered, and what would expire.
func (op *Op) tryIndexes(ns namespace.NS, specs []bson.Doc, how ttlchange.OnHidden, look *preview) (bson.Doc, error) {
	h, err := op.dryRunIndexes(ns, specs, true)
	if err != nil {
		return nil, err
	}
	b := bson.Build().Fields(createdReply(h.Made, specs))
	err = op.appendExpiring(b, &h, how, look)
	return b.Doc(), err
}

// indexSpecs reads the elements of "indexes".
func (op *Op) indexSpecs(a *Args) (specs []bson.Doc) {
	a.Required("indexes")
	ignore := a.SafeBool("ignoreUnknownIndexOptions", false)
	for it := a.Array("indexes").Iter(); it.Next(); {
		if it.Value().Type != bson.TypeObject {
			a.Fail(a.wrongType("indexes."+it.Key(), it.Value().Type, []bson.Type{bson.TypeObject}))
			return nil
		}
		spec := it.Value().Doc()
		if ignore {
			spec = index.WithoutUnknown(spec)
		}
		if specs = append(specs, spec); len(specs) > maxIndexesAtOnce {
			a.Fail(mongoerr.New(mongoerr.BadValue, "Too many indexes, the limit is %d", maxIndexesAtOnce))
			return nil
		}
	}
	return specs
}

// indexable refuses namespaces whose indexes nobody may choose.
func indexable(ns namespace.NS) error {
	if err := readable(ns); err != nil {
		return err
	}
	if ns == catalog.TransactionsNS {
		return mongoerr.New(mongoerr.IllegalOperation, "not allowed to create index on %s", ns)
	}
	switch ns { // what a commit adds to the first is in no index, and what a member goes by must not expire
	case catalog.OplogNS, catalog.ImagesNS, catalog.PreImagesNS, catalog.ReplicaConfigNS, catalog.ElectionNS:
		return mongoerr.New(mongoerr.CannotCreateIndex, "Cannot create indexes on the %s collection", ns)
	}
	if ns.DB != "admin" && ns.DB != "config" && ns.Coll == "system.views" {
		return mongoerr.New(mongoerr.CannotCreateIndex, "Cannot create indexes on the %s collection", ns)
	}
	return nil
}

func (op *Op) parseIndexes(c *catalog.Collection, specs []bson.Doc) ([]*index.Definition, error) {
	parser := op.Query.Indexes()
	defs := make([]*index.Definition, 0, len(specs))
	for _, spec := range specs {
		d, err := parser.Parse(spec, c.Options.Collation)
		if err == nil {
			err = checkBesideRecords(c, d)
		}
		if err == nil {
			err = checkIndexEngine(spec)
		}
		if err != nil {
			return nil, mongoerr.Prefix("Error in specification "+spec.String()+" :: caused by :: ", err)
		}
		if err := op.checkIndexFor(c, d); err != nil {
			return nil, err
		}
		defs = append(defs, d)
	}
	return defs, nil
}

// checkBesideRecords holds an index against the order of the records of a clustered collection, which has a name and a key as
// indexes have.
func checkBesideRecords(c *catalog.Collection, d *index.Definition) error {
	there := c.IsClustered() && d.OrdersIDs()
	switch {
	case d.Clustered && !there && c.ID != 0: // checkIndexFor refuses it of a collection that would be made for it
		return mongoerr.New(6243700, "Cannot create index with option 'clustered' that does not match an existing clustered index")
	case there && d.Version() != 2:
		return mongoerr.New(6100908, "Cannot create an index with the same key pattern as the collection's clusteredIndex but a different 'v' field")
	case c.IsClustered() && !there && d.Name == c.Options.Clustered.Name:
		return mongoerr.New(6100906, "Cannot create an index where the name matches the clusteredIndex but the key does not - indexSpec: %s, clusteredIndex: %s",
			d.Spec, c.Options.Doc.Lookup("clusteredIndex"))
	}
	return nil
}

// checkIndexFor applies the rules between an index and the collection it is for.
func (op *Op) checkIndexFor(c *catalog.Collection, d *index.Definition) error {
	if op.APIStrict && d.Kind == index.Text {
		return mongoerr.New(mongoerr.APIStrictError, "Index type 'text' is not allowed with apiStrict:true")
	}
	if c.IsTimeSeries() {
		return checkSeriesIndex(c, d)
	}
	if c.Options.IsEncrypted {
		if err := checkEncryptedIndex(c, d); err != nil {
			return err
		}
	}
	switch {
	case d.Clustered && c.ID == 0:
		return mongoerr.New(6100900, "Cannot implicitly create a new collection with createIndex 'clustered' option")
	case d.Hidden && c.NS.IsSystem():
		return mongoerr.New(mongoerr.BadValue, "Can't hide indexes on system collections")
	case d.TTL && c.Options.Capped && !op.flag("ttlOnCapped") && !op.applies():
		return mongoerr.New(mongoerr.CannotCreateIndex, "Cannot create TTL index on a capped collection")
	case d.IsID() && c.IDIndex() != nil && string(d.Collation) != string(c.IDIndex().Collation):
		return mongoerr.New(mongoerr.BadValue, "The _id index must have the same collation as the collection. Index collation: %s, collection collation: %s", shown(d.Collation), shown(c.Options.Collation))
	}
	return nil
}

// shown is a collation in a message; plain byte order has the name "simple".
func shown(collation bson.Doc) bson.Doc {
	if collation == nil {
		return bson.Build().String("locale", "simple").Doc()
	}
	return collation
}

func createdReply(made indexddl.Created, specs []bson.Doc) bson.Doc {
	b := bson.Build()
	if onTS(specs) {
		b.String("_t", "CreateIndexesResponse")
	}
	b.Int32("numIndexesBefore", int32(made.Before)).Int32("numIndexesAfter", int32(made.After))
	if len(made.Indexes) == 0 && len(made.Retimed) == 0 {
		b.String("note", "all indexes already exist")
	} else {
		b.Bool("createdCollectionAutomatically", made.Collection)
	}
	return b.Doc()
}

// onTS says whether one of the indexes is a TTL index on _ts.
func onTS(specs []bson.Doc) bool {
	for _, spec := range specs {
		key := spec.Lookup("key")
		if key.Type == bson.TypeObject && key.Doc().FirstKey() == index.TSField && !spec.Lookup("expireAfterSeconds").IsMissing() {
			return true
		}
	}
	return false
}
