package command

import (
	"slices"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/storage"
)

func listDatabasesCommands() []*Command {
	return []*Command{{Name: "listDatabases", Needs: Needs{Nothing: true}, Doc: "Lists the databases.", AdminOnly: true, Run: listDatabases}}
}

func listDatabases(op *Op) (bson.Doc, error) {
	a := op.Args
	a.Ignore(op.Name())
	filter := a.Doc("filter")
	nameOnly := a.SafeBool("nameOnly", false)
	own, given := a.typed("authorizedDatabases", bson.TypeBool)
	if err := a.Done(); err != nil {
		return nil, err
	}
	all := op.May(privilege.Cluster(), privilege.ListDatabases)
	if given && !own.Bool() && !all {
		return nil, mongoerr.New(mongoerr.Unauthorized, "Insufficient permissions to list all databases")
	}
	if given {
		all = !own.Bool()
	}
	call := op.call()
	call.NoNow = true
	match, err := op.Query.Filter(op.Ctx, filter, call)
	if err != nil {
		return nil, err
	}
	view, err := op.Query.Store.ViewAt(op.Ctx, op.Now)
	if err != nil {
		return nil, err
	}
	defer view.Close()
	b := bson.Build().Array("databases")
	total, n := int64(0), 0
	for _, name := range databaseNames(view) {
		if !all && !op.mayAnything(name) {
			continue
		}
		row, size, err := databaseRow(view, name, nameOnly)
		if err != nil {
			return nil, err
		}
		ok, err := match(row)
		if err != nil {
			return nil, err
		}
		if ok {
			b.Document(bson.IndexKey(n), row)
			total += size
			n++
		}
	}
	b.End()
	if !nameOnly {
		b.Int64("totalSize", total).Int64("totalSizeMb", total>>20)
	}
	return b.Doc(), nil
}

// ownDatabases are the server's own, which are there whether or not they hold a collection.
var ownDatabases = [...]string{"admin", "config", "local"}

func databaseNames(view *storage.View) []string {
	names := view.Catalog().Databases()
	for _, own := range ownDatabases {
		if !view.Catalog().HasDatabase(own) {
			names = append(names, own)
		}
	}
	slices.Sort(names)
	return names
}

func databaseRow(view *storage.View, name string, nameOnly bool) (row bson.Doc, size int64, err error) {
	b := bson.Build().String("name", name)
	if nameOnly {
		return b.Doc(), 0, nil
	}
	for _, c := range view.Catalog().Collections(name) {
		r, ok := view.CollectionByID(c.ID)
		if !ok {
			continue
		}
		st, err := measure(r)
		if err != nil {
			return nil, 0, err
		}
		size += storageSize(st) + indexSize(st)
	}
	return b.Int64("sizeOnDisk", size).Bool("empty", false).Doc(), size, nil
}
