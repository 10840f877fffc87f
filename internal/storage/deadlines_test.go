package storage

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/due"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/walk"
	"github.com/ebbdb/ebb/internal/testseed"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

var datedNS = namespace.NS{DB: "db", Coll: "c"}

// datedCollections are collections of every kind that has a TTL.
var datedCollections = []struct {
	name, options string
	indexes       []string
}{
	{"date", "{}", []string{"{key: {d: 1}, name: 'd', expireAfterSeconds: 10}"}},
	{"descending", "{}", []string{"{key: {d: -1}, name: 'd', expireAfterSeconds: 10}"}},
	{"partial", "{}", []string{"{key: {d: 1}, name: 'd', expireAfterSeconds: 10, partialFilterExpression: {n: {$gt: 5}}}"}},
	{"several", "{}", []string{"{key: {d: 1}, name: 'd', expireAfterSeconds: 10}", "{key: {e: -1}, name: 'e', expireAfterSeconds: 0, sparse: true}",
		"{key: {_ts: 1}, name: 'ts', expireAfterSeconds: 20}"}},
	{"_ts", "{}", []string{"{key: {_ts: 1}, name: 'ts', expireAfterSeconds: 20}"}},
	{"_ts without default", "{}", []string{"{key: {_ts: 1}, name: 'ts', expireAfterSeconds: -1}"}},
	{"clustered", "{clusteredIndex: {key: {_id: 1}, unique: true}, expireAfterSeconds: 10}", nil},
	{"clustered and date", "{clusteredIndex: {key: {_id: 1}, unique: true}, expireAfterSeconds: 10}", []string{"{key: {d: 1}, name: 'd', expireAfterSeconds: 10}"}},
	{"time series", "{timeseries: {timeField: 't', metaField: 'm', granularity: 'seconds', bucketMaxSpanSeconds: 3600}, expireAfterSeconds: 10}",
		[]string{"{key: {t: 1}, name: 't', expireAfterSeconds: 5, partialFilterExpression: {m: {$gt: 1}}}"}},
}

// TestDeadlines compares what the keys say of random documents with what the rule says of each, in collections of every
// kind; then breaks every document, and asks again.
func TestDeadlines(t *testing.T) {
	seed := testseed.Of(t)
	for i, kind := range datedCollections {
		t.Run(kind.name, func(t *testing.T) {
			f := newFixture(t)
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			_, err := f.CreateCollection(context.Background(), datedNS, bson.MustDoc(kind.options))
			f.must(err)
			made := random.IntN(300) // what is there before is not in the order of expiry, and some of it is moved into it
			for n := range 300 {
				if n == made {
					f.createIndexes(datedNS, kind.indexes...)
				}
				f.must(f.insert(datedNS, randomDated(random, n)))
				f.clock.Advance(time.Duration(random.IntN(100)) * time.Millisecond)
			}
			f.reclusterSome(random.IntN(300))
			f.checkDeadlines()
			before := f.deadlinesText()
			f.breakDocuments()
			if after := f.deadlinesText(); after != before {
				t.Errorf("documents were read:\n%s\nbefore\n%s", after, before)
			}
		})
	}
}

func (f *fixture) reclusterSome(n int) {
	f.t.Helper()
	_, _, err := f.Recluster(context.Background(), f.Catalog().Collection(datedNS).ID, n)
	f.must(err)
}

func randomDated(random *rand.Rand, n int) string {
	date := func() string {
		switch random.IntN(8) {
		case 0:
			return "null"
		case 1:
			return "'2001-01-01'"
		case 2:
			return "new Date(9223372036854775807)"
		case 3:
			return "new Date(-5)"
		}
		return fmt.Sprintf("new Date(%d)", epoch.UnixMilli()-60_000+random.Int64N(120_000))
	}
	dates := func() string {
		if random.IntN(3) > 0 {
			return date()
		}
		all := []string{}
		for range random.IntN(4) {
			all = append(all, date())
		}
		return "[" + strings.Join(all, ", ") + "]"
	}
	ttl := ""
	if random.IntN(2) == 0 {
		ttl = fmt.Sprintf(", ttl: %d", random.IntN(60)-2)
	}
	id := fmt.Sprint(n)
	if random.IntN(3) > 0 {
		id = fmt.Sprintf("new Date(%d)", epoch.UnixMilli()-300_000+int64(n)*1000)
	}
	return fmt.Sprintf("{_id: %s, t: new Date(%d), m: %d, n: %d, d: %s, e: %s%s}",
		id, epoch.UnixMilli()+random.Int64N(20_000_000)-10_000_000, random.IntN(4), random.IntN(10), dates(), dates(), ttl)
}

