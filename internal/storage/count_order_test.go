package storage

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/storage/expiry"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
)

// TestCountInSlices: a count that goes on between writes comes to what is there at its end, and until then nothing is swept at
// once from a large collection, nor waited for.
func TestCountInSlices(t *testing.T) {
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 0))
		f := newFixture(t)
		f.createIndexes(testNS, `{key: {d: 1}, name: "d", expireAfterSeconds: 1}`, `{key: {a: 1}, name: "a"}`)
		date := func() int64 { return epoch.UnixMilli() + random.Int64N(100_000) - 50_000 }
		for i := range 200 {
			f.insertDated(int32(i), date())
		}
		f.reopen()
		f.Bounds().Few, f.Bounds().CountedAtOnce = 4, 100
		coll := f.tested()
		if done, ok, err := f.Sweep(context.Background(), coll.ID, coll.order.Rule, f.Now()); ok || err != nil || !done.Uncounted {
			t.Fatalf("swept %+v, %v, %v without a count", done, ok, err)
		}
		slices := 0
		for more := true; more; slices++ {
			var err error
			more, err = f.CountOrder(context.Background(), coll.ID, 1+random.IntN(30))
			f.must(err)
			for range 5 {
				switch id := random.IntN(250); random.IntN(3) {
				case 0:
					f.insertDated(int32(1000+random.IntN(1e6)), date())
				case 1:
					_, err = f.change(testNS, bson.Int32(int32(id)), "")
				default:
					_, err = f.change(testNS, bson.Int32(int32(id)), fmt.Sprintf(`{_id: %d, d: Date(%d), s: "%*d"}`, id, date(), random.IntN(50), 1))
				}
				f.must(err)
			}
		}
		if slices < 7 {
			t.Errorf("seed %d: counted in %d slices", seed, slices)
		}
		got := f.tested().order.Histogram
		if !got.IsKnown() {
			t.Fatalf("seed %d: nothing is known", seed)
		}
		f.read(testNS, func(r *Reader) error {
			want, err := countAnew(r)
			if text := got.Differs(want); text != "" {
				t.Errorf("seed %d: %s", seed, text)
			}
			return err
		})
		f.clock.Advance(time.Hour)
		if done, ok, err := f.Sweep(context.Background(), coll.ID, f.tested().order.Rule, f.Now()); !ok || err != nil || done.Documents < 100 {
			t.Errorf("seed %d: swept %+v, %v, %v", seed, done, ok, err)
		}
		f.validate(testNS)
	}
}

// countAnew is the histogram of what there is.
func countAnew(r *Reader) (*expiryorder.Histogram, error) {
	dates, order := r.Dates(), *r.c.order
	order.Histogram = expiryorder.NewHistogram(false)
	dates.Order = &order
	_, err := expiry.CountOrder(dates, nil, math.MaxInt)
	return order.Histogram, err
}

// TestDropWhileCounting: a count that is not done holds nothing of a collection that is gone, or of a store that is closed.
func TestDropWhileCounting(t *testing.T) {
	for name, end := range map[string]func(f *fixture){
		"drop": func(f *fixture) {
			_, err := f.DropCollection(context.Background(), testNS)
			f.must(err)
		},
		"dropDatabase": func(f *fixture) {
			_, err := f.DropDatabase(context.Background(), testNS.DB)
			f.must(err)
		},
		"dropIndex": func(f *fixture) {
			f.must(f.dropIndex("d"))
			more, err := f.CountOrder(context.Background(), f.tested().ID, 1)
			if f.must(err); more {
				t.Error("there is more to count of no order")
			}
		},
		"close": func(f *fixture) { f.must(f.Store.Close()) },
	} {
		f := newFixture(t)
		f.createIndexes(testNS, `{key: {d: 1}, name: "d", expireAfterSeconds: 1}`)
		for i := range 20 {
			f.insertDated(int32(i), epoch.UnixMilli()+1e6)
		}
		f.reopen()
		coll := f.tested()
		more, err := f.CountOrder(context.Background(), coll.ID, 5)
		if f.must(err); !more || !f.IsCounting(coll.ID) {
			t.Errorf("%s: the count is done", name)
		}
		end(f)
		if f.IsCounting(coll.ID) {
			t.Errorf("%s: the count still reads", name)
		}
	}
}
