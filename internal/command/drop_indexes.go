package command

import (
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/indexddl"
	"github.com/ebbdb/ebb/internal/storage/ttlchange"
)

func dropIndexesCommands() []*Command {
	return []*Command{{Name: "dropIndexes", RawData: true, Aliases: []string{"deleteIndexes"}, Needs: Needs{OnCollection: actions(privilege.DropIndex), Also: needsForce}, Doc: "Drops indexes of a collection.", WriteConcern: true, ChangesTTL: true, Run: dropIndexes}}
}

func dropIndexes(op *Op) (bson.Doc, error) {
	a := op.Args
	ns := a.Collection(op.DB)
	which := a.Value("index")
	if which.IsMissing() {
		a.Required("index")
	}
	checkWhich(a, which)
	expected := a.collectionUUID(ns)
	a.Ignore("isTimeseriesNamespace")
	how, dryRun := op.readOnHidden(a), false
	if !op.APIStrict { // to which it is unknown
		dryRun = a.SafeBool("dryRun", false)
	}
	look := op.readPreview(a, dryRun)
	if err := a.Done(); err != nil {
		return nil, err
	}
	if err := readable(ns); err != nil {
		return nil, err
	}
	if err := op.Query.CheckExpected(expected); err != nil {
		return nil, err
	}
	if coll := op.stored(ns); coll != nil {
		ns = coll.NS
	}
	d := &indexDrop{op: op, ns: ns, which: which, how: how}
	if dryRun {
		return d.try(look)
	}
	return d.run()
}

// indexDrop is a dropIndexes on its way.
type indexDrop struct {
	op    *Op
	ns    namespace.NS
	which bson.Value
	how   ttlchange.OnHidden
}

func (d *indexDrop) pick(c *catalog.Collection) ([]*index.Definition, error) {
	return pickIndexes(c, d.which)
}

func (d *indexDrop) reply(was int) *bson.Builder {
	b := bson.Build().Int32("nIndexesWas", int32(was))
	if d.which.Type == bson.TypeString && d.which.Str() == "*" {
		b.String("msg", "non-_id indexes dropped for collection")
	}
	return b
}

// try answers what would be answered, and what would be deleted.
func (d *indexDrop) try(look *preview) (bson.Doc, error) {
	h, was, err := d.dryRun()
	if err != nil {
		return nil, err
	}
	b := d.reply(was)
	err = d.op.appendExpiring(b, &h, d.how, look)
	return b.Doc(), err
}

func (d *indexDrop) dryRun() (indexddl.DryRun, int, error) {
	return d.op.Query.DDL.DryRunDrop(d.op.Ctx, d.ns, d.op.Now, d.pick)
}

func (d *indexDrop) run() (bson.Doc, error) {
	was, done := 0, ttlchange.Loosened{}
	err := d.op.guarded(d.ns, d.how, func() (indexddl.DryRun, error) {
		h, _, err := d.dryRun()
		return h, err
	}, func(seen *catalog.Collection) (err error) {
		was, done, err = d.op.Query.DDL.DropIndexesWith(d.op.patiently(), d.ns, d.how, func(c *catalog.Collection) ([]*index.Definition, error) {
			if seen != nil && !hasIndexesOf(c, seen) {
				return nil, errMoved
			}
			return d.pick(c)
		})
		return err
	})
	b := d.reply(was)
	d.op.noteHidden(b, done)
	return b.Doc(), err
}

// hasIndexesOf says whether c is the collection that was seen, and has its indexes, unchanged: c's that are being built may be more.
func hasIndexesOf(c, seen *catalog.Collection) bool {
	for _, d := range seen.Indexes {
		if !slices.Contains(c.Indexes, d) {
			return false
		}
	}
	return c.ID == seen.ID
}

