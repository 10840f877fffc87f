package storage

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/storage/build"
)

// lastRound is how many rows a round of catching up may find for the next to be the last, which holds writers up.
const lastRound = 1000

// publish makes a build that writers know of. The caller holds the collection's lock exclusively.
func (s *Store) publish(ctx context.Context, c *collection, defs []*index.Definition, how OnHidden) (*Build, error) {
	b := s.newBuild(ctx, c, defs)
	b.how = how
	if err := b.begin(true); err != nil {
		b.close()
		return nil, err
	}
	builds := append(slices.Clone(c.state.building()), b)
	c.state.builds.Store(&builds)
	return b, nil
}

// withdraw ends writers' knowledge of the build, if they have any. The caller holds the collection's lock exclusively.
func (b *Build) withdraw() {
	state := b.collection.state
	builds := slices.DeleteFunc(slices.Clone(state.building()), func(o *Build) bool { return o == b })
	state.builds.Store(&builds)
}

// run does all the work, beside writers, up to the commit.
func (b *Build) run(p indexPlan, l *loosening, made *Created) (err error) {
	b.log("Index build: starting")
	defer b.end()
	for _, step := range []func() error{
		func() error { return b.clearTheWay(p, l) }, b.work.Scan, b.load, b.catchUpRounds,
		func() error { return b.expireAhead(p, l) },
		func() error { return b.alone(func() error { return b.commit(p, l, made) }) },
	} {
		if err := step(); err != nil {
			err = b.failure(err)
			b.log("Index build: failed", "error", err)
			return err
		}
	}
	b.log("Index build: done building")
	return nil
}

// failure is what the client is told.
func (b *Build) failure(err error) error {
	if b.ctx.Err() != nil {
		err = context.Cause(b.ctx)
		if !mongoerr.Is(err, mongoerr.IndexBuildAborted) {
			return err
		}
	}
	return failedBuild(b.UUID, b.collection.Collection, err)
}

func failedBuild(build [16]byte, c *catalog.Collection, err error) error {
	return mongoerr.Prefix(fmt.Sprintf("Index build failed: %s: Collection %s ( %s ) :: caused by :: ",
		uuidText(build), c.NS, uuidText(c.UUID)), err)
}

func uuidText(u [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// catchUpRounds closes one generation after the other until one has few rows. Where writers fill them about as fast as
// they are applied, each transaction that applies some holds writers up: so every round is shorter than the one before.
func (b *Build) catchUpRounds() error {
	b.work.Progress.Begin(build.PhaseDrain, 0)
	around := directly
	for last := math.MaxInt; b.generation < maxGenerations; {
		closed, err := b.closeGeneration()
		if err != nil {
			return err
		}
		n, err := b.work.CatchUp(b.store.engine, closed, around)
		if err != nil || n <= lastRound {
			return err
		}
		if n > last/2 {
			around = b.alone
		}
		last = n
		b.log("Index build: "+build.PhaseDrain.String(), "rows", n)
	}
	return nil
}

// directly runs f beside writers.
func directly(f func() error) error { return f() }

// alone runs f while nobody writes.
func (b *Build) alone(f func() error) error {
	lock := &b.collection.state.lock
	if err := lock.Acquire(b.ctx, true); err != nil {
		return err
	}
	defer lock.Release(true)
	return f()
}

// wait returns when the build has ended, well or not.
func (b *Build) wait(ctx context.Context) error {
	select {
	case <-b.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// closeGeneration waits for those who write into the generation and lets nobody else.
func (b *Build) closeGeneration() (closed byte, err error) {
	err = b.alone(func() error {
		closed = b.generation
		b.generation++
		return b.alive()
	})
	return closed, err
}

// expireAhead deletes most of what commit would delete because TTLs get longer with it.
func (b *Build) expireAhead(p indexPlan, l *loosening) error {
	c := b.store.current.Load().collections[b.Collection]
	if err := b.alive(); err != nil || c == nil {
		return err
	}
	next, _ := p.Retime(c.Collection)
	if l.toBe(c, next); !l.deletes() {
		return nil
	}
	for _, rule := range l.rules {
		n, err := b.store.deleteDue(b.ctx, c, rule, b.store.expiryClock.Time(), besideWriters)
		if l.done.Deleted += n; err != nil {
			return err
		}
	}
	return nil
}

// commit is the last round, and the change of the catalogue. Nobody writes meanwhile.
func (b *Build) commit(p indexPlan, l *loosening, made *Created) error {
	c := b.store.current.Load().collections[b.Collection]
	if err := b.alive(); err != nil || c == nil {
		return err // whoever drops a collection ends its builds
	}
	err := b.store.putIndexes(b.ctx, c, p, l, made, func() (*Build, error) { return b, b.settle(c) })
	if err != nil {
		return err
	}
	b.ready = true
	b.withdraw()
	return nil
}

// end leaves nothing of a build but what it committed.
func (b *Build) end() {
	defer close(b.done)
	if b.ready {
		b.close()
		return
	}
	lock := &b.collection.state.lock
	_ = lock.Acquire(context.WithoutCancel(b.ctx), true) // which nothing ends but its turn
	b.withdraw()
	lock.Release(true)
	b.abandon()
}

// abort ends a build for good. The caller holds the collection's lock exclusively.
func (b *Build) abort(why string) {
	b.cancel(aborted(fmt.Sprintf("%s: %s", uuidText(b.UUID), why)))
	b.withdraw()
}

// abortBuilds ends all builds of the collection, whose lock is held exclusively.
func (c *collection) abortBuilds(why string) {
	for _, b := range c.state.building() {
		b.abort(why)
	}
}

// refuseWhileBuilding is the error of what cannot be done to the collection while an index is built. It may be nil.
func (c *collection) refuseWhileBuilding() error {
	if c == nil || len(c.state.building()) == 0 {
		return nil
	}
	return mongoerr.New(mongoerr.BackgroundOperationInProgressForNamespace,
		"cannot perform operation: an index build is currently running for collection with UUID: %s. Found index build: %s",
		uuidText(c.UUID), uuidText(c.state.building()[0].UUID))
}

// building are the builds that writers have to know of.
func (s *collectionState) building() []*Build {
	if p := s.builds.Load(); p != nil {
		return *p
	}
	return nil
}

// specs are the build's indexes as a log line shows them.
func (b *Build) specs() string {
	out := bson.Build()
	for i, d := range b.Definitions {
		out.Document(bson.IndexKey(i), d.Spec)
	}
	return out.Doc().ArrayValue().String()
}
