package expiry

import (
	"cmp"
	"context"
	"slices"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/walk"
)

// Round is how far the removal of a collection's dead entries has come. It goes through all indexes, in the order of their numbers.
type Round struct {
	Begun []byte // the tombstones when the round began; nil between rounds
	Index uint32 // where it is
	After []byte // the last key that was looked at; nil for the beginning
	Dense bool   // many of the entries that were looked at last are dead
	// Spared says that some that are dead were left, since an open transaction is about to take their keys.
	Spared bool
}

// Clone is r with a key of its own.
func (r Round) Clone() Round {
	r.After = slices.Clone(r.After)
	return r
}

const (
	// DenseShare: where at least one entry in so many is dead, stretches are written anew.
	DenseShare = 4
	// looksPerEntry is how many entries are looked at for each that may be removed.
	looksPerEntry = 8
)

// Vacuum removes dead entries of a collection's indexes in one transaction.
type Vacuum struct {
	Ctx        context.Context
	Snapshot   kv.Reader // of the transaction
	Tables     []Table
	Tombstones expiryorder.Tombstones
	Txn        VacuumTxn
	By         Means
	// Few is how many entries are better deleted one by one.
	Few int64
}

// Means is how a Vacuum removes entries.
type Means uint8

const (
	// OneByOne deletes each dead entry.
	OneByOne Means = iota
	// Stretches deletes a stretch with all that is in it and writes the living again. This and Runs are for one beside whom nobody writes.
	Stretches
	// Runs deletes stretches in which no entry is alive, and single entries where those are short.
	Runs
)

// leastRun is how many dead entries beside each other are better deleted as a range.
const leastRun = 32

// VacuumTxn takes what a Vacuum writes.
type VacuumTxn interface {
	Claim(key []byte)
	// IsSpared says whether an open transaction has taken the key, so that its entry stays for now.
	IsSpared(key []byte) bool
	Set(key, value []byte)
	Delete(key []byte)
	DeleteRange(low, high []byte)
	// Removed takes note that so many entries of an index go.
	Removed(index uint32, n int)
}

// work is what is left to do in one transaction: entries to look at and to remove.
type work struct {
	looks, limit, removed int
}

func (l *work) isDone() bool { return l.looks <= 0 || l.removed >= l.limit }

// Remove removes at most limit entries and goes on where the round is. more is false when the round through all indexes has left
// none: then the tombstones go, in the same transaction. Where the round has Spared some there is more when an open transaction has ended.
func (v *Vacuum) Remove(at *Round, limit int) (removed int, more bool, err error) {
	if len(v.Tombstones) == 0 {
		*at = Round{}
		return 0, false, nil
	}
	if at.Begun == nil {
		*at = Round{Begun: v.Tombstones.Encode()}
	}
	remove := v.oneByOne
	if v.By != OneByOne {
		remove = v.stretch
	}
	left := work{looks: limit * looksPerEntry, limit: limit}
	for _, t := range v.byNumber() {
		if t.ID < at.Index {
			continue
		}
		if t.ID > at.Index {
			at.Index, at.After = t.ID, nil
		}
		ended, err := remove(t, at, &left)
		if err != nil || !ended {
			return left.removed, true, err
		}
	}
	all := string(v.Tombstones.Encode()) == string(at.Begun) && !at.Spared
	*at = Round{Dense: at.Dense, Spared: at.Spared}
	return left.removed, !all, nil
}

// byNumber are the indexes in the order of their numbers, which one that was built anew is not in.
func (v *Vacuum) byNumber() []Table {
	return slices.SortedFunc(slices.Values(v.Tables), func(a, b Table) int { return cmp.Compare(a.ID, b.ID) })
}

// Behind is where the entries of an index behind a key begin, or where all do when it is nil.
func Behind(t layout.Entries, key []byte) []byte {
	if key == nil {
		return layout.TableKey(nil, t.Definition)
	}
	return append(slices.Clone(key), 0)
}

