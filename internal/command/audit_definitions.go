package command

import (
	"strings"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/build"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/storage/witness"
	"github.com/ebbdb/ebb/internal/ttl"
)

// IsAuthCollection says whether a collection holds users or roles: what happens to its documents is for the audit log.
func IsAuthCollection(ns namespace.NS) bool { return ns == auth.UsersNS() || ns == auth.RolesNS() }

// witness has the audit log be told what a commit of the command's has done.
func (op *Op) witness(w witness.Commit) {
	for _, e := range w.Events {
		op.tellDefinition(e, &w)
	}
	if op.Command.Audited != nil { // which says it in better words
		return
	}
	for _, d := range w.Documents {
		verb := "update"
		switch d.Op {
		case meaning.DocumentInserted:
			verb = "insert"
		case meaning.DocumentDeleted, meaning.DocumentExpired:
			verb = "remove"
		}
		op.tellDirect(withoutCredentials(d.Doc), d.NS, verb)
	}
}

// tellDirect tells of a change of users or roles that was none of their commands.
func (op *Op) tellDirect(what bson.Doc, ns namespace.NS, verb string) {
	op.tell("directAuthMutation", bson.Build().Document("document", what).String("ns", ns.String()).String("operation", verb).Doc())
}

// withoutCredentials is a user with the names of the mechanisms in the place of what logins are held against, and without a password that
// somebody has put there.
func withoutCredentials(d bson.Doc) bson.Doc {
	d = conceal(d, []string{"pwd"})
	if d.Lookup("credentials").IsMissing() {
		return d
	}
	return with(d, field{"credentials", mechanismsOf(d)})
}

func (op *Op) tellDefinition(e meaning.Event, w *witness.Commit) {
	switch e.Kind {
	case meaning.CollectionCreated:
		if len(w.Before.Collections(e.NS.DB)) == 0 && op.isFirst(e, w) {
			op.tell("createDatabase", bson.Build().String("ns", e.NS.DB).Doc())
		}
		coll := w.After.ByID(e.Collection)
		op.tell("createCollection", collectionParam(e.NS, coll))
		if coll != nil {
			for _, d := range coll.Indexes {
				op.tellIndex(e.NS, d, indexStarted, indexSucceeded)
			}
		}
	case meaning.CollectionDropped:
		op.tell("dropCollection", collectionParam(e.NS, w.Before.ByID(e.Collection)))
		if IsAuthCollection(e.NS) {
			op.tellDirect(bson.Build().String("dropCollection", e.NS.String()).Doc(), e.NS, "command")
		}
	case meaning.CollectionRenamed:
		op.tell("renameCollection", bson.Build().String("old", e.NS.String()).String("new", e.To.String()).Doc())
		for _, ns := range [...]namespace.NS{e.NS, e.To} {
			if IsAuthCollection(ns) {
				op.tellDirect(bson.Build().String("renameCollection", e.NS.String()).String("to", e.To.String()).Doc(), ns, "command")
			}
		}
	case meaning.IndexCreated:
		switch {
		case w.Before.ByID(e.Collection) == nil: // which was told with it
		case op.building:
			op.tellIndex(e.NS, e.Index, indexSucceeded)
		default:
			op.tellIndex(e.NS, e.Index, indexStarted, indexSucceeded)
		}
	case meaning.IndexDropped:
		op.tell("dropIndex", bson.Build().String("ns", e.NS.String()).String("indexName", e.Index.Name).Doc())
	case meaning.DatabaseDropped:
		op.tell("dropDatabase", bson.Build().String("ns", e.NS.DB).Doc())
	}
}

// isFirst says whether no collection of the database was made before e by the same commit.
func (op *Op) isFirst(e meaning.Event, w *witness.Commit) bool {
	for _, other := range w.Events {
		if other.Kind == meaning.CollectionCreated && other.NS.DB == e.NS.DB {
			return other.Collection == e.Collection
		}
	}
	return false
}

// collectionParam tells of a collection, or of a view and what it shows; coll is nil where that is not known.
func collectionParam(ns namespace.NS, coll *catalog.Collection) bson.Doc {
	b := bson.Build().String("ns", ns.String())
	if coll != nil && coll.IsView() {
		b.String("viewOn", ns.DB+"."+coll.Options.ViewOn).Value("pipeline", bson.Value{Type: bson.TypeArray, Data: coll.Options.Pipeline})
	}
	return b.Doc()
}

// The states of the build of an index.
const (
	indexStarted   = "IndexBuildStarted"
	indexSucceeded = "IndexBuildSucceeded"
	indexAborted   = "IndexBuildAborted"
)

func (op *Op) tellIndex(ns namespace.NS, d *index.Definition, states ...string) {
	for _, state := range states {
		param := bson.Build().String("ns", ns.String()).String("indexName", d.Name).Document("indexSpec", d.Spec).String("indexBuildState", state).Doc()
		if state == indexAborted {
			op.tellResult("createIndex", param, indexBuildAborted, true)
		} else {
			op.tell("createIndex", param)
		}
	}
}

// beginBuild tells at once of a build that takes its time. What is returned is called at its end.
func (op *Op) beginBuild(b *build.Underway) (end func(err error)) {
	if op.Audit == nil {
		return func(error) {}
	}
	op.building, op.began = true, true
	for _, d := range b.Definitions {
		op.tellIndex(b.NS, d, indexStarted)
	}
	_ = op.flushTold() // the end of the server is on its way where that is what follows
	return func(err error) {
		op.building = false
		if err == nil {
			return
		}
		for _, d := range b.Definitions {
			op.tellIndex(b.NS, d, indexAborted)
		}
	}
}

// tellFailedBuild tells of indexes that could not be built although that was to take no time.
func (op *Op) tellFailedBuild(ns namespace.NS, specs []bson.Doc, err error) {
	if op.Audit == nil || op.began || !mongoerr.Is(err, mongoerr.DuplicateKey) {
		return
	}
	for _, spec := range specs {
		d := &index.Definition{Name: text(spec, "name"), Spec: spec}
		op.tellIndex(ns, d, indexStarted, indexAborted)
	}
}

// tellTTL tells of a change of a TTL as the history of expiry does, and whether the command was told to make it past the guard.
func (op *Op) tellTTL(history bson.Doc) {
	b := bson.Build().Value("change", history.Lookup("event"))
	for it := history.Iter(); it.Next(); {
		if it.Key() != "at" && it.Key() != "event" {
			b.Value(it.Key(), shortest(it.Value()))
		}
	}
	op.tell("changeTTL", b.Bool("forced", op.Args.Document().Lookup("force").Truthy()).Doc())
}

// tellTTLParameter tells of a parameter about expiry that was set; deleted is how many documents that were hidden were deleted for it.
func (op *Op) tellTTLParameter(name string, old, now bson.Value, deleted int64) {
	if op.Audit == nil || !strings.HasPrefix(name, "ttl") || name == ttl.HoldName { // of which the history tells
		return
	}
	b := bson.Build().String("change", "parameter").String("parameter", name).Value("old", shortest(old)).Value("new", shortest(now)).
		Value("deleted", shortest(bson.Int64(deleted)))
	op.tell("changeTTL", b.Bool("forced", op.Args.Document().Lookup("force").Truthy()).Doc())
}

// shortest is a whole number in 32 bits where it has room there: the audit log, whose JSON is MongoDB's, shows such as plain numbers.
func shortest(v bson.Value) bson.Value {
	if v.Type == bson.TypeInt64 && v.Int64() == int64(int32(v.Int64())) {
		return bson.Int32(int32(v.Int64()))
	}
	return v
}
