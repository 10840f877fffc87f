package raftlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/cockroachdb/pebble/v2"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// anyNumber is no Commit's.
const anyNumber = math.MaxUint64

// foundStored takes note of the number of the last Commit that the store has, and returns where the log has that: 0 where nobody can tell. What a store has
// applied was in its member's log before; so a log that ends earlier has lost its end, or is an older one. A store that came as a snapshot may be younger than
// the log behind it.
func (d *Disk) foundStored(number uint64) (index uint64, err error) {
	if d.arrived == anyNumber {
		d.arrived = number
		b := d.db.NewBatch()
		must(b.Set(keyArrived, binary.BigEndian.AppendUint64(nil, number), nil))
		if err := d.commit(b, true); err != nil {
			return 0, err
		}
	}
	index, last, err := d.find(number)
	if err == nil && last > 0 && last < number && number > d.arrived {
		err = fmt.Errorf("raftlog: the store has commit %d, and the log of the replica set ends with commit %d: the log has lost its end, or the two are not of the same time. %s", number, last, startAnew)
	}
	return index, err
}

// find is where the log has the Commit with a number, 0 where it does not, and the last number that it has, 0 where it has none that is as old as that.
func (d *Disk) find(number uint64) (index, last uint64, err error) {
	it, err := d.db.NewIter(&pebble.IterOptions{LowerBound: entryKey(d.base.index + 1), UpperBound: []byte{entryPrefix + 1}})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.Last(); ok; ok = it.Prev() {
		e := &pb.Entry{}
		if err := proto.Unmarshal(it.Value(), e); err != nil {
			return 0, 0, fmt.Errorf("raftlog: read entry %x: %w", it.Key(), err)
		}
		if e.GetType() != pb.EntryNormal {
			continue
		}
		commit, _, err := readEntry(e.GetData())
		if err != nil {
			return 0, 0, err
		}
		if commit == nil {
			continue
		}
		n := (Entry{Commit: commit}).number()
		if last = max(last, n); n <= number {
			if n == number {
				index = e.GetIndex()
			}
			return index, last, nil
		}
	}
	return 0, last, it.Error()
}
