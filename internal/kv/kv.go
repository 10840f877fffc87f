// Package kv is the contract of an ordered, transactional key-value engine: what storage needs and nothing an engine
// could not give on one machine or on many. It knows nothing of documents, indexes or time.
//
// # Reading
//
// A Snapshot is one consistent view. Close it soon: a long-lived one keeps dead data from being reclaimed. Keys and
// values that a Reader or Iterator returns are valid until its next call or Close; copy what must live longer.
//
// # Writing
//
// A Txn reads its snapshot overlaid with its own writes. Writes themselves never conflict; claims do: a commit fails with
// ErrConflict when another transaction that claimed the same key has committed since this one's snapshot. What must be
// unique or must not be overwritten unseen is claimed; a fresh key (a new record id) need not be. ErrConflict leaves
// nothing behind and may be retried. ErrUndetermined means that the engine cannot say whether the commit happened. Where
// that is a Late it may become visible after that, when what its writer held is held no more: who began in between is in conflict, whatever it claims.
//
// An Engine's DeleteRange and Load stand outside transactions: they are for data that nothing can reach any more, and for
// data that nothing can reach yet. So does Replace, for data that nobody else writes meanwhile. A transaction's DeleteRange is
// part of it.
//
// # The order of commits
//
// Whatever changes the store is a Commit: a value with a number and a time, which an Observer is told of in its order. Apply takes
// a Commit that was ordered elsewhere. An engine that is given the Commits of another one, all of them and in their order, holds
// the same keys and counters.
package kv

