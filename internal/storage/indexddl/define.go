package indexddl

import (
	"context"
	"slices"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/catalogchange"
	"github.com/ebbdb/ebb/internal/storage/meaning"
)

// DefineIndexes is CreateIndexes inside of a transaction of several statements. New indexes are only for a collection that the transaction
// has made, as long as that is empty, or that is made now: there is nothing to build.
func DefineIndexes(ctx context.Context, t *storage.Txn, ns namespace.NS, parse func(*catalog.Collection) ([]*index.Definition, error)) (made Created, err error) {
	view := t.Statement(ctx)
	c := view.Catalog().Collection(ns)
	if c == nil {
		if _, err := parse(&catalog.Collection{NS: ns, Options: catalog.ReadOptions(nil)}); err != nil {
			return made, err
		}
		if c, err = t.CreateCollection(ctx, ns, nil); err != nil {
			return made, err
		}
		made.Collection = true
	}
	p, err := planIndexes(c, nil, parse)
	if err != nil {
		return Created{}, err
	}
	p.report(c, &made)
	if p.IsNothing() {
		return made, nil
	}
	if err := checkOwn(t, c); err != nil {
		return Created{}, err
	}
	return made, t.Define(ctx, func(ch *catalogchange.Change) error { return p.define(ch, c, &made) })
}

// checkOwn refuses new indexes in a transaction for what is not its own, or has documents.
func checkOwn(t *storage.Txn, c *catalog.Collection) error {
	if !t.HasMade(c) {
		return mongoerr.New(mongoerr.OperationNotSupportedInTransaction, "Cannot create new indexes on existing collection %s in a multi-document transaction.", c.NS)
	}
	r, ok := t.View().CollectionByID(c.ID)
	if !ok {
		return isView(c.NS)
	}
	if documents, err := r.Stored(); err != nil {
		return err
	} else if documents > 0 {
		return mongoerr.New(mongoerr.OperationNotSupportedInTransaction, "Cannot create new indexes on non-empty collection %s in a multi-document transaction.", c.NS)
	}
	return nil
}

// define puts the plan's indexes into the catalogue of an empty collection.
func (p *indexPlan) define(ch *catalogchange.Change, c *catalog.Collection, made *Created) error {
	next, retimed := p.Retime(c)
	defs := slices.Clone(p.Added)
	for i, def := range defs {
		id, err := ch.NewIndexID()
		if err != nil {
			return err
		}
		defs[i] = def.WithForm(def.FormToday()).WithID(id)
	}
	next.Indexes = append(next.Indexes, defs...)
	made.Indexes, made.Retimed = defs, retimed
	if err := ch.Put(next); err != nil {
		return err
	}
	for _, d := range defs {
		ch.Tell(meaning.IndexCreated, next, d)
	}
	tellModified(ch, c, next)
	return nil
}
