package tikvkv

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tikv/client-go/v2/txnkv/transaction"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/rangetombstone"
)

// tombstone is where one is stored that begins with a stored key.
func (k keyspace) tombstone(start []byte) []byte {
	return append(k.in(rangeArea), start[len(k.first):]...)
}

// What is stored of a tombstone: the number, whether something was written in its range, and where it ends as a stored key without what all begin with.
const (
	tombstoneHead = 8 + 1
	notWritten    = 0
	isWritten     = 1
)

func (k keyspace) encodeTombstone(t rangetombstone.Tombstone) []byte {
	written := byte(notWritten)
	if t.Written {
		written = isWritten
	}
	return append(append(binary.BigEndian.AppendUint64(nil, t.Number), written), t.End[len(k.root):]...)
}

func (k keyspace) decodeTombstone(key, stored []byte) (rangetombstone.Tombstone, error) {
	if len(stored) <= tombstoneHead || stored[8] > isWritten {
		return rangetombstone.Tombstone{}, kv.Damaged(fmt.Errorf("tikvkv: a range tombstone is stored as %x", stored))
	}
	start := append(append([]byte{}, k.first...), key[len(k.root)+1:]...)
	end := append(append([]byte{}, k.root...), stored[tombstoneHead:]...)
	return rangetombstone.Tombstone{Range: kv.Range{Start: start, End: end}, Number: binary.BigEndian.Uint64(stored), Written: stored[8] == isWritten}, nil
}

// putTombstones writes what makes one set of another.
func (k keyspace) putTombstones(t *transaction.KVTxn, before, after *rangetombstone.Set) (err error) {
	put, gone := after.Changes(before)
	for _, start := range gone {
		err = errors.Join(err, t.Delete(k.tombstone(start)))
	}
	for _, one := range put {
		err = errors.Join(err, t.Set(k.tombstone(one.Start), k.encodeTombstone(one)))
	}
	return err
}

// readTombstones are those that are stored.
func (r *reads) readTombstones() (*rangetombstone.Set, error) {
	stored := r.store.GetSnapshot(r.views.time())
	stored.SetScanBatchSize(maxBatch)
	scan, err := stored.Iter(r.space.in(rangeArea), r.space.in(rangeArea+1))
	var all []rangetombstone.Tombstone
	for ; err == nil && scan.Valid(); err = scan.Next() {
		one, err := r.space.decodeTombstone(scan.Key(), scan.Value())
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	if err != nil {
		return nil, reading("look for range tombstones", err)
	}
	return rangetombstone.SetOf(all), nil
}
