package storage

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/expiry"
	"github.com/ebbdb/ebb/internal/storage/garbage"
	"github.com/ebbdb/ebb/internal/storage/header"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/multikey"
	"github.com/ebbdb/ebb/internal/storage/walk"
)

// load publishes the stored catalogue and returns what is to be removed.
func (s *Store) load(ctx context.Context) ([]garbage.Item, error) {
	if err := header.CheckFormat(ctx, s.engine, s.options.Follows); err != nil {
		return nil, err
	}
	if !s.options.Follows {
		if err := expiry.SettleCompactions(ctx, s.engine); err != nil {
			return nil, err
		}
	}
	snapshot, err := s.engine.Snapshot()
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	if _, err := header.ReadNumbers(snapshot); err != nil { // rather now than at the first change
		return nil, err
	}
	seen, hold, err := header.ReadTimes(snapshot)
	if err != nil {
		return nil, err
	}
	s.seen = seen
	s.expiryClock.Hold(hold)
	c, err := header.ReadCatalog(snapshot, s.options.Indexes)
	if err != nil {
		return nil, err
	}
	bits, err := multikey.Read(snapshot)
	if err != nil {
		return nil, err
	}
	empty := &version{own: s.own, catalog: catalog.New()}
	s.current.Store(empty.next(c, false, func(d *index.Definition) *multikey.Index { return bits[d.ID].InMemory(d) }))
	if err := s.readLog(snapshot, s.current.Load()); err != nil {
		return nil, err
	}
	if s.current.Load().oplog != nil && !s.options.Follows {
		if err := header.RaiseForOplog(ctx, s.engine); err != nil {
			return nil, err
		}
	}
	if err := s.readMarked(snapshot); err != nil {
		return nil, err
	}
	left, err := garbage.Read(snapshot)
	if err != nil {
		return nil, err
	}
	return left, checkGarbage(c, left)
}

// checkGarbage makes sure that nothing is removed that is in use.
func checkGarbage(c *catalog.Catalog, left []garbage.Item) error {
	used := map[garbage.Item]bool{}
	for _, coll := range c.All() {
		used[garbage.OfCollection(coll.ID)] = true
		for _, d := range coll.Indexes {
			used[garbage.OfIndex(d.ID)] = true
		}
	}
	for _, g := range left {
		if used[g] {
			return fmt.Errorf("%s is noted as garbage and is in the catalogue", g)
		}
	}
	return nil
}

// readMarked notes which collections have been swept and not cleaned.
func (s *Store) readMarked(r kv.Reader) error {
	return walk.Meta(r, layout.MetaTombstones, func(key, _ []byte) error {
		if len(key) != 4 {
			return fmt.Errorf("a tombstone of sweeps has the key %x", key)
		}
		if c := s.current.Load().collections[binary.BigEndian.Uint32(key)]; c != nil {
			c.state.tombstones.Set()
		}
		return nil
	})
}
