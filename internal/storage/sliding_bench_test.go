package storage

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/kv"
)

const slidingDocuments = 10_000

// BenchmarkSliding updates the same documents in turns, in a collection with a TTL index on _ts and in one without, with so many
// other indexes whose keys stay. The clock goes on by a tenth of a cell each round. bytes/op is what the commits say.
func BenchmarkSliding(b *testing.B) {
	for _, indexes := range []int{0, 3} {
		for _, sliding := range []bool{false, true} {
			b.Run(fmt.Sprintf("indexes=%d/sliding=%v", indexes, sliding), func(b *testing.B) { benchSliding(b, indexes, sliding) })
		}
	}
}

func benchSliding(b *testing.B, indexes int, sliding bool) {
	var specs []string
	if sliding {
		specs = append(specs, `{key: {_ts: 1}, name: "ts", expireAfterSeconds: 3840}`)
	}
	for _, field := range []string{"a", "name", "d"}[:indexes] {
		specs = append(specs, fmt.Sprintf(`{key: {%s: 1}, name: %q}`, field, field))
	}
	f := benchStore(b, specs...)
	written := int64(0)
	f.Store.options.OnCommit = func(c *kv.Commit) { written += int64(c.Size()) }
	write := func(i int, op func(*Writer) error) {
		if i%slidingDocuments == 0 {
			f.clock.Advance(6 * time.Second)
		}
		if err := f.Write(context.Background(), benchNS, creating, op); err != nil {
			b.Fatal(err)
		}
	}
	for i := range slidingDocuments {
		write(i, func(w *Writer) error { _, err := w.Insert(benchDocument(i)); return err })
	}
	update := func(i int) {
		write(i, func(w *Writer) error {
			old, ok, err := w.GetByID(bson.Int64(int64(i % slidingDocuments)))
			if !ok || err != nil {
				return fmt.Errorf("document %d: %v, %w", i, ok, err)
			}
			old = old.Clone()
			_, _, err = w.Update(old, touched(old.Doc, int64(i)))
			return err
		})
	}
	for i := range slidingDocuments { // the first update is another's cost
		update(i)
	}
	written = 0
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		update(slidingDocuments + i)
	}
	b.ReportMetric(float64(written)/float64(b.N), "bytes/op")
}

// touched is doc with a field changed that no index has.
func touched(doc bson.Doc, n int64) bson.Doc {
	b := bson.Build()
	for it := doc.Iter(); it.Next(); {
		if it.Key() != "touched" {
			b.Value(it.Key(), it.Value())
		}
	}
	return b.Int64("touched", n).Doc()
}
