package command

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/query"
)

func renameCollectionCommands() []*Command {
	return []*Command{{Name: "renameCollection", Needs: Needs{Also: needsRename}, Doc: "Gives a collection another name.", AdminOnly: true, WriteConcern: true, ChangesTTL: true, Run: renameCollection}}
}

// renameRequest is a renameCollection as the client asked for it.
type renameRequest struct {
	from, to   namespace.NS
	dropTarget bool
	// source is the collection that is meant, and target the one that may be dropped.
	source, target *query.Expected
}

func renameCollection(op *Op) (bson.Doc, error) {
	r, err := parseRename(op.Args, op.Name())
	if err != nil {
		return nil, err
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	if err := op.Query.CheckExpected(r.source); err != nil {
		return nil, err
	}
	if err := op.Query.CheckExpected(r.target); err != nil {
		return nil, err
	}
	source, target := op.Query.Store.Catalog().Collection(r.from), op.Query.Store.Catalog().Collection(r.to)
	switch {
	case source == nil || op.applies(): // the first goes before what there is at the target; an $out has put a time series in its place
	case source.IsTimeSeries():
		return nil, mongoerr.New(mongoerr.CommandNotSupportedOnView, "Renaming a timeseries collection is not supported: %s", r.from)
	case target != nil && target.IsTimeSeries():
		return nil, mongoerr.New(mongoerr.NamespaceExists, "a timeseries collection already exists with that name: %s", r.to)
	case op.Replica != nil && (r.from.DB == catalog.LocalDB) != (r.to.DB == catalog.LocalDB): // the oplog would tell half of it
		return nil, mongoerr.New(mongoerr.IllegalOperation, "Cannot rename collections across a replicated and an unreplicated database")
	}
	if uuid := op.Conn.appliedUUID; uuid != nil {
		return bson.EmptyDoc, op.Query.Store.RenameAs(op.patiently(), r.from, r.to, r.dropTarget, *uuid)
	}
	return bson.EmptyDoc, op.Query.Store.Rename(op.patiently(), r.from, r.to, r.dropTarget)
}

func parseRename(a *Args, name string) (r renameRequest, err error) {
	a.Required(name, "to")
	from, _ := a.String(name)
	to, _ := a.String("to")
	r.from, r.to = namespace.Split(strings.Clone(from)), namespace.Split(strings.Clone(to))
	r.source = a.collectionUUID(r.from)
	switch v := a.Value("dropTarget"); {
	case v.IsMissing():
	case v.Type == bson.TypeBool:
		r.dropTarget = v.Bool()
	case v.Type == bson.TypeBinary:
		r.dropTarget, r.target = true, a.targetUUID(v, r.to)
	default:
		a.Fail(a.wrongType("dropTarget", v.Type, []bson.Type{bson.TypeBool, bson.TypeBinary}))
	}
	a.Bool("stayTemp", false)
	return r, a.Done()
}

func (a *Args) targetUUID(v bson.Value, ns namespace.NS) *query.Expected {
	subtype, data := v.Binary()
	if subtype != 4 || len(data) != 16 {
		a.Fail(mongoerr.New(mongoerr.InvalidUUID, "UUID must be a 16-byte binary field with UUID (4) subtype"))
		return nil
	}
	return &query.Expected{NS: ns, UUID: [16]byte(data)}
}

func (r *renameRequest) check() error {
	for _, side := range [...]struct {
		name string
		ns   namespace.NS
	}{{"source", r.from}, {"target", r.to}} {
		if err := checkRenamed(side.name, side.ns); err != nil {
			return err
		}
	}
	switch {
	case r.from.DB != r.to.DB && r.target != nil:
		return invalidOptions("cannot rename within the same database: dropTarget by UUID is not allowed across databases")
	case r.from == r.to:
		return mongoerr.New(mongoerr.IllegalOperation, "Can't rename a collection to itself")
	case isOplog(r.from) != isOplog(r.to):
		return mongoerr.New(mongoerr.IllegalOperation, "If either the source or target of a rename is an oplog name, both must be")
	}
	for _, name := range unmovable {
		if r.from.Coll == name || r.to.Coll == name {
			return mongoerr.New(mongoerr.IllegalOperation, "renaming %[1]s collection or renaming to %[1]s is not allowed", name)
		}
	}
	switch {
	case !renamable(r.from):
		return mongoerr.New(mongoerr.IllegalOperation, "error with source namespace: Cannot rename system collection %s", r.from)
	case !renamable(r.to):
		return mongoerr.New(mongoerr.IllegalOperation, "error with target namespace: Cannot rename to system collection %s", r.to)
	}
	return nil
}

// unmovable are the collections of any database that are not renamed, whoever asks for it, nor another to one of them.
var unmovable = [...]string{systemViews, "system.js", "system.users"}

// renamable says whether a collection with a system name may be renamed, or become one.
func renamable(ns namespace.NS) bool {
	return !ns.IsSystem() || ns.DB == "admin" && ns.Coll != "system.version"
}

// isOplog says whether a name is one for the log of a replica set.
func isOplog(ns namespace.NS) bool {
	return ns.DB == "local" && strings.HasPrefix(ns.Coll, "oplog.") && len(ns.Coll) > len("oplog.")
}

// checkRenamed refuses namespaces that cannot be renamed, or to which nothing can.
func checkRenamed(side string, ns namespace.NS) error {
	bad := ns.Coll == "" || ns.DB == "" || ns.Coll[0] == '.' || strings.ContainsRune(ns.Coll, 0) || len(ns.DB) > namespace.MaxDBLength
	switch {
	case bad || strings.ContainsAny(ns.DB, "/\\ \"\x00"):
		return mongoerr.New(mongoerr.InvalidNamespace, "Invalid %s namespace: %s", side, ns)
	case strings.Contains(ns.DB, "$") || strings.Contains(ns.Coll, "$"):
		return mongoerr.New(mongoerr.IllegalOperation, "error with %s namespace: Invalid collection name: %s", side, ns)
	case len(ns.String()) > namespace.MaxLength:
		return mongoerr.New(mongoerr.IllegalOperation, "error with %s namespace: Fully qualified namespace is too long. Namespace: %s Max: %d", side, ns, namespace.MaxLength)
	}
	return nil
}
