package storage

import (
	"context"
	"errors"
	"slices"

	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// upgrade builds the indexes anew whose entries are not in the form of today: those that an older Ebb kept otherwise, and
// those of kinds that it could only define. It runs before anybody else reads or writes. One that the documents do not
// fit into stays without entries, as it was: no plan uses it, and the next start tries again.
func (s *Store) upgrade(ctx context.Context) error {
	for _, entry := range s.current.Load().catalog.All() {
		for _, d := range entry.Indexes {
			if d.Form == d.Kind.Form() {
				continue
			}
			err := s.upgradeIndex(ctx, entry.ID, d)
			if refused := new(mongoerr.Error); errors.As(err, &refused) {
				s.options.Logger.Warn("an index of an older format could not be built and is not used; drop it, or change the documents in its way",
					"namespace", entry.NS.String(), "index", d.Name, "error", err)
				continue
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Store) upgradeIndex(ctx context.Context, collection uint32, d *index.Definition) error {
	c := s.current.Load().collections[collection]
	s.options.Logger.Info("build an index of an older format anew", "namespace", c.NS.String(), "index", d.Name)
	b, err := s.build(ctx, c, []*index.Definition{d}, OnHidden{})
	if err != nil {
		return err
	}
	defer b.close()
	err = s.change(ctx, func(ch *change) error {
		defs, err := b.finish(ch)
		if err != nil {
			return err
		}
		next := c.WithIndexes(slices.Clone(c.Indexes))
		i := slices.IndexFunc(next.Indexes, func(e *index.Definition) bool { return e.ID == d.ID })
		next.Indexes[i] = defs[0]
		if err := ch.put(next); err != nil {
			return err
		}
		ch.dropGone(c.Collection, next)
		return nil
	})
	if err != nil {
		b.abandon()
	}
	return err
}
