package indexddl

import (
	"context"
	"errors"
	"slices"

	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/catalogchange"
	"github.com/ebbdb/ebb/internal/storage/ttlchange"
)

// Upgrade builds the indexes anew whose entries are not in the form of today: those that an older Ebb kept otherwise, and
// those of kinds that it could only define. It runs before anybody else reads or writes. One that the documents do not
// fit into stays without entries, as it was: no plan uses it, and the next start tries again.
func (d *DDL) Upgrade(ctx context.Context) error {
	for _, entry := range d.store.Catalog().All() {
		for _, old := range entry.Indexes {
			if old.Form == old.FormToday() {
				continue
			}
			c, _ := d.store.CollectionByID(entry.ID)
			err := d.upgradeIndex(ctx, c, old)
			if refused := new(mongoerr.Error); errors.As(err, &refused) {
				d.options.Logger.Warn("an index of an older format could not be built and is not used; drop it, or change the documents in its way",
					"namespace", entry.NS.String(), "index", old.Name, "error", err)
				continue
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *DDL) upgradeIndex(ctx context.Context, c storage.Collection, old *index.Definition) error {
	d.options.Logger.Info("build an index of an older format anew", "namespace", c.NS.String(), "index", old.Name)
	return d.changeBuilt(ctx, c, []*index.Definition{old}, d.Begin(ttlchange.OnHidden{}), func(ch *catalogchange.Change, defs []*index.Definition) error {
		next := c.WithIndexes(slices.Clone(c.Indexes))
		i := slices.IndexFunc(next.Indexes, func(e *index.Definition) bool { return e.ID == old.ID })
		next.Indexes[i] = defs[0]
		if err := ch.Put(next); err != nil {
			return err
		}
		dropGone(ch, c.Collection, next)
		return nil
	})
}
