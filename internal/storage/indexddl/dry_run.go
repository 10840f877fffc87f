package indexddl

import (
	"context"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/ttlchange"
)

// DryRun is what CreateIndexes or Modify would do. What was asked is what was committed when it was looked at: others
// write meanwhile.
type DryRun struct {
	// Of is the collection as it was looked at, nil when there is none.
	Of *catalog.Collection
	// Next is what it would become; nil where there is none.
	Next *catalog.Collection
	// Made is what CreateIndexes would report.
	Made     Created
	Expiring ttlchange.Effect
}

// DryRunIndexes is CreateIndexes that changes nothing: it fails as that would and says what would expire at now. When
// thorough, the documents are looked at for what would make the build fail.
func (d *DDL) DryRunIndexes(ctx context.Context, ns namespace.NS, now int64, parse func(*catalog.Collection) ([]*index.Definition, error), thorough bool) (DryRun, error) {
	for {
		c, ok := d.store.CollectionNamed(ns)
		if !ok {
			return d.dryRunFirst(ns, parse)
		}
		p, err := planIndexes(c.Collection, c.Builds(), parse)
		if err != nil {
			return DryRun{}, err
		}
		if p.busy == nil {
			return d.dryRun(ctx, c, now, p, thorough)
		}
		if err := p.busy.Wait(ctx); err != nil {
			return DryRun{}, err
		}
	}
}

// dryRunFirst is for a collection that would be made.
func (d *DDL) dryRunFirst(ns namespace.NS, parse func(*catalog.Collection) ([]*index.Definition, error)) (h DryRun, err error) {
	coll := &catalog.Collection{NS: ns, Options: catalog.ReadOptions(nil)}
	if _, err := parse(coll); err != nil {
		return h, err
	}
	if err := d.store.Catalog().CheckCreate(ns); err != nil {
		return h, err
	}
	first, err := d.store.IDIndex(coll)
	if err != nil {
		return h, err
	}
	coll.Indexes = []*index.Definition{first}
	p, err := planIndexes(coll, nil, parse)
	if err != nil {
		return h, err
	}
	h.Made = p.made(coll)
	h.Made.Collection = true
	h.Expiring.TTLs = ttlchange.ChangedOf(coll.ExpiryRules(), p.Next(coll).ExpiryRules())
	return h, nil
}

// made is what would be reported of the plan.
func (p *indexPlan) made(c *catalog.Collection) (made Created) {
	p.report(c, &made)
	made.Indexes, made.Retimed = p.Added, p.Retimed
	return made
}

func (d *DDL) dryRun(ctx context.Context, c storage.Collection, now int64, p indexPlan, thorough bool) (DryRun, error) {
	h := DryRun{Of: c.Collection, Next: p.Next(c.Collection), Made: p.made(c.Collection)}
	var build []*index.Definition
	if thorough {
		build = p.Added
	}
	var err error
	h.Expiring, err = d.dryRunOn(ctx, c, now, h.Next, build)
	if err != nil && len(build) > 0 && ctx.Err() == nil {
		err = failedBuild(catalog.NewUUID(), c.Collection, err)
	}
	return h, err
}

// DryRunModify is Modify that changes nothing: it fails as that would and says what would expire at now. Documents that
// are in the way of an index that becomes unique are found by query.Engine.Duplicates.
func (d *DDL) DryRunModify(ctx context.Context, ns namespace.NS, now int64, modify func(*catalog.Collection) (*catalog.Collection, error)) (DryRun, error) {
	c, ok := d.store.CollectionNamed(ns)
	if !ok {
		return DryRun{}, notFound(ns)
	}
	if err := c.RefuseWhileBuilding(); err != nil {
		return DryRun{}, err
	}
	next, err := modify(c.Collection)
	if err != nil || next.IsView() {
		return DryRun{Of: c.Collection}, err
	}
	e, err := d.dryRunOn(ctx, c, now, next, nil)
	return DryRun{Of: c.Collection, Next: next, Expiring: e}, err
}

// DryRunDrop is DropIndexes that changes nothing: it fails as that would and says what would be deleted at now.
func (d *DDL) DryRunDrop(ctx context.Context, ns namespace.NS, now int64, pick func(*catalog.Collection) ([]*index.Definition, error)) (h DryRun, before int, err error) {
	c, ok := d.store.CollectionNamed(ns)
	if !ok {
		return h, 0, notFound(ns)
	}
	p, err := planDrop(c, pick)
	if err != nil {
		return h, 0, err
	}
	h.Of, h.Next = c.Collection, p.next
	h.Expiring, err = d.dryRunOn(ctx, c, now, p.next, nil)
	return h, p.before, err
}

// dryRunOn says what expires when c becomes next, and fails as the build of the indexes given would.
func (d *DDL) dryRunOn(ctx context.Context, c storage.Collection, now int64, next *catalog.Collection, build []*index.Definition) (e ttlchange.Effect, err error) {
	v, err := d.store.ViewAt(ctx, now)
	if err != nil {
		return e, err
	}
	defer v.Close()
	r, ok := v.CollectionByID(c.ID)
	if !ok {
		return e, notFound(c.NS)
	}
	before, after := r.BeforeChange(), next.ExpiryRules()
	defer func() {
		if err != nil {
			return
		}
		if err = before.AddHidden(&e, after); err == nil && e.Hidden > 0 {
			e.Held = r.Handle().Held()
		}
	}()
	if len(build) == 0 {
		return before.Expiring(after, nil)
	}
	b := d.newBuilder(ctx, c, build)
	defer b.close()
	if e, err = before.Expiring(after, b.work.Try); err == nil {
		err = b.work.TryUnique()
	}
	return e, err
}

func notFound(ns namespace.NS) error {
	return mongoerr.New(mongoerr.NamespaceNotFound, "ns not found: %s", ns)
}

func isView(ns namespace.NS) error {
	return mongoerr.New(mongoerr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns)
}
