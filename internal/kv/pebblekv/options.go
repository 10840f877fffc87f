package pebblekv

import (
	"io"
	"log/slog"
	"runtime"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/diskwatch"
)

// Options of a store; the zero value of each field is its default.
type Options struct {
	// FS is where the store lives; the disk by default. vfs.NewMem makes it a store in memory.
	FS vfs.FS
	// CacheBytes is the size of the block cache; 256 MiB by default.
	CacheBytes int64
	// RowCacheBytes is how much of what was read by key lately is kept beside it; 64 MiB by default.
	RowCacheBytes int64
	// Compression is that of tables that are written from now on; those that are there stay as they are until they are merged.
	Compression Compression
	// MemTableBytes is how much is written before it goes to a table; 64 MiB by default, less on a disk below 8 GiB.
	MemTableBytes int64
	// MaxTxnBytes is the largest transaction that Commit takes; 256 MiB by default.
	MaxTxnBytes int
	// MaxOpenFiles bounds the open tables; 4096 by default.
	MaxOpenFiles int
	// MinFreeBytes is how much of the disk must be free for data to be added; 512 MiB by default, and a sixteenth of the disk
	// at most. A setting of more than a quarter of the disk is a quarter; a negative one sets no limit.
	MinFreeBytes int64
	// ReserveBytes is how much is set aside, in a file, for what deletions need on a full disk; 256 MiB by default, bounded as
	// MinFreeBytes is. Nothing is set aside if it is negative.
	ReserveBytes int64
	// CommitKey is where each commit stores its number and its time, so that numbers go on after a restart; nil: they begin anew.
	// Nobody else writes there.
	CommitKey []byte
	// RegionOf says which keys around a key are written to together; nil: nobody knows. Tables are cut where they end.
	RegionOf func(key []byte) kv.Range
	// Logger takes what the store has to say; nothing by default.
	Logger *slog.Logger
	// Clock times the sync of Buffered commits; the machine's by default. A fake one is for the engine's own tests: where
	// it does not turn, Buffered commits are not synced.
	Clock clock.Clock
	// OnFailure is called once, on a goroutine of its own, when the store can no longer keep what it promised: a sync or a
	// write of the log failed, or a table is corrupt. From then on every commit fails and only reads go on. What was
	// acknowledged is on disk; what was under way is answered ErrUndetermined. The process should end and start anew.
	OnFailure func(error)
	// StartWithDamagedLog opens a store whose log is damaged as it was before the first write that is lost. The log and those
	// after it are moved to the directory "damaged".
	StartWithDamagedLog bool
	// Watch watches the disk; nil: nobody does.
	Watch *diskwatch.Watch
	// HoldRemovals keeps all files that the store takes for obsolete until LetRemove is called.
	HoldRemovals bool

	volatile bool // nobody can open it again
	// zeroRange makes a file zeros (logRecycler); it is replaced in tests.
	zeroRange func(file vfs.File, most int64) (int64, error)
}

// Compression says what tables are compressed for.
type Compression uint8

const (
	// CompressForSpeed costs little at writing and least at reading.
	CompressForSpeed Compression = iota
	// CompressForSpace makes about three quarters of that, where it pays, for several times the processor time.
	CompressForSpace
	// CompressNothing leaves blocks as they are.
	CompressNothing
)

// profile is what Pebble calls it. All of these are read by whatever was chosen, and by earlier versions.
func (c Compression) profile() *sstable.CompressionProfile {
	switch c {
	case CompressForSpace:
		return sstable.BalancedCompression
	case CompressNothing:
		return sstable.NoCompression
	}
	return sstable.FastestCompression
}

// formatVersion pins Pebble's on-disk format, so that a newer Pebble does not raise it in passing.
const formatVersion = pebble.FormatValueSeparation

const (
	defaultCacheBytes    = 256 << 20
	defaultRowCacheBytes = 64 << 20
	defaultMemTableBytes = 64 << 20
	defaultMaxTxnBytes   = 256 << 20
	defaultMaxOpenFiles  = 4096

	// A flushed range deletion drops whole tables unread; left in the memtable it reclaims nothing.
	flushDelayDeleteRange = 5 * time.Second

	// A find by key that the cache does not answer reads two blocks: the larger they are, the more it decompresses for nothing. A
	// first scan of all pays for smaller ones, a little.
	blockBytes = 8 << 10
	// A table of 64 MiB has some 150 KiB of index. In one block it is searched at once; in blocks of blockBytes it would be in two steps.
	indexBlockBytes      = 256 << 10
	bloomBitsPerKey      = 10
	l0CompactionTrigger  = 8 // twice the flushes that may lie over each other before they are merged
	l0StopWrites         = 24
	memTablesStopWrites  = 4
	bytesPerSync         = 512 << 10
	bufferedSyncInterval = 90 * time.Millisecond // with the sync itself below the 100 ms of kv.Buffered
)

func (o Options) withDefaults() Options {
	setDefault(&o.CacheBytes, defaultCacheBytes)
	setDefault(&o.RowCacheBytes, defaultRowCacheBytes)
	setDefault(&o.MaxTxnBytes, defaultMaxTxnBytes)
	setDefault(&o.MaxOpenFiles, defaultMaxOpenFiles)
	if o.FS == nil {
		o.FS = privateDisk{vfs.Default}
	}
	o.FS = o.Watch.Over(o.FS)
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if o.Clock == nil {
		o.Clock = clock.Wall()
	}
	if o.zeroRange == nil {
		o.zeroRange = zeroRange
	}
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (o Options) pebble(cache *pebble.Cache, lock *pebble.Lock, f *failure, r *room) *pebble.Options {
	p := &pebble.Options{
		Cache:                       cache,
		Lock:                        lock,
		FormatMajorVersion:          formatVersion,
		MemTableSize:                uint64(o.MemTableBytes),
		MemTableStopWritesThreshold: memTablesStopWrites,
		MaxOpenFiles:                o.MaxOpenFiles,
		BytesPerSync:                bytesPerSync,
		L0CompactionThreshold:       l0CompactionTrigger,
		L0StopWritesThreshold:       l0StopWrites,
		FlushDelayDeleteRange:       flushDelayDeleteRange,
		CompactionConcurrencyRange:  func() (int, int) { return 1, max(2, runtime.GOMAXPROCS(0)/2) },
		Cleaner:                     cleaner{},
		Logger:                      pebbleLogger{o.Logger, f},
	}
	setTableSizes(p, o.MemTableBytes)
	g := &regions{of: o.RegionOf, full: uint64(p.TargetFileSizes[0]) / 2}
	p.Experimental.SpanPolicyFunc = g.policy
	p.EventListener = events(o.Logger, f, r, g)
	// What is deleted together goes unread; there is no hurry with the rest, so it does not take a second processor.
	p.Experimental.CompactionGarbageFractionForMaxConcurrency = func() float64 { return -1 }
	// Pebble must cut no table by itself (EnableDeleteOnlyCompactionExcises stays off): where it cannot read what remains beside the
	// cut, it takes that for empty and drops it. The committer looks before it cuts.
	for i := range p.Levels {
		p.Levels[i].BlockSize, p.Levels[i].IndexBlockSize = blockBytes, indexBlockBytes
		p.Levels[i].FilterPolicy = bloom.FilterPolicy(bloomBitsPerKey)
		p.Levels[i].Compression = o.Compression.profile
	}
	return p
}
