package storage

import (
	"context"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/expiry"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/garbage"
	"github.com/ebbdb/ebb/internal/storage/header"
	"github.com/ebbdb/ebb/internal/storage/multikey"
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
	if err := s.readTombstoned(snapshot); err != nil {
		return nil, err
	}
	left, err := garbage.Read(snapshot)
	if err != nil {
		return nil, err
	}
	return left, garbage.Check(left, c)
}

// readTombstoned notes which collections have been swept and not vacuumed.
func (s *Store) readTombstoned(r kv.Reader) error {
	return expiryorder.EachTombstones(r, func(collection uint32) {
		if c := s.current.Load().collections[collection]; c != nil {
			c.state.tombstones.Set()
		}
	})
}
