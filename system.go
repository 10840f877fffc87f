package ebb

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
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

// dropTemporary drops the collections that are temporary: whoever made them is gone. What is done again (a restore) goes on with those that
// it finds, and they are dropped at the next start.
func (d *database) dropTemporary(ctx context.Context, log *slog.Logger) error {
	if _, again := d.clock.(clock.Recorded); again {
		return nil
	}
	for _, coll := range d.store.Catalog().All() {
		if !coll.Options.Temp || coll.IsView() {
			continue
		}
		if _, err := d.store.DropCollection(ctx, coll.NS); err != nil && !mongoerr.Is(err, mongoerr.NamespaceNotFound) {
			return fmt.Errorf("drop the temporary collection %s: %w", coll.NS, err)
		}
		log.Info("Dropped a temporary collection that was left", "namespace", coll.NS.String())
	}
	return nil
}

// featureVersion is the first two parts of MongoVersion.
const featureVersion = "8.2"
