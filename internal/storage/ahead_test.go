package storage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/catalogchange"
	"github.com/ebbdb/ebb/internal/storage/garbage"
	"github.com/ebbdb/ebb/internal/storage/ownership"
	"github.com/ebbdb/ebb/internal/storage/ttlchange"
)

// watchedEngine tells of each transaction that begins beside others.
type watchedEngine struct {
	kv.Engine
	writes func()
}

func (e *watchedEngine) BeginBlind() (kv.Txn, error) {
	if e.writes != nil {
		e.writes()
	}
	return e.Engine.BeginBlind()
}

// dueAhead is how many documents of aheadFixture are due by each of its TTL indexes.
const dueAhead = 40

// aheadFixture is a collection after a start, of which more is due than is deleted one by one while its lock is held, and there
// are more than are counted then. The records lie by d. hides is ", hideExpired: true" where the TTLs hide.
func aheadFixture(t *testing.T, hides string) (*fixture, *watchedEngine) {
	f := newFixture(t)
	e := &watchedEngine{Engine: f.engine}
	f.engine = e
	f.createIndexes(testNS, `{key: {d: 1}, name: "d", expireAfterSeconds: 10`+hides+`}`, `{key: {e: 1}, name: "e", expireAfterSeconds: 10`+hides+`}`, `{key: {a: 1}, name: "a"}`)
	for i := range dueAhead {
		f.must(f.insert(testNS, fmt.Sprintf("{_id: %d, d: Date(%d)}", i, f.Now()), fmt.Sprintf("{_id: %d, e: Date(%d)}", 100+i, f.Now())))
	}
	f.must(f.insert(testNS, "{_id: 200}"))
	f.clock.Advance(time.Minute)
	f.reopen()
	f.garbage.Stop()
	f.garbage = garbage.Start(e.Engine, slog.New(slog.DiscardHandler)) // what it removes of a dropped index is not told of
	f.Bounds().Few, f.Bounds().MostCounted = 4, 8
	return f, e
}

func (f *fixture) holds(want int64) {
	f.t.Helper()
	f.read(testNS, func(r *Reader) error {
		n, err := r.Stored()
		if n != want {
			f.t.Errorf("%d documents are stored, want %d", n, want)
		}
		return err
	})
	f.validate(testNS)
}

// longer makes the TTL of an index longer.
func (f *fixture) longer(name string) error {
	return f.Modify(context.Background(), testNS, func(c *catalog.Collection) (*catalog.Collection, error) {
		return withSeconds(f, c, name, 1000), nil
	})
}

func withSeconds(f *fixture, c *catalog.Collection, name string, seconds int) *catalog.Collection {
	defs := append([]*index.Definition(nil), c.Indexes...)
	for i, d := range defs {
		if d.Name == name {
			made, err := f.parse(fmt.Sprintf("{key: {%s: 1}, name: %q, expireAfterSeconds: %d}", name, name, seconds))(c)
			f.must(err)
			defs[i] = made[0].WithID(d.ID).WithForm(d.Form)
		}
	}
	return c.WithIndexes(defs)
}

func (f *fixture) dropIndex(name string) error {
	_, err := f.DropIndexes(context.Background(), testNS, func(c *catalog.Collection) ([]*index.Definition, error) {
		if d := c.Index(name); d != nil {
			return []*index.Definition{d}, nil
		}
		return nil, errors.New("no such index")
	})
	return err
}

