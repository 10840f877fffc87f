package storage

import "github.com/ebbdb/ebb/internal/storage/build"

// Phase is what the build is at.
func (b *Build) Phase() build.Phase { return b.work.Progress.Phase() }

// Progress is how much of the phase is done: records, entries, or rows to catch up with.
func (b *Build) Progress() (message string, done, total int64) { return b.work.Progress.Message() }

// Builds are the index builds under way on a collection, oldest first.
func (s *Store) Builds(collection uint32) []*Build {
	c := s.current.Load().collections[collection]
	if c == nil {
		return nil
	}
	return c.state.building()
}

// report tells the log of each tenth of a phase.
func (b *Build) report(done, total int64) {
	b.log("Index build: "+b.Phase().String(), "done", done, "total", total)
}

func (b *Build) log(message string, args ...any) {
	all := append([]any{"buildUUID", uuidText(b.UUID), "collectionUUID", uuidText(b.CollectionUUID), "namespace", b.NS.String()}, args...)
	if b.Phase() == build.PhaseBegin {
		all = append(all, "indexes", b.specs())
	}
	b.store.options.Logger.Info(message, all...)
}
