package storage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/testseed"
)

// TestRaceBesideTransactions has transactions move amounts between accounts and refresh what is about to expire, beside plain writers, sweeps and
// vacuums, all at the same time. In the end the sum of the accounts is what it was, what was refreshed is there, nothing is stored that is due, and
// the counters and the histogram are right.
func TestRaceBesideTransactions(t *testing.T) {
	const accounts, sessions, rounds = 8, 16, 40
	seed := testseed.Of(t)
	for _, events := range []string{"documents", "summary"} {
		f := logged(t)
		_, err := f.CreateCollection(context.Background(), testNS, bson.MustDoc("{expirationEvents: '"+events+"'}"))
		f.must(err)
		f.createIndexes(testNS, "{key: {d: 1}, name: 'ttl', expireAfterSeconds: 10}", "{key: {a: 1}, name: 'a'}")
		document := func(id int, n, date int64) bson.Doc {
			return bson.Build().Int32("_id", int32(id)).Int64("n", n).Date("d", date).Int32("a", int32(id%3)).Doc()
		}
		never := f.Now() + 1e12
		f.must(f.Write(context.Background(), testNS, creating, func(w *Writer) error {
			for id := range accounts + sessions {
				date, n := never, int64(100)
				if id >= accounts {
					date, n = f.Now(), 0
				}
				if _, err := w.Insert(document(id, n, date)); err != nil {
					return err
				}
			}
			return nil
		}))
		add := func(w *Writer, id int, n, date int64) error {
			rec, there, err := w.GetByID(bson.Int32(int32(id)))
			if err != nil || !there {
				return errors.Join(err, fmt.Errorf("account %d is gone", id))
			}
			_, _, err = w.Update(rec.Clone(), document(id, rec.Doc.Lookup("n").Int64()+n, date))
			return err
		}
		tolerate := func(what string, err error) (ok bool) {
			if err != nil && !mongoerr.Is(err, mongoerr.WriteConflict) {
				t.Errorf("seed %d: %s: %v", seed, what, err)
			}
			return err == nil
		}
		stop := make(chan struct{})
		var work, keepers sync.WaitGroup
		for worker := range 4 {
			work.Go(func() {
				random := rand.New(rand.NewPCG(seed, uint64(worker)))
				for round := range rounds {
					from, to, session := random.IntN(accounts), random.IntN(accounts), accounts+random.IntN(sessions)
					if worker == 0 { // a plain writer, whose documents expire
						date := f.Now() - int64(random.IntN(12_000))
						id := 1000 + round
						tolerate("insert", f.Write(context.Background(), testNS, creating, func(w *Writer) error { _, err := w.Insert(document(id, 0, date)); return err }))
						tolerate("move", f.Write(context.Background(), testNS, creating, func(w *Writer) error {
							return errors.Join(add(w, from, -1, never), add(w, from, 1, never))
						}))
						f.clock.Advance(time.Duration(random.IntN(1000)) * time.Millisecond)
						continue
					}
					txn, err := f.BeginTransaction(context.Background(), TransactionOptions{Now: f.Now(), LockTimeout: -1})
					if err != nil {
						t.Error(err)
						return
					}
					statement := func(g func(w *Writer) error) bool {
						return tolerate("statement", txn.Write(context.Background(), testNS, WriteOptions{}, g))
					}
					ok := statement(func(w *Writer) error { return add(w, from, -5, never) }) &&
						statement(func(w *Writer) error { return add(w, to, 5, never) }) &&
						statement(func(w *Writer) error { // refreshes a session, or begins it again
							rec, there, err := w.GetByID(bson.Int32(int32(session)))
							switch {
							case err != nil:
								return err
							case there:
								_, _, err = w.Update(rec.Clone(), document(session, 0, f.Now()))
							default:
								_, err = w.Insert(document(session, 0, f.Now()))
							}
							return err
						})
					if ok && random.IntN(5) > 0 {
						tolerate("commit", txn.Commit(context.Background(), kv.Buffered))
					} else {
						txn.Rollback()
					}
				}
			})
		}
		expire := func() {
			c := f.tested()
			_, _, err := f.Sweep(context.Background(), c.ID, c.order.Rule, f.Now())
			f.must(err)
			_, err = f.deleteDue(context.Background(), c, c.order.Rule, f.Now(), besideWriters)
			f.must(err)
		}
		vacuum := func(to bool) {
			for more := true; more; more = more && to {
				var err error
				_, more, err = f.Vacuum(context.Background(), f.tested().ID, 7)
				f.must(err)
			}
		}
		keepers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					expire()
					vacuum(false)
				}
			}
		})
		work.Wait()
		close(stop)
		keepers.Wait()
		f.clock.Advance(5 * time.Second)
		expire()
		sum, total := int64(0), int64(0)
		f.read(testNS, func(r *Reader) error {
			c, err := r.Scan(RecordScan{})
			if err != nil {
				return err
			}
			defer c.Close()
			for c.Next() {
				doc := c.Record().Doc
				sum += doc.Lookup("n").Int64()
				total++
				if date := doc.Lookup("d").Millis(); date+10_000 <= f.Now() {
					t.Errorf("seed %d: %s is still there", seed, doc)
				}
			}
			n, err := r.Stored()
			if n != total {
				t.Errorf("seed %d: %d are counted of %d", seed, n, total)
			}
			return errors.Join(err, c.Err())
		})
		if sum != 100*accounts {
			t.Errorf("seed %d: the accounts have %d", seed, sum)
		}
		vacuum(true)
		f.validate(testNS)
		f.wantHistogram()
	}
}

// wantHistogram counts the tested collection anew and wants its histogram to be the same.
func (f *fixture) wantHistogram() {
	f.t.Helper()
	histogram := f.tested().order.Histogram
	view, err := f.View(context.Background())
	f.must(err)
	counted, err := countAnew(view.read(f.tested()))
	f.must(errors.Join(err, view.Close()))
	counted.Done()
	if text := histogram.Differs(counted); text != "" {
		f.t.Fatalf("the histogram: %s", text)
	}
}