// checkWhich looks at the type of "index": a name, names, or a key pattern.
func checkWhich(a *Args, v bson.Value) {
	switch v.Type {
	case bson.TypeString, bson.TypeObject, bson.TypeMissing:
	case bson.TypeArray:
		for it := v.Doc().Iter(); it.Next(); {
			switch {
			case it.Value().Type == bson.TypeString:
			case it.Key() == "0": // the first element tells what the array is of
				a.Fail(mongoerr.New(mongoerr.TypeMismatch, "BSON field '%s.index' is the wrong type 'array', expected types '[string]'", a.path).Unparsed())
			default:
				a.Fail(a.wrongType("index."+it.Key(), it.Value().Type, []bson.Type{bson.TypeString}))
			}
		}
	default:
		a.Fail(a.wrongType("index", v.Type, []bson.Type{bson.TypeString, bson.TypeObject}))
	}
}

// pickIndexes finds the indexes of c that a client names.
func pickIndexes(c *catalog.Collection, which bson.Value) ([]*index.Definition, error) {
	switch which.Type {
	case bson.TypeString:
		if which.Str() == "*" {
			return droppable(c), nil
		}
		d, err := indexNamed(c, which.Str())
		if err != nil {
			return nil, err
		}
		return []*index.Definition{d}, nil
	case bson.TypeArray:
		return indexesNamed(c, which.Doc())
	}
	d, err := indexWithKey(c, which.Doc())
	if err != nil {
		return nil, err
	}
	return []*index.Definition{d}, nil
}

// indexesNamed finds indexes by their names, each of which may be given once; "*" alone is all.
func indexesNamed(c *catalog.Collection, names bson.Doc) (defs []*index.Definition, err error) {
	for it := names.Iter(); it.Next(); {
		name := it.Value().Str()
		if name == "*" && names.Count() == 1 {
			return droppable(c), nil
		}
		d, err := indexNamed(c, name)
		if err != nil {
			return nil, err
		}
		if slices.Contains(defs, d) {
			return nil, mongoerr.New(mongoerr.IndexNotFound, "index not found with name [%s]: it is given twice", d.Name)
		}
		defs = append(defs, d)
	}
	return defs, nil
}

func droppable(c *catalog.Collection) (defs []*index.Definition) {
	for _, d := range c.Indexes {
		if !d.IsID() {
			defs = append(defs, d)
		}
	}
	return defs
}

func indexNamed(c *catalog.Collection, name string) (*index.Definition, error) {
	d := c.Index(name)
	switch {
	case c.IsClustered() && name == c.Options.Clustered.Name:
		return nil, mongoerr.New(5979800, "Cannot drop the clustered index. Drop the collection instead.")
	case d == nil:
		return nil, mongoerr.New(mongoerr.IndexNotFound, "index not found with name [%s]", strings.Clone(name))
	case d.IsID():
		return nil, errDropID()
	}
	return d, nil
}

func errDropID() error { return invalidOptions("cannot drop _id index") }

// ordersRecords says whether key is that of the order of a clustered collection.
func ordersRecords(c *catalog.Collection, key bson.Doc) bool {
	return c.IsClustered() && bson.CompareDocs(index.OfRecords("", nil).Key, key, nil) == 0
}

func indexWithKey(c *catalog.Collection, key bson.Doc) (*index.Definition, error) {
	if ordersRecords(c, key) {
		return nil, mongoerr.New(5979800, "Cannot drop the clustered index. Drop the collection instead.")
	}
	found := index.WithKey(c.Indexes, key)
	switch {
	case len(found) == 0:
		return nil, mongoerr.New(mongoerr.IndexNotFound, "can't find index with key: %s", key)
	case len(found) > 1:
		return nil, mongoerr.New(mongoerr.AmbiguousIndexKeyPattern, "%d indexes found for key: %s, identify by name instead. Conflicting indexes: %s, %s",
			len(found), key, found[0].Spec, found[1].Spec)
	case found[0].IsID():
		return nil, errDropID()
	}
	return found[0], nil
}
