package indexddl

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/meaning"
)

// ahead is a clock by which others go, who know a later time than it tells.
type ahead struct {
	*clock.Fake
	by     time.Duration
	stands atomic.Bool
}

func (a *ahead) CommitTime() time.Time { return a.Now() }

func (a *ahead) StandStill() (millis int64, goOn func()) {
	a.stands.Store(true)
	return a.Now().Add(a.by).UnixMilli(), func() { a.stands.Store(false) }
}

// TestOthersStandStill: what others may have hidden when a TTL is dropped is deleted, though it is not hidden here yet, and they get to know of no later
// time before the change is committed.
func TestOthersStandStill(t *testing.T) {
	f := newFixture(t)
	f.must(f.store.Close())
	others := &ahead{Fake: f.clock, by: 2 * time.Millisecond}
	f.options.Clock = others
	var stood atomic.Bool // at the last change of the catalogue
	f.options.OnCommit = func(c *kv.Commit) {
		if m, ok := c.Meaning.(*meaning.Meaning); ok && m.DDL != nil {
			stood.Store(others.stands.Load())
		}
	}
	f.open()
	f.createIndexes("{key: {t: 1}, name: 't', expireAfterSeconds: 10, hideExpired: true}")
	for i, left := range []int64{-1, 2, 3} { // milliseconds
		f.must(f.insert(fmt.Sprintf("{_id: %d, t: new Date(%d)}", i, f.clock.Now().UnixMilli()+left-10_000)))
	}
	_, err := f.DropIndexes(context.Background(), testNS, func(c *catalog.Collection) ([]*index.Definition, error) {
		return []*index.Definition{c.Index("t")}, nil
	})
	f.must(err)
	if !stood.Load() {
		t.Error("others hear of the time before they hear of the change")
	}
	if others.stands.Load() {
		t.Error("time stands still behind the change")
	}
	for i, want := range []bool{false, false, true} {
		f.must(f.store.Write(context.Background(), testNS, creating, func(w *storage.Writer) error {
			_, there, err := w.GetByID(bson.Int32(int32(i)))
			if there != want {
				t.Errorf("document %d is there: %t", i, there)
			}
			return err
		}))
	}
}
