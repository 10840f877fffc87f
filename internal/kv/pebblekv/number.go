package pebblekv

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/ebbdb/ebb/internal/kv"
)

// The number and the time of the youngest Commit are stored with it under Options.CommitKey, so that whoever opens the store
// goes on behind them.

const numberLength = 8 + 8

// setNumber adds what a batch has to say of its Commit.
func (c *committer) setNumber(b *pebble.Batch, t *kv.Commit) {
	if c.commitKey == nil {
		return
	}
	op := b.SetDeferred(len(c.commitKey), numberLength)
	copy(op.Key, c.commitKey)
	appendNumber(op.Value[:0], t)
	must(op.Finish())
}

// appendNumber appends what is stored under the key.
func appendNumber(dst []byte, t *kv.Commit) []byte {
	dst = binary.BigEndian.AppendUint64(dst, t.Number)
	return binary.BigEndian.AppendUint64(dst, uint64(t.Time))
}

// readNumber is what the last Commit of a store has said; zeros where there was none.
func readNumber(db *pebble.DB, key []byte) (number uint64, millis int64, err error) {
	if key == nil {
		return 0, 0, nil
	}
	value, closer, err := find(db, key)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return 0, 0, nil
	case err != nil:
		return 0, 0, err
	case len(value) != numberLength:
		return 0, 0, errors.Join(fmt.Errorf("pebblekv: the number of the last commit has %d bytes, want %d", len(value), numberLength), closer.Close())
	}
	number, millis = binary.BigEndian.Uint64(value), int64(binary.BigEndian.Uint64(value[8:]))
	return number, millis, done(closer)
}