// checkDeadlines compares with the documents.
func (f *fixture) checkDeadlines() {
	f.t.Helper()
	f.read(datedNS, func(r *Reader) error {
		for i := range r.Rules().All() {
			rule := &r.Rules().All()[i]
			var want []int64
			c, err := r.Unhidden().Scan(RecordScan{})
			if err != nil {
				return err
			}
			for c.Next() {
				if deadline, _ := rule.Deadline(c.Record().Doc, c.Record().Modified); deadline != policy.Never {
					want = append(want, deadline)
				}
			}
			f.must(c.Close())
			got := f.deadlines(r, rule)
			if rule.Kind != policy.Series && !slices.IsSorted(got) {
				f.t.Errorf("%s %q: not in order", rule.Field(), rule.Name())
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) || len(want) == 0 {
				f.t.Errorf("%s %q: got %d deadlines\n%v\nwant %d\n%v", rule.Field(), rule.Name(), len(got), got, len(want), want)
			}
			if rule.Kind != policy.Series {
				f.checkCursor(r, rule, want)
			}
		}
		return nil
	})
}

func (f *fixture) deadlines(r *Reader, rule *policy.Rule) (got []int64) {
	f.t.Helper()
	w, err := r.Dates().Deadlines(rule, 1_000_000, func(deadline int64, _ string) { got = append(got, deadline) })
	f.must(err)
	if !w.All || w.Keys < int64(len(got)) {
		f.t.Errorf("%q: %+v", rule.Name(), w)
	}
	return got
}

// checkCursor walks the deadlines of the rule with cursors that are closed after so many entries and go on where they stood: each document has to
// come once at its deadline, in order, within the bounds.
func (f *fixture) checkCursor(r *Reader, rule *policy.Rule, want []int64) {
	f.t.Helper()
	middle := want[len(want)/2]
	for _, bounds := range [][2]int64{{math.MinInt64, math.MaxInt64}, {math.MinInt64, middle}, {middle, math.MaxInt64}, {middle, middle}, {want[0] - 1, want[0]}} {
		var inside []int64
		for _, deadline := range want {
			if bounds[0] < deadline && deadline <= bounds[1] {
				inside = append(inside, deadline)
			}
		}
		for _, batch := range []int{1, 3, 1000} {
			var got []int64
			met := map[string]bool{}
			var behind *due.Place
			for more := true; more; {
				c, err := r.Dates().Cursor(rule, bounds[0], bounds[1], behind)
				f.must(err)
				for range batch {
					if more, err = c.Next(); err != nil || !more {
						break
					}
					id, err := c.ID()
					f.must(err)
					rec, ok, err := r.Unhidden().Get(id)
					f.must(err)
					if deadline, _ := rule.Deadline(rec.Doc, rec.Modified); ok && deadline == c.Deadline() {
						if met[string(id)] {
							f.t.Errorf("%q came twice", rec.Doc)
						}
						met[string(id)] = true
						got = append(got, deadline)
						if basis := rule.Basis(rec.Doc); basis != c.Basis() {
							f.t.Errorf("%s: basis %s, want %s", rec.Doc, c.Basis(), basis)
						}
					}
					behind = c.Place()
				}
				f.must(err)
				f.must(c.Close())
			}
			if !slices.Equal(got, inside) {
				f.t.Errorf("%s %q, cursors of %d in %d: got %d\n%v\nwant %d\n%v", rule.Field(), rule.Name(), batch, bounds, len(got), got, len(inside), inside)
			}
		}
	}
}

