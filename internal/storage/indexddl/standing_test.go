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
	by    time.Duration
	users atomic.Int64 // who have it stand still
}

func (a *ahead) CommitTime() time.Time { return a.Now() }

func (a *ahead) StandStill() (millis int64, goOn func()) {
	a.users.Add(1)
	return a.Now().Add(a.by).UnixMilli(), func() { a.users.Add(-1) }
}

// TestOthersStandStill: what others may have hidden when a TTL is dropped is deleted, though it is not hidden here yet, and they get to know of no later
// time before the change is committed. Where deleting takes so long that time goes on meanwhile, what they may have hidden by then is deleted as well.
func TestOthersStandStill(t *testing.T) {
	for _, c := range []struct {
		name  string
		takes time.Duration // the first deletion
		want  [4]bool       // what stays
	}{
		{"at once", 0, [...]bool{false, false, true, true}},
		{"for long", 10 * time.Millisecond, [...]bool{false, false, false, true}},
	} {
		t.Run(c.name, func(t *testing.T) { othersStandStill(t, c.takes, c.want) })
	}
}

func othersStandStill(t *testing.T, takes time.Duration, stay [4]bool) {
	f := newFixture(t)
	f.must(f.store.Close())
	others := &ahead{Fake: f.clock, by: 2 * time.Millisecond}
	f.options.Clock = others
	var stood atomic.Bool // at the last change of the catalogue
	f.options.OnCommit = func(c *kv.Commit) {
		m, ok := c.Meaning.(*meaning.Meaning)
		switch {
		case !ok:
		case m.DDL != nil:
			stood.Store(others.users.Load() > 0)
		case others.users.Load() > 0:
			f.clock.Advance(takes)
			takes = 0
		}
	}
	f.open()
	f.createIndexes("{key: {t: 1}, name: 't', expireAfterSeconds: 10, hideExpired: true}")
	for i, left := range []int64{-1, 2, 3, 13} { // milliseconds
		f.must(f.insert(fmt.Sprintf("{_id: %d, t: new Date(%d)}", i, f.clock.Now().UnixMilli()+left-10_000)))
	}
	_, err := f.DropIndexes(context.Background(), testNS, func(c *catalog.Collection) ([]*index.Definition, error) {
		return []*index.Definition{c.Index("t")}, nil
	})
	f.must(err)
	if takes != 0 {
		t.Error("nothing was deleted while time stood still")
	}
	if !stood.Load() {
		t.Error("others hear of the time before they hear of the change")
	}
	if others.users.Load() != 0 {
		t.Error("time stands still behind the change")
	}
	for i, want := range stay {
		f.must(f.store.Write(context.Background(), testNS, creating, func(w *storage.Writer) error {
			_, there, err := w.GetByID(bson.Int32(int32(i)))
			if there != want {
				t.Errorf("document %d is there: %t", i, there)
			}
			return err
		}))
	}
}