import (
	"context"
	"errors"
	"fmt"
	"math"
	"syscall"
	"time"

	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Durability says when Commit returns.
type Durability uint8

const (
	// Synced returns once the commit is on stable storage; concurrent commits share one sync.
	Synced Durability = iota
	// Buffered returns once the commit is visible; it reaches stable storage within 100 ms.
	Buffered
	// Unsynced returns once the commit is visible, too. The caller sees to it that it becomes durable: with Sync or AwaitDurable,
	// which serve for several commits at once. Without, it is in a few seconds.
	Unsynced
)

// AllCommits stands for the number of a Commit: all that returned before.
const AllCommits uint64 = math.MaxUint64

var (
	// ErrNotFound is returned by Get for a key that does not exist.
	ErrNotFound = errors.New("kv: key not found")
	// ErrConflict is returned by Commit when a claimed key was claimed by a commit after this transaction's snapshot.
	ErrConflict = errors.New("kv: write conflict")
	// ErrUndetermined is returned by Commit when its outcome is not known.
	ErrUndetermined = errors.New("kv: commit outcome undetermined")
	// ErrTooLarge is returned by Commit when the transaction is larger than the engine takes at once.
	ErrTooLarge = errors.New("kv: transaction too large")
	// ErrNoSpace is what a SpaceError is.
	ErrNoSpace = errors.New("kv: no space left")
	// ErrClosed is returned by everything asked of an engine after Close.
	ErrClosed = errors.New("kv: engine is closed")
	// ErrCorrupt is returned by what meets stored data that is damaged; it says which file. Other reads go on.
	ErrCorrupt error = &coded{"stored data is damaged", mongoerr.DataCorruptionDetected}
	// ErrReadOnly is returned by Commit and by other writes when the engine takes none any more, because something stored is
	// damaged; by BeginBlind and Room too, so that a write does not meet the damage before it is refused. Nothing was written.
	ErrReadOnly error = &coded{"the store takes no writes", mongoerr.IllegalOperation}
	// ErrOrder is returned by Apply for a commit that does not have the next number.
	ErrOrder = errors.New("kv: the commit does not have the next number")
)

// coded is an error that clients see under a code of its own.
type coded struct {
	text string
	code mongoerr.Code
}

func (e *coded) Error() string { return e.text }

// Code is for mongoerr.From.
func (e *coded) Code() mongoerr.Code { return e.code }

// ErrFormat is of a store that another version of Ebb has written in a form that this one does not know. It says what to do.
var ErrFormat = errors.New("use the Ebb that wrote it")

// Damaged is err, which says in words of its own what is damaged, as an ErrCorrupt.
func Damaged(err error) error { return &damaged{err} }

type damaged struct{ error }

func (d *damaged) Is(target error) bool { return target == ErrCorrupt }

func (d *damaged) Unwrap() error { return d.error }

// SpaceError says that the engine's disk has too little room left. Nothing was written. Deletions need less than additions and
// may go on.
type SpaceError struct{ Free, Needed int64 }

func (e *SpaceError) Error() string {
	return fmt.Sprintf("available disk space of %d bytes is less than required minimum of %d", e.Free, e.Needed)
}

// Is says that it is ErrNoSpace, and what the system calls that.
func (e *SpaceError) Is(target error) bool { return target == ErrNoSpace || target == syscall.ENOSPC }

// IterOptions bounds an Iterator: Lower is inclusive, Upper exclusive; nil leaves that side open. A Lower above Upper
// leaves nothing between them.
type IterOptions struct {
	Lower, Upper []byte
}

// Reader reads one consistent view.
type Reader interface {
	// Get returns the value of key, or ErrNotFound. The slice is the caller's to keep but not to change.
	Get(key []byte) ([]byte, error)
	// Probe is Get for a key that is likely not there: that is told sooner, and a key that is there takes longer.
	Probe(key []byte) ([]byte, error)
	// GetMany looks up many keys at once; values[i] is nil where keys[i] does not exist.
	GetMany(keys [][]byte) (values [][]byte, err error)
	// Ahead is for who asks for many keys soon, one after the other: values[i] is the value of keys[i], or stays nil where it is better looked for
	// then, or the key does not exist. An engine tells what it has at hand; one of which each look costs a round trip looks for the rest, in one.
	// values has the length of keys and nothing else in it. That goes for the first looked of them: where those are as much as is well had at once, the
	// rest is left for another call, and has no values.
	Ahead(keys, values [][]byte) (looked int, err error)
	// Counter returns the sum of what was added to the counter key in this view.
	Counter(key []byte) (int64, error)
	// NewIter returns an iterator that stands before its first position; Close it. A transaction's iterator walks what the
	// transaction had written when it was made: later writes do not move under it.
	NewIter(IterOptions) (Iterator, error)
}

// Iterator walks keys in byte order. The moving methods say whether the iterator stands on a key afterwards. On a new
// iterator Next is First and Prev is Last; once a move has returned false, only First, Last, SeekGE and SeekLT move it.
type Iterator interface {
	First() bool
	Last() bool
	// SeekGE moves to the first key ≥ key within the bounds.
	SeekGE(key []byte) bool
	// SeekLT moves to the last key < key within the bounds.
	SeekLT(key []byte) bool
	Next() bool
	Prev() bool
	// Ahead is for who will soon seek one of the keys after the other, with SeekGE, or with SeekLT if back; First and Last are seeks of the bounds.
	// It moves nothing. An engine of which each look costs a round trip looks there for all together. What fails the next move that needs it tells.
	Ahead(keys [][]byte, back bool)
	Valid() bool
	Key() []byte
	Value() ([]byte, error)
	// Err is the error that ended the walk, if any; look at it when a moving method returned false.
	Err() error
	Close() error
}

// Snapshot is a consistent view that stays as it is until closed.
type Snapshot interface {
	Reader
	// Within has what is read from now on fail with the cause of ctx when that ends, where reading means waiting for others than this machine.
	Within(ctx context.Context)
	// Share is the same view once more, which is closed by itself.
	Share() Snapshot
	Close() error
}

// Txn is a read-write transaction. It is used by one goroutine at a time and ended by exactly one Commit or Rollback.
type Txn interface {
	Reader
	// Within is Snapshot's, for what the transaction reads.
	Within(ctx context.Context)
	Set(key, value []byte)
	// SetCached is Set for what Get is likely asked for soon.
	SetCached(key, value []byte)
	Delete(key []byte)
	// DeleteRange removes [start, end) with the commit: what is committed there before it, however young, and counters too.
	// What the transaction itself sets, deletes or adds there comes after that, whatever the order of the calls. Its own
	// reads do not show it. No claim stands for a range: the caller makes sure that nobody else writes there meanwhile.
	DeleteRange(start, end []byte)
	// Wrote says whether the transaction has set or deleted key by itself: what was read of it before is no longer so.
	Wrote(key []byte) bool
	// Claim makes the commit fail when another claim of key was committed since the snapshot.
	Claim(key []byte)
	// Conflicts says whether a claim of key would make the commit fail as things are.
	Conflicts(key []byte) bool
	// Add adds delta to the counter at key; it never conflicts. Counters have keys of their own.
	Add(key []byte, delta int64)
	// Size is about how many bytes of writes the transaction holds.
	Size() int
	// Mean says what the transaction means, for the Observer. A transaction that writes nothing is no Commit and means nothing.
	Mean(Meaning)
	// Stamp adds writes whose keys or values the Observer completes when the commit is ordered; see Commit.Stamped. Its own reads
	// do not show them.
	Stamp(...Op)
	Commit(context.Context, Durability) error
	Rollback()
}

// Replacement is pairs that are written where nobody sees them, faster than transactions write, until they take the place of
// a range. It is used by one goroutine at a time: Set as often as need be, Seal, and Commit; Discard at any time, which ends it.
type Replacement interface {
	// Set adds a pair; their keys ascend.
	Set(key, value []byte) error
	// Size is about how many bytes were set.
	Size() int
	// Seal ends the range, before end, and brings the pairs to stable storage.
	Seal(end []byte) error
	// Commit removes what lies in the range and puts the pairs there: all of it or, on an error or after a crash, nothing. All
	// that was committed before it began is on stable storage before it is. Nobody else writes in the range while it runs, and
	// who begins to read there meanwhile may see of each key what was or what will be.
	Commit(ctx context.Context) error
	// Discard gives up what is not committed; it may be called again.
	Discard()
}

// Stats is what an engine says about itself; sizes are bytes.
type Stats struct {
	DiskBytes, MemTableBytes, CacheBytes int64
	// RowCacheBytes is what is kept by key beside the cache of blocks; the limits are what each of the three may grow to.
	RowCacheBytes, CacheLimitBytes, RowCacheLimitBytes, MemTableLimitBytes int64
	// DeletedBytes is about how much of DiskBytes was deleted in ranges and waits to come back: for compactions, or for
	// readers that began before. Snapshots is how many are open, one that the engine keeps for the next reader included.
	DeletedBytes, Snapshots int64
	// DeletedRanges is how many ranges are deleted whose keys are still there, and RemovedKeys how many such keys were removed, in an engine
	// that deletes a range before its keys.
	DeletedRanges, RemovedKeys int64
	// TablesFound is how many files of tables there were when it was opened.
	TablesFound          int64
	Compactions, Flushes int64
	// Stalled is for how long the disk has brought nothing to its end that was to be written, and Stalls how often it has hung.
	Stalled time.Duration
	Stalls  int64
	// Damage is what was found damaged first, since when the engine takes no writes; "" as long as all is well.
	Damage string
	// Unavailable is what keeps the engine from reading or writing at the moment, where it is not on this machine; "" as long as all is well.
	Unavailable string
	Engine      string
	Detail      string
}

// Capabilities is what an engine can do that another may not. Whoever uses one asks, and goes another way or refuses.
type Capabilities struct {
	// Counters: Txn.Add conflicts with nobody.
	Counters bool
	// RangeDeletes: Txn.DeleteRange is part of its transaction. Engine.DeleteRange is there in any case.
	RangeDeletes bool
	// RangeRewrites: to write what is to stay in a range that the same transaction deletes costs no more than those writes. Without, a range
	// is better deleted where nothing of it stays.
	RangeRewrites bool
	// Tables: Load and Replace. Without them they must not be called.
	Tables bool
	// LocalSync: a commit may be visible before it is durable. Without it each is durable when it returns, whatever was asked,
	// and there is nothing to await.
	LocalSync bool
	// SoleWriter: nobody but this process writes to the store while the engine is open.
	SoleWriter bool
	// Groups: several Commits that are not to be alone may be ordered before the first of them is visible.
	Groups bool
	// Checkpoints: Checkpoint. Without it it must not be called.
	Checkpoints bool
	// Ahead is how many keys a reader had better look for at once (Reader.Ahead) where each look costs a round trip; 0 where looks cost little.
	Ahead int
	// MaxTxnBytes is the size of the largest transaction that Commit takes.
	MaxTxnBytes int
}

// Checkpoint is a store as it was at one moment, in files that do not change, until Remove. It may be used by several goroutines.
type Checkpoint interface {
	// Last is the number of the youngest Commit that is in it, and its time.
	Last() (number uint64, millis int64)
	Files() []CheckpointFile
	// ReadAt reads one of the files, as io.ReaderAt does.
	ReadAt(name string, b []byte, offset int64) (int, error)
	// Check reads a table and says, with ErrCorrupt, whether it is damaged. Of other files it knows nothing.
	Check(ctx context.Context, name string) error
	// Remove ends it, and gives back the room that it takes.
	Remove() error
}

// CheckpointFile is one of the files of a Checkpoint.
type CheckpointFile struct {
	Name  string
	Bytes int64
	// Table: as long as the engine is open, no other file of a Checkpoint has this name and another content.
	Table bool
}

// Engine is an ordered transactional key-value store.
type Engine interface {
	Capabilities() Capabilities
	Snapshot() (Snapshot, error)
	Begin() (Txn, error)
	// BeginBlind is Begin for one that may not read at all: its snapshot is taken when it first reads. Claims that were
	// committed since it began are conflicts either way.
	BeginBlind() (Txn, error)
	// BeginAt is Begin for one that reads an earlier view. What was claimed since is a conflict, and where nobody remembers what was, so is
	// any claim.
	BeginAt(Snapshot) (Txn, error)
	// Still takes a snapshot while nobody commits: it has all Commits that the Observer knows of, and no other. look is called before;
	// it must not wait, nor ask the engine. Where commits are on their way it waits for them, no longer than ctx lasts.
	Still(ctx context.Context, look func()) (Snapshot, error)
	// DeleteRange removes [start, end) outside any transaction.
	DeleteRange(start, end []byte) error
	// Load writes many pairs at once, faster than transactions do: all of them or, on an error or after a crash, none. next
	// gives them in ascending order of their keys, each key once; ok is false at the end, and its error ends the load. What
	// it gives is read before it is called again. Between the first key and the last there is nothing yet, and nobody writes
	// there meanwhile. They are visible and on stable storage when Load returns.
	Load(ctx context.Context, next func() (key, value []byte, ok bool, err error)) error
	// Replace begins to write what shall stand in the place of all keys from start on, up to an end that is said later.
	Replace(start []byte) (Replacement, error)
	// Observe has o told of each Commit from now on, in the place of who was before. Nobody commits meanwhile.
	Observe(o Observer)
	// Apply commits what was ordered elsewhere, under the number and the time that it has there; its number is the next here, or
	// else it is ErrOrder. Claims are recorded and conflict with nothing.
	Apply(ctx context.Context, c *Commit, d Durability) error
	// Last is the number of the youngest Commit that is visible, and its time; zeros before the first.
	Last() (number uint64, millis int64)
	// Room says whether so many bytes of data may be added; if not the error is a SpaceError or ErrReadOnly. Who deletes need not
	// ask, and meets the first from Commit only when the disk has no room at all.
	Room(bytes int) error
	// SizeOf estimates the bytes that [start, end) takes on disk.
	SizeOf(start, end []byte) (int64, error)
	// Compact gives back the room that nothing in [start, end) takes any more. It may take long; readers and writers go on.
	Compact(ctx context.Context, start, end []byte) error
	// Checkpoint takes one: all Commits that are visible when it begins are in it, and of those that come meanwhile the first up to
	// one. Readers go on, and writers wait for moments. What it holds keeps room on the disk.
	Checkpoint(ctx context.Context) (Checkpoint, error)
	// HoldFiles returns when the engine's files stay as they are, but for what commits write, until ReleaseFiles: who copies them one by one has them fit together
	// if nobody commits meanwhile. Several may hold them. Where it waits for longer than ctx lasts they are not held. Who commits a lot meanwhile waits at last. An
	// engine without files of its own holds nothing.
	HoldFiles(ctx context.Context) error
	// ReleaseFiles ends one HoldFiles.
	ReleaseFiles()
	// AwaitDurable returns when every Commit up to the one with the number is durable; with AllCommits all that returned before.
	// The error is ErrUndetermined when that cannot be known. Several who wait share a sync.
	AwaitDurable(number uint64) error
	// Sync is AwaitDurable for AllCommits.
	Sync() error
	Stats() Stats
	Close() error
}
