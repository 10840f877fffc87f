package ownership

import (
	"context"
	"errors"
	"slices"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/meaning"
)

// Ownership keeps those apart who write the same data: goroutines of one process or, where an engine has several, processes. Each
// process is told of every Commit before it can be seen there (kv.Observer); who is given a lock has been told of all that was
// committed by those who held it before.
type Ownership interface {
	// Catalog is held exclusively by who changes the catalogue: the one in memory is the stored one then. Nobody waits for the
	// lock of a collection while holding it.
	Catalog() Lock
	// Collection is what there is of one collection. A store asks once for each that it learns of.
	Collection(number uint32) Collection
	// Latches keep apart operations that have conflicted. They spare tries; claims in the engine decide.
	Latches() Latches
}

// Collection is what there is to agree about in one collection.
type Collection interface {
	// Changing is held exclusively by who changes what the collection is, from before Writing on. So writers may be let in
	// between, and nobody else changes it.
	Changing() Lock
	// Writing is held shared by who writes documents, until the commit, and exclusively by who changes what the collection is or
	// relies on an order of its records. A transaction of several statements lasts on it from its first write to its end, and holds it
	// shared only while a statement writes and while it commits. Who deletes ranges sweeps: then nobody writes or commits.
	Writing() Lock

	// NextNumber is a number that no record has had, nor will have but the one that it is for. Who holds Writing alone gets
	// a higher one than all who held it before. reserved says that the highest cannot be found from the records, since they lie
	// by their dates.
	NextNumber(reserved bool) (uint64, error)
	// SecureNumbers notes in the store, unless that is done, that all numbers up to the last are in use: before the record with the
	// highest goes to where it is not found.
	SecureNumbers() error
	// LastNumber is the highest that any record has, or may have. While Writing is held alone all that are given out later,
	// to whomever, are higher.
	LastNumber() (uint64, error)

	// IsNew notes that a key is about to be put into the index on _id, and says whether it is known not to be there, nor
	// to be put there by another. Who is told false looks.
	IsNew(key []byte, in Index) (bool, error)

	// Follow takes note of what a Commit says of the collection, before it can be seen.
	Follow(change *meaning.Change)
}

// Index is the index on _id as a writer sees it.
type Index interface {
	// Largest is its largest key, nil where there is none. It is the caller's.
	Largest() ([]byte, error)
}

// Lock is held shared by many or exclusively by one. Whoever came first is served first, so neither kind starves the other.
type Lock interface {
	// Acquire waits for the lock until ctx ends.
	Acquire(ctx context.Context, mode Mode) error
	// Try takes it when that needs no waiting.
	Try(mode Mode) bool
	// Release gives it back.
	Release(mode Mode)
	// IsLasting says whether anybody lasts on it, for whose end who wants it exclusively would wait.
	IsLasting() bool
}

// Mode is how a Lock is held.
type Mode uint8

const (
	// Shared is beside others who hold it shared.
	Shared Mode = iota
	// Exclusive is alone.
	Exclusive
	// Lasting keeps out who wants it exclusively, and nobody else: for long.
	Lasting
	// Statement is Shared for one who lasts on it.
	Statement
	// Sweeping is alone, but for those who last on it.
	Sweeping
	// Modes is how many there are.
	Modes
)

// ModeOf is Exclusive or Shared.
func ModeOf(exclusive bool) Mode {
	if exclusive {
		return Exclusive
	}
	return Shared
}

// Latches are locks of keys, several keys to a lock. Each operation holds those of the keys that it claimed while it tries again.
type Latches interface {
	// Of is the latch of a key.
	Of(key []byte) Stripes
	// Acquire takes some, in an order in which no two operations wait for each other.
	Acquire(ctx context.Context, set Stripes) error
	// Release gives them back.
	Release(set Stripes)
}

// Stripes is a set of latches.
type Stripes uint64

// errShared says what would have to be there. docs/architecture.md tells it at more length ("Where to add a second engine").
var errShared = errors.New("other processes may write to the engine's store, and nothing keeps them apart: there are no locks of " +
	"collections and of the catalogue, no numbers of records and no new _ids that hold between processes, and index builds, time that " +
	"stands still while a TTL gets longer, the removal of garbage and timestamps of the oplog are known to one process only")

// Of is the Ownership over an engine: all is this process's own. An engine that others write as well is refused.
func Of(e kv.Engine) (Ownership, error) {
	if !e.Capabilities().SoleWriter {
		return nil, errShared
	}
	return &sole{engine: e, latches: newLatches()}, nil
}

// AcquireAll takes locks exclusively, one after the other, or none. release gives them back, the last first.
func AcquireAll(ctx context.Context, locks []Lock) (release func(), err error) {
	for i, l := range locks {
		if err := l.Acquire(ctx, Exclusive); err != nil {
			releaseAll(locks[:i])
			return nil, err
		}
	}
	return func() { releaseAll(locks) }, nil
}

func releaseAll(locks []Lock) {
	for _, l := range slices.Backward(locks) {
		l.Release(Exclusive)
	}
}
