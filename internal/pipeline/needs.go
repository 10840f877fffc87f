package pipeline

import (
	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

// Needs is what whoever runs a stage must be allowed to do. A pipeline whose first stage is no source needs find on its collection
// beside that.
type Needs struct {
	// Nothing says that the stage works on documents that others bring.
	Nothing bool
	// Source says that the stage brings documents of its own, so that none of the collection are read.
	Source bool
	// Own are actions on the pipeline's own collection, and Cluster on the server.
	Own, Cluster []privilege.Action
	// Also asks for what the argument says. It has to make do with whatever that is: what is none is refused when it is parsed.
	Also func(r *asking, ns namespace.NS, arg bson.Value) (bool, error)
}

// Asker is who wants to run a pipeline.
type Asker struct {
	// May says whether that may be done on the resource.
	May func(privilege.Resource, privilege.Action) bool
	// Is says whether it is that user.
	Is func(name, db string) bool
	// Bypass says that what is written is not validated.
	Bypass bool
}

// asking is one look at what a pipeline needs.
type asking struct {
	*Asker
	table Table
	depth int
}

// Permits says whether the asker may run a pipeline on ns, an array of stages as it was sent. It looks at all that the pipeline reads
// and writes by name; what views among these stand on was looked at when they were made. An error is one that a parser has too.
func (t Table) Permits(who *Asker, ns namespace.NS, stages bson.Value) (bool, error) {
	if ns.Coll == "" {
		ns.Coll = collectionless
	}
	return (&asking{Asker: who, table: t}).pipeline(ns, stages, true)
}

// collectionless is what MongoDB calls the collection of a pipeline that is on none.
const collectionless = "$cmd.aggregate"

// pipeline asks for what the stages need; reads says that they are given the documents of ns if the first is no source.
func (r *asking) pipeline(ns namespace.NS, stages bson.Value, reads bool) (bool, error) {
	if stages.Type != bson.TypeArray {
		return true, nil
	}
	if r.depth > MaxDepth {
		return false, mongoerr.New(mongoerr.MaxSubPipelineDepthExceeded, "Maximum number of nested sub-pipelines exceeded. Limit is %d", MaxDepth)
	}
	n := 0
	for it := stages.Doc().Iter(); it.Next(); n++ {
		var row *Row
		if it.Value().Type == bson.TypeObject {
			row = r.table[it.Value().Doc().FirstKey()]
		}
		if n == 0 && reads && (row == nil || !row.Needs.Source) && !r.on(ns, privilege.Find) {
			return false, nil
		}
		if n > MaxStages || row == nil {
			continue // and refused by who parses it
		}
		if ok, err := r.stage(row, ns, it.Value().Doc().Index(0)); !ok || err != nil {
			return false, err
		}
	}
	return n > 0 || !reads || r.on(ns, privilege.Find), nil
}

func (r *asking) stage(row *Row, ns namespace.NS, arg bson.Value) (bool, error) {
	if !r.on(ns, row.Needs.Own...) || !r.all(privilege.Cluster(), row.Needs.Cluster...) {
		return false, nil
	}
	if row.Needs.Also == nil {
		return true, nil
	}
	return row.Needs.Also(r, ns, arg)
}

// sub asks for what a pipeline inside of a stage needs.
func (r *asking) sub(ns namespace.NS, stages bson.Value, reads bool) (bool, error) {
	inner := *r
	inner.depth++
	return inner.pipeline(ns, stages, reads)
}

func (r *asking) on(ns namespace.NS, as ...privilege.Action) bool {
	return r.all(privilege.Namespace(ns), as...)
}

func (r *asking) all(on privilege.Resource, as ...privilege.Action) bool {
	for _, a := range as {
		if !r.May(on, a) {
			return false
		}
	}
	return true
}

// whose asks for what the sessions or operations of others need, of a stage whose argument says whose it shows.
func (r *asking) whose(arg bson.Value, of privilege.Action) bool {
	for it := documentOf(arg).Iter(); it.Next(); {
		switch it.Key() {
		case "allUsers":
			if it.Value().Truthy() && !r.all(privilege.Cluster(), of) {
				return false
			}
		case "users":
			for user := documentOf(it.Value()).Iter(); user.Next(); {
				d := documentOf(user.Value())
				if !r.Is(textOr(d.Lookup("user"), ""), textOr(d.Lookup("db"), "")) && !r.all(privilege.Cluster(), of) {
					return false
				}
			}
		}
	}
	return true
}

// documentOf is a document's or an array's fields, none of anything else.
func documentOf(v bson.Value) bson.Doc {
	if v.Type != bson.TypeObject && v.Type != bson.TypeArray {
		return bson.EmptyDoc
	}
	return v.Doc()
}

// textOr is a text, or the other one where v is none.
func textOr(v bson.Value, other string) string {
	if v.Type != bson.TypeString {
		return other
	}
	return v.Str()
}

// foreign is the namespace that {db, coll} names, with a default for each.
func foreign(d bson.Doc, db, coll string) namespace.NS {
	ns := namespace.NS{DB: textOr(d.Lookup("db"), db), Coll: textOr(d.Lookup("coll"), coll)}
	if ns.DB == "" { // which $merge reads as its own
		ns.DB = db
	}
	return ns
}

// needsLookup is find on the other collection, unless the pipeline within brings documents of its own, and what that pipeline needs.
func needsLookup(r *asking, ns namespace.NS, arg bson.Value) (bool, error) {
	from, d := namespace.NS{DB: ns.DB, Coll: collectionless}, documentOf(arg)
	if v := d.Lookup("from"); v.Type == bson.TypeObject {
		from = foreign(v.Doc(), ns.DB, collectionless)
	} else {
		from.Coll = textOr(v, collectionless)
	}
	// A join by fields reads the collection whatever the pipeline begins with.
	if !d.Lookup("localField").IsMissing() && from.Coll != collectionless && !r.on(from, privilege.Find) {
		return false, nil
	}
	return r.sub(from, arrayOf(d.Lookup("pipeline")), true)
}

// needsUnionWith is what needsLookup is of a collection of the same database, whatever database the stage may name.
func needsUnionWith(r *asking, ns namespace.NS, arg bson.Value) (bool, error) {
	from := namespace.NS{DB: ns.DB, Coll: collectionless}
	if arg.Type == bson.TypeString {
		from.Coll = arg.Str()
		return r.sub(from, bson.EmptyArr, true)
	}
	from.Coll = textOr(documentOf(arg).Lookup("coll"), collectionless)
	return r.sub(from, arrayOf(documentOf(arg).Lookup("pipeline")), true)
}

// arrayOf is an array, an empty one where v is none.
func arrayOf(v bson.Value) bson.Value {
	if v.Type != bson.TypeArray {
		return bson.EmptyArr
	}
	return v
}

func needsGraphLookup(r *asking, ns namespace.NS, arg bson.Value) (bool, error) {
	for it := documentOf(arg).Iter(); it.Next(); {
		if it.Key() == "from" && it.Value().Type == bson.TypeString && !r.on(namespace.NS{DB: ns.DB, Coll: it.Value().Str()}, privilege.Find) {
			return false, nil
		}
	}
	return true, nil
}

// needsFacet asks for what the pipelines within need. They are given what the stage is given.
func needsFacet(r *asking, ns namespace.NS, arg bson.Value) (bool, error) {
	for it := documentOf(arg).Iter(); it.Next(); {
		if ok, err := r.sub(ns, it.Value(), false); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

func needsFusion(r *asking, ns namespace.NS, arg bson.Value) (bool, error) {
	return needsFacet(r, ns, documentOf(documentOf(arg).Lookup("input")).Lookup("pipelines"))
}

func needsOut(r *asking, ns namespace.NS, arg bson.Value) (bool, error) {
	to := namespace.NS{DB: ns.DB}
	if arg.Type == bson.TypeString {
		to.Coll = arg.Str()
	} else {
		to = foreign(documentOf(arg), ns.DB, "")
	}
	return r.writes(to, privilege.Insert, privilege.Remove), nil
}

func needsMerge(r *asking, ns namespace.NS, arg bson.Value) (bool, error) {
	to, matched, notMatched := namespace.NS{DB: ns.DB}, bson.Missing, bson.Missing
	if arg.Type == bson.TypeString {
		to.Coll = arg.Str()
	} else {
		d := documentOf(arg)
		if into := d.Lookup("into"); into.Type == bson.TypeString {
			to.Coll = into.Str()
		} else {
			to = foreign(documentOf(into), ns.DB, "")
		}
		matched, notMatched = d.Lookup("whenMatched"), d.Lookup("whenNotMatched")
	}
	inserts := textOr(notMatched, "insert") == "insert"
	updates := textOr(matched, "merge") != "fail"
	switch {
	case inserts && updates:
		return r.writes(to, privilege.Insert, privilege.Update), nil
	case inserts:
		return r.writes(to, privilege.Insert), nil
	default:
		return r.writes(to, privilege.Update), nil
	}
}

// writes asks for actions that write, and for what writing without validation needs.
func (r *asking) writes(to namespace.NS, as ...privilege.Action) bool {
	return r.on(to, as...) && (!r.Bypass || r.on(to, privilege.BypassDocumentValidation))
}

func needsChangeStream(r *asking, ns namespace.NS, _ bson.Value) (bool, error) {
	on := privilege.Namespace(ns)
	switch {
	case ns.Coll != collectionless:
	case ns.DB == "admin":
		on = privilege.AnyNormal()
	default:
		on = privilege.Database(ns.DB)
	}
	return r.all(on, privilege.ChangeStream, privilege.Find), nil
}

func needsCurrentOp(r *asking, _ namespace.NS, arg bson.Value) (bool, error) {
	return r.whose(arg, privilege.Inprog), nil
}

func needsListSessions(r *asking, _ namespace.NS, arg bson.Value) (bool, error) {
	return r.whose(arg, privilege.ListSessions), nil
}

func needsQueryStats(r *asking, _ namespace.NS, arg bson.Value) (bool, error) {
	if documentOf(arg).Lookup("transformIdentifiers").IsMissing() {
		return r.all(privilege.Cluster(), privilege.QueryStatsRead), nil
	}
	return r.all(privilege.Cluster(), privilege.QueryStatsReadTransformed), nil
}

func needsListCatalog(r *asking, ns namespace.NS, _ bson.Value) (bool, error) {
	if ns.Coll != collectionless {
		return r.all(privilege.Database(ns.DB), privilege.ListCollections) && r.on(ns, privilege.ListIndexes), nil
	}
	return r.listsAll(), nil
}

func needsListClusterCatalog(r *asking, ns namespace.NS, _ bson.Value) (bool, error) {
	if ns.DB != "admin" {
		return r.all(privilege.Database(ns.DB), privilege.ListCollections), nil
	}
	return r.listsAll(), nil
}

// listsAll is what readAnyDatabase gives.
func (r *asking) listsAll() bool {
	if !r.all(privilege.Cluster(), privilege.ListDatabases) {
		return false
	}
	for _, on := range [...]privilege.Resource{privilege.AnyNormal(), privilege.CollectionNamed("system.js"), privilege.AnyBuckets()} {
		if !r.all(on, privilege.ListCollections, privilege.ListIndexes) {
			return false
		}
	}
	return true
}
