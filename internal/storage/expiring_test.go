package storage

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/storage/ttlchange"
	"github.com/ebbdb/ebb/internal/testseed"
)

// TestExpiring compares what keys say of a TTL that changes with what the documents say, in collections of every kind.
func TestExpiring(t *testing.T) {
	seed := testseed.Of(t)
	byKeys := 0
	for i, kind := range datedCollections {
		t.Run(kind.name, func(t *testing.T) {
			f := newFixture(t)
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			_, err := f.CreateCollection(context.Background(), datedNS, bson.MustDoc(kind.options))
			f.must(err)
			for n := range 200 {
				if n == 50 {
					f.createIndexes(datedNS, kind.indexes...)
				}
				f.must(f.insert(datedNS, randomDated(random, n)))
			}
			f.reclusterSome(random.IntN(100))
			f.clock.Advance(15 * time.Second)
			for range 20 {
				f.read(datedNS, func(r *Reader) error {
					next := f.otherTTL(random, r.Catalog())
					before, after := r.BeforeChange(), next.ExpiryRules()
					byDocuments, err := before.Expiring(after, func(Record) error { return nil })
					f.must(err)
					quick, err := before.Expiring(after, nil)
					if len(quick.TTLs) == 1 && before.KeysTell(&quick.TTLs[0]) {
						byKeys++
						quick.TTLs[0].Already = byDocuments.TTLs[0].Already // of hidden ones the documents do not tell
					}
					if got, want := expiringText(quick), expiringText(byDocuments); got != want {
						t.Errorf("from the keys %s\nfrom the documents %s", got, want)
					}
					return err
				})
			}
		})
	}
	if byKeys < 20 {
		t.Errorf("keys were asked only %d times", byKeys)
	}
}

// otherTTL is c with one of its TTLs changed, or two.
func (f *fixture) otherTTL(random *rand.Rand, c *catalog.Collection) *catalog.Collection {
	seconds := func() int32 { return random.Int32N(100_000) >> random.IntN(17) }
	next := c
	if c.Options.HasTTL {
		next = next.WithOptions(c.Options)
		next.Options.ExpireAfterSeconds = int64(seconds())
	}
	if len(c.Indexes) == 0 || next != c && random.IntN(2) == 0 {
		return next
	}
	defs := append([]*index.Definition(nil), c.Indexes...)
	i := random.IntN(len(defs))
	if !defs[i].TTL {
		return next
	}
	changed, err := f.parser.Changed(defs[i], []index.Change{{Option: "expireAfterSeconds", Value: bson.Int32(max(seconds(), 1))}})
	f.must(err)
	defs[i] = changed
	return next.WithIndexes(defs)
}

func expiringText(e ttlchange.Effect) string {
	text := fmt.Sprintf("%d of %d", e.Would, e.Documents)
	for _, t := range e.TTLs {
		text += fmt.Sprintf(", %q %d s: %d (%d)", t.Rule.Name(), t.Rule.Seconds, t.Would, t.Already)
	}
	return text
}
