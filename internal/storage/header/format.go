package header

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// Version is the newest format of what package layout writes and of the catalogue's documents; docs/storage-format.md tells what
// each changed. It is that of a store with an oplog: who does not know of it would write past it. A store without any has Plain.
const (
	Version = 7
	Plain   = 5
)

// oldestFormat is the oldest version that is read. What its catalogue lacks has a meaning where it is read, so that a
// store is brought up to date by writing the new number; the store builds anew what has another form.
const oldestFormat = 1

// CheckFormat refuses a store of a format that is not known, gives an older one the number of today, and an empty store its first. One
// that follows another has its format from that.
func CheckFormat(ctx context.Context, engine kv.Engine, follows bool) error {
	t, err := engine.Begin()
	if err != nil {
		return err
	}
	value, err := t.Get(layout.FormatKey())
	switch {
	case follows && (err != nil || !bytes.Equal(value, formatValue(Plain)) && !bytes.Equal(value, formatValue(Version))):
		err = errors.Join(errors.New("a store that follows has the format of the one that it follows, from its first commits"), err)
	case errors.Is(err, kv.ErrNotFound):
		if err := checkEmpty(engine, t); err != nil {
			t.Rollback()
			return err
		}
		return writeFormat(ctx, t, Plain)
	case err == nil && len(value) != 4:
		err = fmt.Errorf("the format version has %d bytes, want 4", len(value))
	case err == nil:
		v := binary.BigEndian.Uint32(value)
		if v >= oldestFormat && v < Plain {
			return writeFormat(ctx, t, Plain)
		}
		if v < oldestFormat || v > Version {
			err = fmt.Errorf("the store has format %d and this Ebb reads format %d: use the Ebb that wrote it, or a newer one", v, Version)
		}
	}
	t.Rollback()
	return err
}

// checkEmpty: the format is the first thing that is written. A store that has none holds nothing, or has lost it with more.
func checkEmpty(engine kv.Engine, t kv.Txn) error {
	it, err := t.NewIter(kv.IterOptions{})
	if err != nil {
		return err
	}
	found := it.First()
	if err := errors.Join(it.Err(), it.Close()); err != nil {
		return err
	}
	if tables := engine.Stats().TablesFound; found || tables > 0 {
		return kv.Damaged(fmt.Errorf("the store is damaged: the key of its format is missing, and there are other keys or tables (%d). Nothing was changed", tables))
	}
	return nil
}

func writeFormat(ctx context.Context, t kv.Txn, version uint32) error {
	t.Set(layout.FormatKey(), formatValue(version))
	return t.Commit(ctx, kv.Synced)
}

func formatValue(version uint32) []byte { return binary.BigEndian.AppendUint32(nil, version) }

// SetOplog gives the store the format of one with an oplog, in the transaction that makes it.
func SetOplog(t kv.Txn) { t.Set(layout.FormatKey(), formatValue(Version)) }

// RaiseForOplog gives a store that has an oplog that format, unless it has it.
func RaiseForOplog(ctx context.Context, engine kv.Engine) error {
	t, err := engine.Begin()
	if err != nil {
		return err
	}
	value, err := t.Get(layout.FormatKey())
	if err != nil || bytes.Equal(value, formatValue(Version)) {
		t.Rollback()
		return err
	}
	return writeFormat(ctx, t, Version)
}
