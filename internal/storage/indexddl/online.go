package indexddl

import (
	"context"
	"fmt"
	"math"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/build"
	"github.com/ebbdb/ebb/internal/storage/loosen"
	"github.com/ebbdb/ebb/internal/storage/ttlchange"
)

// lastRound is how many rows a round of catching up may find for the next to be the last, which holds writers up.
const lastRound = 1000

// maxGenerations bounds the rounds of catching up.
const maxGenerations = 64

// begin makes a build that writers know of. The caller holds the collection's lock exclusively.
func (d *DDL) begin(ctx context.Context, c storage.Collection, defs []*index.Definition, how ttlchange.OnHidden) (*builder, error) {
	b := d.newBuilder(ctx, c, defs)
	b.how, b.grows = how, true
	if err := b.number(true); err != nil {
		b.close()
		return nil, err
	}
	c.Publish(b.Underway)
	return b, nil
}

// run does all the work, beside writers, up to the commit.
func (b *builder) run(p indexPlan, l *loosen.Change, made *Created) (err error) {
	b.log("Index build: starting")
	defer b.ended()
	for _, step := range []func() error{
		func() error { return b.clearTheWay(p.Plan, l) }, b.work.Scan, b.load, b.catchUpRounds,
		func() error { return b.expireAhead(p.Plan, l) },
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
func (b *builder) failure(err error) error {
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
		catalog.UUIDText(build), c.NS, catalog.UUIDText(c.UUID)), err)
}

// catchUpRounds closes one generation after the other until one has few rows. Where writers fill them about as fast as
// they are applied, each transaction that applies some holds writers up: so every round is shorter than the one before.
func (b *builder) catchUpRounds() error {
	b.work.Progress.Begin(build.PhaseDrain, 0)
	around := directly
	for last := math.MaxInt; b.Generation < maxGenerations; {
		closed, err := b.closeGeneration()
		if err != nil {
			return err
		}
		n, err := b.work.CatchUp(b.ddl.engine, closed, around)
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
func (b *builder) alone(f func() error) error {
	unlock, err := b.collection.Lock(b.ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return f()
}

// closeGeneration waits for those who write into the generation and lets nobody else.
func (b *builder) closeGeneration() (closed byte, err error) {
	err = b.alone(func() error {
		closed = b.Generation
		b.Generation++
		return b.alive()
	})
	return closed, err
}

// commit is the last round, and the change of the catalogue. Nobody writes meanwhile.
func (b *builder) commit(p indexPlan, l *loosen.Change, made *Created) error {
	c, ok := b.ddl.store.CollectionByID(b.Collection)
	if err := b.alive(); err != nil || !ok {
		return err // whoever drops a collection ends its builds
	}
	if err := c.Undetermined(); err != nil {
		return err
	}
	next, err := settleIndexes(b.ctx, c, p, l, made)
	if err == nil {
		err = b.settle(c)
	}
	if err == nil {
		err = b.ddl.publish(b.ctx, b, l, putIndexes(c, next, l, made))
	}
	if err != nil {
		c.Thaw()
		return err
	}
	b.ready = true
	c.Withdraw(b.Underway)
	return nil
}

// ended leaves nothing of a build but what it committed.
func (b *builder) ended() {
	defer b.Ended()
	if b.ready {
		b.close()
		return
	}
	unlock, _ := b.collection.Lock(context.WithoutCancel(b.ctx)) // which nothing ends but its turn
	b.collection.Withdraw(b.Underway)
	unlock()
	b.abandon()
}

// report tells the log of each tenth of a phase.
func (b *builder) report(done, total int64) {
	b.log("Index build: "+b.Phase().String(), "done", done, "total", total)
}

func (b *builder) log(message string, args ...any) {
	all := append([]any{"buildUUID", catalog.UUIDText(b.UUID), "collectionUUID", catalog.UUIDText(b.CollectionUUID), "namespace", b.NS.String()}, args...)
	if b.Phase() == build.PhaseBegin {
		all = append(all, "indexes", b.specs())
	}
	b.ddl.options.Logger.Info(message, all...)
}

// specs are the build's indexes as a log line shows them.
func (b *builder) specs() string {
	out := bson.Build()
	for i, d := range b.Definitions {
		out.Document(bson.IndexKey(i), d.Spec)
	}
	return out.Doc().ArrayValue().String()
}