// openBehind opens a walk over an index behind the last key that was looked at.
func openBehind(ctx context.Context, r kv.Reader, w *walk.Keys, t layout.Entries, at *Round) error {
	return w.Open(ctx, r, kv.IterOptions{Lower: Behind(t, at.After), Upper: layout.After(layout.TableKey(nil, t.Definition))}, false, nil)
}

// oneByOne has come to the end of the index when it has ended.
func (v *Vacuum) oneByOne(t Table, at *Round, left *work) (ended bool, err error) {
	var w walk.Keys
	if err := openBehind(v.Ctx, v.Snapshot, &w, t.Entries, at); err != nil {
		return false, err
	}
	defer w.Close()
	var room layout.IDRoom
	looked, removed := 0, 0
	for !left.isDone() && w.Next() {
		left.looks--
		looked++
		key := w.Key()
		at.After = append(at.After[:0], key...)
		dead, _, err := isDead(t.Entries, &w, v.Tombstones, &room)
		if err != nil {
			return false, err
		}
		if !dead {
			continue
		}
		if t.HoldsIDs() { // whoever takes the key overwrites the entry
			if v.Txn.IsSpared(key) {
				at.Spared = true
				continue
			}
			v.Txn.Claim(key)
		}
		v.Txn.Delete(key)
		left.removed++
		removed++
	}
	v.Txn.Removed(t.ID, removed)
	at.Dense = removed >= looked/DenseShare && int64(removed) >= v.Few
	return !left.isDone() && w.Err() == nil, w.Err()
}

// isDead says whether the entry that the walk stands on is; value is its value.
func isDead(e layout.Entries, w *walk.Keys, dead expiryorder.Tombstones, room *layout.IDRoom) (is bool, value []byte, err error) {
	if value, err = w.Value(); err != nil {
		return false, nil, err
	}
	id, err := e.EntryID(w.Key(), value, room)
	return err == nil && dead.Cover(id), value, err
}

// stretch looks at no more entries than it may remove.
func (v *Vacuum) stretch(t Table, at *Round, left *work) (ended bool, err error) {
	var w walk.Keys
	low := Behind(t.Entries, at.After)
	if err := openBehind(v.Ctx, v.Snapshot, &w, t.Entries, at); err != nil {
		return false, err
	}
	defer w.Close()
	var room layout.IDRoom
	looked, removed := 0, 0
	run := run{low: low}
	for left.looks = min(left.looks, left.limit); left.looks > 0 && w.Next(); left.looks-- {
		looked++
		dead, value, err := isDead(t.Entries, &w, v.Tombstones, &room)
		if err != nil {
			return false, err
		}
		at.After = append(at.After[:0], w.Key()...)
		switch {
		case dead:
			removed++
			run.add(at.After)
		case v.By == Runs:
			run.end(v.Txn)
			run.low = Behind(t.Entries, at.After)
		default:
			v.Txn.Set(at.After, value)
		}
	}
	switch {
	case v.By == Runs:
		run.end(v.Txn)
	case removed > 0: // before all that is set, in whatever order
		v.Txn.DeleteRange(low, Behind(t.Entries, at.After))
	}
	v.Txn.Removed(t.ID, removed)
	left.removed += removed
	at.Dense = removed >= looked/DenseShare
	return left.looks > 0 && w.Err() == nil, w.Err()
}

// run is dead entries beside each other: behind the living one before them, so that the ranges of runs that follow one another have nothing between them.
type run struct {
	low  []byte
	keys [][]byte
}

func (r *run) add(key []byte) { r.keys = append(r.keys, slices.Clone(key)) }

// end deletes them.
func (r *run) end(txn VacuumTxn) {
	if n := len(r.keys); n >= leastRun {
		txn.DeleteRange(r.low, append(r.keys[n-1], 0))
	} else {
		for _, key := range r.keys {
			txn.Delete(key)
		}
	}
	r.keys = r.keys[:0]
}
