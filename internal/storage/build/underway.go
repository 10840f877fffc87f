package build

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/indexwrite"
	"github.com/ebbdb/ebb/internal/storage/multikey"
)

// Underway is an index build under way, as others see it: writers, who note in side tables what happens to its entries, and who lists it,
// waits for it or ends it.
//
// Which builds a collection has, and a build's generation, change only while the collection's lock is held exclusively; writers read
// them while they hold it.
type Underway struct {
	UUID           [16]byte
	NS             namespace.NS
	Collection     uint32
	CollectionUUID [16]byte
	// Definitions are the indexes, with the numbers they will have.
	Definitions []*index.Definition
	// Tables are those of the indexes that keep entries.
	Tables []*IndexUnderway
	// Generation is the one of the side tables that writers write into.
	Generation byte
	// Operation is the id of the operation that builds, for those who list it.
	Operation atomic.Int64

	progress *Progress
	end      context.CancelCauseFunc
	done     chan struct{} // closed at the end
}

// IndexUnderway is one index of a build.
type IndexUnderway struct {
	*Table
	Multikey *multikey.Index
	// Index is the index as it will be, known once writers know of the build.
	Index *indexwrite.Index
}

// NewUnderway is a build of indexes of a collection, which end ends.
func NewUnderway(c *catalog.Collection, defs []*index.Definition, progress *Progress, end context.CancelCauseFunc) *Underway {
	return &Underway{UUID: catalog.NewUUID(), NS: c.NS, Collection: c.ID, CollectionUUID: c.UUID, Definitions: slices.Clone(defs),
		progress: progress, end: end, done: make(chan struct{})}
}

// Phase is what the build is at.
func (b *Underway) Phase() Phase { return b.progress.Phase() }

// Progress is how much of the phase is done: records, entries, or rows to catch up with.
func (b *Underway) Progress() (message string, done, total int64) { return b.progress.Message() }

// Wait returns when the build has ended, well or not.
func (b *Underway) Wait(ctx context.Context) error {
	select {
	case <-b.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Ended tells those who wait.
func (b *Underway) Ended() { close(b.done) }

// Publish is called when writers get to know of the build.
func (b *Underway) Publish() {
	for _, t := range b.Tables {
		t.Index = &indexwrite.Index{Entries: t.Entries, Multikey: t.Multikey, Roots: t.Roots()}
	}
}

// Abort ends the build for good.
func (b *Underway) Abort(why string) {
	b.end(Aborted(fmt.Sprintf("%s: %s", catalog.UUIDText(b.UUID), why)))
}

// Refuse is the error of what cannot be done to a collection while this build is under way.
func (b *Underway) Refuse() error {
	return mongoerr.New(mongoerr.BackgroundOperationInProgressForNamespace,
		"cannot perform operation: an index build is currently running for collection with UUID: %s. Found index build: %s",
		catalog.UUIDText(b.CollectionUUID), catalog.UUIDText(b.UUID))
}
