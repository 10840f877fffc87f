package storage

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/garbage"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/multikey"
	"github.com/ebbdb/ebb/internal/storage/walk"
)

// formatVersion is that of what package layout writes and of the catalogue's documents; docs/storage-format.md
// tells what each changed.
const formatVersion = 4

// oldestFormat is the oldest version that is read. What its catalogue lacks has a meaning where it is read, so that a
// store is brought up to date by writing the new number; upgrade does the rest.
const oldestFormat = 1

// load publishes the stored catalogue and returns what is to be removed.
func (s *Store) load(ctx context.Context) ([]garbage.Item, error) {
	if err := s.checkFormat(ctx); err != nil {
		return nil, err
	}
	if !s.options.Follows {
		if err := s.settleCompactions(ctx); err != nil {
			return nil, err
		}
	}
	snapshot, err := s.engine.Snapshot()
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	if s.ddl.nextCollection, s.ddl.nextIndex, err = readNext(snapshot); err != nil {
		return nil, err
	}
	if err := s.readTimes(snapshot); err != nil {
		return nil, err
	}
	c, err := s.readCatalog(snapshot)
	if err != nil {
		return nil, err
	}
	bits, err := multikey.Read(snapshot)
	if err != nil {
		return nil, err
	}
	empty := &version{catalog: catalog.New()}
	s.current.Store(empty.next(c, false, func(d *index.Definition) *multikey.Index { return bits[d.ID].InMemory(d) }))
	if err := s.readMarked(snapshot); err != nil {
		return nil, err
	}
	left, err := garbage.Read(snapshot)
	if err != nil {
		return nil, err
	}
	return left, checkGarbage(c, left)
}

func (s *Store) checkFormat(ctx context.Context) error {
	t, err := s.engine.Begin()
	if err != nil {
		return err
	}
	value, err := t.Get(layout.FormatKey())
	switch {
	case s.options.Follows && (err != nil || !bytes.Equal(value, formatValue())):
		err = errors.Join(errors.New("a store that follows has the format of the one that it follows, from its first commits"), err)
	case errors.Is(err, kv.ErrNotFound):
		if err := s.checkEmpty(t); err != nil {
			t.Rollback()
			return err
		}
		return writeFormat(ctx, t)
	case err == nil && len(value) != 4:
		err = fmt.Errorf("the format version has %d bytes, want 4", len(value))
	case err == nil:
		v := binary.BigEndian.Uint32(value)
		if v >= oldestFormat && v < formatVersion {
			return writeFormat(ctx, t)
		}
		if v != formatVersion {
			err = fmt.Errorf("the store has format %d and this Ebb reads format %d: use the Ebb that wrote it, or a newer one", v, formatVersion)
		}
	}
	t.Rollback()
	return err
}

// checkEmpty: the format is the first thing that is written. A store that has none holds nothing, or has lost it with more.
func (s *Store) checkEmpty(t kv.Txn) error {
	it, err := t.NewIter(kv.IterOptions{})
	if err != nil {
		return err
	}
	found := it.First()
	if err := errors.Join(it.Err(), it.Close()); err != nil {
		return err
	}
	if tables := s.engine.Stats().TablesFound; found || tables > 0 {
		return kv.Damaged(fmt.Errorf("the store is damaged: the key of its format is missing, and there are other keys or tables (%d). Nothing was changed", tables))
	}
	return nil
}

func writeFormat(ctx context.Context, t kv.Txn) error {
	t.Set(layout.FormatKey(), formatValue())
	return t.Commit(ctx, kv.Synced)
}

func formatValue() []byte { return binary.BigEndian.AppendUint32(nil, formatVersion) }

// readNext reads the first free numbers of a collection and of an index.
func readNext(r kv.Reader) (collection, index uint32, err error) {
	value, err := r.Get(layout.NextKey())
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return 1, 1, nil
	case err != nil:
		return 0, 0, err
	case len(value) != 8:
		return 0, 0, fmt.Errorf("the next numbers have %d bytes, want 8", len(value))
	}
	return binary.BigEndian.Uint32(value), binary.BigEndian.Uint32(value[4:]), nil
}

func nextValue(collection, index uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, collection), index)
}

func (s *Store) readCatalog(r kv.Reader) (*catalog.Catalog, error) {
	c := catalog.New()
	err := walk.Meta(r, layout.MetaCollection, func(key, value []byte) error {
		coll, err := catalog.Load(bson.Doc(value).Clone(), s.options.Indexes)
		if err != nil {
			return err
		}
		if c.Collection(coll.NS) != nil {
			return fmt.Errorf("two collections are called %s", coll.NS)
		}
		c = c.With(coll)
		return nil
	})
	return c, err
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
			c.state.marked.set()
		}
		return nil
	})
}
