package storage

import (
	"context"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/storage/due"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// TestStandingPassesTheDead: a second TTL index keeps the entries of what another has swept. Who asks how far it is behind reads
// so many of them at a time, and begins behind them the next time.
func TestStandingPassesTheDead(t *testing.T) {
	const dead, step = 200, 60
	f := newFixture(t)
	f.createIndexes(testNS, `{key: {d: 1}, name: "d", expireAfterSeconds: 1}`, `{key: {a: 1}, name: "a", expireAfterSeconds: 1}`)
	insert := func(id int, d, a int64) {
		f.must(f.Write(context.Background(), testNS, creating, func(w *Writer) error {
			_, err := w.Insert(bson.Build().Int32("_id", int32(id)).Date("d", d).Date("a", a).Doc())
			return err
		}))
	}
	start := f.Now()
	for i := range dead {
		insert(i, start, start+int64(i))
	}
	f.clock.Advance(time.Hour)
	insert(dead, f.Now(), start+dead)
	insert(dead+1, f.Now(), start+dead+1)
	f.sweepTested(dead)

	front := &due.Front{}
	standing := func() (s due.Standing) {
		f.read(testNS, func(r *Reader) (err error) {
			rules := r.Rules().All()
			for i := range rules {
				if rules[i].Name() == "a" {
					s, err = r.Dates().Standing(&rules[i], f.Now(), front, step, 10)
				}
			}
			return err
		})
		return s
	}
	for range dead / step {
		if s := standing(); s != (due.Standing{Oldest: policy.Never, Keys: step}) {
			t.Fatalf("among the dead: %+v", s)
		}
	}
	want := due.Standing{Oldest: start + dead + 1000, Due: 2, Keys: dead%step + 2, All: true}
	if s := standing(); s != want {
		t.Fatalf("behind the dead: %+v, want %+v", s, want)
	}
	want.Keys = 2
	if s := standing(); s != want {
		t.Fatalf("once more: %+v, want %+v", s, want)
	}
	insert(dead+2, f.Now(), start-5)
	if s := standing(); s != want {
		t.Fatalf("what is dated back: %+v, want %+v", s, want)
	}
	front = &due.Front{} // who begins anew sees it
	if s := standing(); s.Oldest != start-5+1000 || s.Due != 1 || s.Keys != step || s.All {
		t.Fatalf("anew: %+v", s)
	}
}
