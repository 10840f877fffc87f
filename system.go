package ebb

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/query"
)

// ensureSystem makes what every MongoDB server has from its first start on: the admin database with the version of the
// features that are on, so that tools which look for it find it.
func (d *database) ensureSystem(ctx context.Context, engine *query.Engine, now int64) error {
	ns := namespace.NS{DB: "admin", Coll: "system.version"}
	if d.store.Catalog().Collection(ns) != nil {
		return nil
	}
	if _, err := d.store.CreateCollection(ctx, ns, bson.EmptyDoc); err != nil && !mongoerr.Is(err, mongoerr.NamespaceExists) {
		return err
	}
	doc := bson.Build().String("_id", "featureCompatibilityVersion").String("version", featureVersion).Doc()
	_, refused, err := engine.Insert(ctx, ns, []bson.Doc{doc}, true, &query.Call{Now: now})
	if err == nil && len(refused) > 0 {
		err = refused[0].Err
	}
	return err
}

// featureVersion is the first two parts of MongoVersion.
const featureVersion = "8.2"
