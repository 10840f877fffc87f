package expiry

// Limits bound the work at whole collections. Tests make them small.
type Limits struct {
	// Few is how many records, or entries, are better deleted one by one: a range deletion is something that every reader has to
	// look at until it is compacted away.
	Few int64
	// Trail is how many records a collection may lose one by one before a few are deleted as a range all the same: the range takes in what those
	// have left behind, which everybody walks over who reads the collection from its beginning until the engine has let go of it. TiKV keeps it for
	// ten minutes and more.
	Trail int64
	// MostCounted is how many records are counted while the lock is held: of a slot from each of its ends, or all that there are
	// where the histogram is not known.
	MostCounted int
	// MostTold is how many documents a sweep deletes that tells of each, and MostToldBytes how many bytes of them, and of what is told.
	// Then it commits and lets others write.
	MostTold, MostToldBytes int
	// MostSpared is how many documents that open transactions have written a sweep leaves where they are, and MostSparedBytes how many bytes
	// of them: they are written again. With more of them it is not done at once.
	MostSpared, MostSparedBytes int
	// CountedAtOnce is how many documents of a collection a sweep counts itself: some milliseconds.
	CountedAtOnce int64
	// LongStretch is how many entries an index has at least that is worth a compaction: tables are written, and synced.
	LongStretch int64
}

// DefaultLimits are those of a server.
func DefaultLimits() Limits {
	return Limits{Few: 256, Trail: 4096, MostCounted: 1 << 17, MostTold: 2000, MostToldBytes: 4 << 20, MostSpared: 4096, MostSparedBytes: 16 << 20, CountedAtOnce: 1 << 14, LongStretch: 50_000}
}