func (f *fixture) deadlinesText() (text string) {
	f.read(datedNS, func(r *Reader) error {
		for i := range r.Rules().All() {
			text += fmt.Sprintln(f.deadlines(r, &r.Rules().All()[i]))
		}
		return nil
	})
	return text
}

// breakDocuments puts something that is no record in the place of each.
func (f *fixture) breakDocuments() {
	f.t.Helper()
	x, err := f.engine.Begin()
	f.must(err)
	f.read(datedNS, func(r *Reader) error {
		c, err := r.Unhidden().Scan(RecordScan{})
		if err != nil {
			return err
		}
		for c.Next() {
			x.Set(layout.RecordKey(nil, r.Catalog().ID, c.Record().ID), []byte{0xFF})
		}
		return c.Close()
	})
	f.must(x.Commit(context.Background(), kv.Buffered))
	v, err := f.View(context.Background())
	f.must(err)
	defer v.Close()
	r, _ := v.Collection(datedNS)
	if c, err := r.Unhidden().Scan(RecordScan{}); err != nil || c.Next() || c.Err() == nil || c.Close() != nil {
		f.t.Error("the documents are not broken")
	}
}

// TestDeadlinesEnd ends walks at their limit and with their context.
func TestDeadlinesEnd(t *testing.T) {
	f := newFixture(t)
	f.createIndexes(datedNS, "{key: {d: 1}, name: 'd', expireAfterSeconds: 10}")
	for n := range 2 * walk.StepsBetweenChecks {
		f.must(f.insert(datedNS, fmt.Sprintf("{_id: %d, d: new Date(%d)}", n, n*1000)))
	}
	ctx, cancel := context.WithCancel(context.Background())
	v, err := f.View(ctx)
	f.must(err)
	defer v.Close()
	r, _ := v.Collection(datedNS)
	rule := &r.Rules().All()[0]
	for _, limit := range []int64{1, 7, 2*walk.StepsBetweenChecks - 1, 2 * walk.StepsBetweenChecks} {
		last, n := int64(0), int64(0)
		w, err := r.Dates().Deadlines(rule, limit, func(deadline int64, _ string) { last = deadline; n++ })
		if err != nil || w.Keys != limit || n != limit || last != (limit-1)*1000+10_000 || w.All != (limit == 2*walk.StepsBetweenChecks) {
			t.Errorf("limit %d: %+v, %d, last %d, %v", limit, w, n, last, err)
		}
	}
	cancel()
	if w, err := r.Dates().Deadlines(rule, 1_000_000, func(int64, string) {}); err == nil || w.All {
		t.Errorf("cancelled: %+v %v", w, err)
	}
}

// TestDeadlinesOfSwept sweeps documents at once, by one TTL, and looks at what other TTLs say of those that are left: the
// entries of the swept ones are still there.
func TestDeadlinesOfSwept(t *testing.T) {
	f := newFixture(t)
	f.Bounds().Few = 1
	f.createIndexes(datedNS, "{key: {d: 1}, name: 'd', expireAfterSeconds: 0}", "{key: {e: -1}, name: 'e', expireAfterSeconds: 0}",
		"{key: {_ts: 1}, name: 'ts', expireAfterSeconds: 3600}")
	for n := range 100 {
		f.must(f.insert(datedNS, fmt.Sprintf("{_id: %d, d: new Date(%d), e: new Date(%d)}", n, epoch.UnixMilli()+int64(n), epoch.UnixMilli()+1e6-int64(n))))
	}
	f.clock.Advance(49 * time.Millisecond)
	var c *Reader
	f.read(datedNS, func(r *Reader) error { c = r; return nil })
	done, ok, err := f.Sweep(context.Background(), c.Catalog().ID, &c.Rules().All()[0], f.Now())
	if err != nil || !ok || done.Documents != 50 {
		t.Fatal(done, ok, err)
	}
	f.read(datedNS, func(r *Reader) error {
		dead, documents, err := r.Dead()
		if dead != 50 || documents != 50 {
			t.Errorf("%d dead of %d", dead, documents)
		}
		return err
	})
	f.checkDeadlines()
}
