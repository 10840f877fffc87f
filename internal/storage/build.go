package storage

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/build"
	"github.com/ebbdb/ebb/internal/storage/indexwrite"
	"github.com/ebbdb/ebb/internal/storage/multikey"
)

// Build is an index build under way, as others see it: writers, who note in side tables what happens to its entries, and who lists it,
// waits for it or ends it. Package indexddl builds.
//
// Which builds a collection has, and a build's generation, change only while the collection's lock is held exclusively; writers read
// them while they hold it.
type Build struct {
	UUID           [16]byte
	NS             namespace.NS
	Collection     uint32
	CollectionUUID [16]byte
	// Definitions are the indexes, with the numbers they will have.
	Definitions []*index.Definition
	// Tables are those of the indexes that keep entries.
	Tables []*BuildTable
	// Generation is the one of the side tables that writers write into.
	Generation byte
	// Operation is the id of the operation that builds, for those who list it.
	Operation atomic.Int64

	progress *build.Progress
	end      context.CancelCauseFunc
	done     chan struct{} // closed at the end
}

// BuildTable is one index of a Build.
type BuildTable struct {
	*build.Table
	Multikey *multikey.Index
	index    *indexwrite.Index // as it will be; known once the Build is published
}

// NewBuild is a build of indexes of a collection, which end ends.
func NewBuild(c *catalog.Collection, defs []*index.Definition, progress *build.Progress, end context.CancelCauseFunc) *Build {
	return &Build{UUID: catalog.NewUUID(), NS: c.NS, Collection: c.ID, CollectionUUID: c.UUID, Definitions: slices.Clone(defs),
		progress: progress, end: end, done: make(chan struct{})}
}

// Phase is what the build is at.
func (b *Build) Phase() build.Phase { return b.progress.Phase() }

// Progress is how much of the phase is done: records, entries, or rows to catch up with.
func (b *Build) Progress() (message string, done, total int64) { return b.progress.Message() }

// Wait returns when the build has ended, well or not.
func (b *Build) Wait(ctx context.Context) error {
	select {
	case <-b.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Ended tells those who wait.
func (b *Build) Ended() { close(b.done) }

// Publish has writers know of a build. The caller holds the collection's lock exclusively, as with Withdraw and Abort.
func (c Collection) Publish(b *Build) {
	for _, t := range b.Tables {
		t.index = &indexwrite.Index{Entries: t.Entries, Multikey: t.Multikey, Roots: t.Roots()}
	}
	builds := append(slices.Clone(c.own.state.building()), b)
	c.own.state.builds.Store(&builds)
}

// Withdraw ends writers' knowledge of a build, if they have any.
func (c Collection) Withdraw(b *Build) { c.own.withdraw(b) }

// Abort ends a build for good.
func (c Collection) Abort(b *Build, why string) { c.own.abort(b, why) }

func (c *collection) withdraw(b *Build) {
	builds := slices.DeleteFunc(slices.Clone(c.state.building()), func(o *Build) bool { return o == b })
	c.state.builds.Store(&builds)
}

func (c *collection) abort(b *Build, why string) {
	b.end(build.Aborted(fmt.Sprintf("%s: %s", catalog.UUIDText(b.UUID), why)))
	c.withdraw(b)
}

// abortBuilds ends all builds of the collection, whose lock is held exclusively.
func (c *collection) abortBuilds(why string) {
	for _, b := range c.state.building() {
		c.abort(b, why)
	}
}

// refuseWhileBuilding is the error of what cannot be done to the collection while an index is built. It may be nil.
func (c *collection) refuseWhileBuilding() error {
	if c == nil || len(c.state.building()) == 0 {
		return nil
	}
	return mongoerr.New(mongoerr.BackgroundOperationInProgressForNamespace,
		"cannot perform operation: an index build is currently running for collection with UUID: %s. Found index build: %s",
		catalog.UUIDText(c.UUID), catalog.UUIDText(c.state.building()[0].UUID))
}

// building are the builds that writers have to know of.
func (s *collectionState) building() []*Build {
	if p := s.builds.Load(); p != nil {
		return *p
	}
	return nil
}