// TestExpireAhead: whoever loosens a TTL counts and deletes what is much while others may write, and while nobody else may
// change what the collection is.
func TestExpireAhead(t *testing.T) {
	for name, loosen := range map[string]func(*fixture, string) error{
		"modify": (*fixture).longer, "drop": (*fixture).dropIndex,
		"stop hiding": func(f *fixture, _ string) error {
			_, err := f.StopHiding(context.Background(), ttlchange.OnHidden{}, func() error { return nil })
			return err
		},
	} {
		for _, ttl := range []string{"d", "e"} {
			t.Run(name+" "+ttl, func(t *testing.T) {
				hides := ", hideExpired: true"
				if name == "stop hiding" {
					hides = ""
				}
				f, e := aheadFixture(t, hides)
				f.hideAll = name == "stop hiding"
				c, tries := f.tested(), 0
				e.writes = func() {
					tries++
					if !c.state.lock.Try(ownership.Shared) {
						t.Error("nobody else may write")
						return
					}
					c.state.lock.Release(ownership.Shared)
					if name != "stop hiding" && c.state.changing.Try(ownership.Exclusive) {
						t.Error("somebody else may change the collection")
						c.state.changing.Release(ownership.Exclusive)
					}
				}
				f.must(loosen(f, ttl))
				e.writes = nil
				if counted := c.order.Histogram.IsKnown(); counted != (ttl == "d" || name == "stop hiding") {
					t.Errorf("the records were counted: %v", counted)
				}
				if tries == 0 {
					t.Error("nothing was deleted beside writers")
				}
				if name == "stop hiding" {
					f.holds(1)
				} else {
					f.holds(dueAhead + 1)
				}
				if !c.state.lock.Try(ownership.Exclusive) || !c.state.changing.Try(ownership.Exclusive) {
					t.Error("a lock is still held")
				}
				c.state.lock.Release(ownership.Exclusive)
				c.state.changing.Release(ownership.Exclusive)
			})
		}
	}
}

// TestExpireAheadOfNothing: what is refused or changes nothing deletes nothing, and where little is due nothing is counted.
func TestExpireAheadOfNothing(t *testing.T) {
	f, _ := aheadFixture(t, ", hideExpired: true")
	refused := errors.New("refused")
	err := f.Modify(context.Background(), testNS, func(*catalog.Collection) (*catalog.Collection, error) { return nil, refused })
	if !errors.Is(err, refused) {
		t.Error(err)
	}
	f.must(f.Modify(context.Background(), testNS, func(c *catalog.Collection) (*catalog.Collection, error) { return c, nil }))
	if err := f.dropIndex("x"); err == nil {
		t.Error("an index that is not there was dropped")
	}
	f.holds(2*dueAhead + 1)
	f.Bounds().Few = 2 * dueAhead
	c := f.tested()
	f.must(f.longer("d"))
	if c.order.Histogram.IsKnown() {
		t.Error("the records were counted")
	}
	f.holds(dueAhead + 1)
}

// TestCountLocked: who holds the lock counts no more records than a few, and deletes all the same.
func TestCountLocked(t *testing.T) {
	for _, most := range []int{8, 1000} {
		f, _ := aheadFixture(t, ", hideExpired: true")
		f.Bounds().MostCounted = most
		c, release, err := f.lockToChange(context.Background(), testNS)
		f.must(err)
		if n, err := f.deleteDue(context.Background(), c[0], c[0].order.Rule, f.Now(), underLock); n != dueAhead || err != nil {
			t.Errorf("%d are deleted, %v", n, err)
		}
		release()
		if known := c[0].order.Histogram.IsKnown(); known != (most == 1000) {
			t.Errorf("at most %d: counted %v", most, known)
		}
		f.holds(dueAhead + 1)
	}
}

// TestDropIndexesLooksAgain: where an index build has ended while much was deleted, the indexes are picked anew.
func TestDropIndexesLooksAgain(t *testing.T) {
	f, e := aheadFixture(t, ", hideExpired: true")
	e.writes = func() {
		e.writes = nil
		f.must(f.Store.Change(context.Background(), func(c *catalogchange.Change) error {
			was := f.tested().Collection
			return c.Put(was.WithIndexes(append([]*index.Definition(nil), was.Indexes...)))
		}))
	}
	var picked []*catalog.Collection
	before, err := f.DropIndexes(context.Background(), testNS, func(c *catalog.Collection) ([]*index.Definition, error) {
		picked = append(picked, c)
		return []*index.Definition{c.Index("e")}, nil
	})
	if len(picked) != 2 || picked[0] == picked[1] || before != 4 || err != nil {
		t.Errorf("picked %d times, of %d indexes, %v", len(picked), before, err)
	}
	if f.tested().Index("e") != nil || f.tested().Index("a") == nil {
		t.Error("other indexes are left than were not picked")
	}
	f.holds(dueAhead + 1)
}
