package query

import (
	"context"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/indexddl"
)

// benchInMemory is an Engine whose documents need no disk.
func benchInMemory(b *testing.B) *Engine {
	engine, err := pebblekv.OpenMemory(pebblekv.Options{CacheBytes: 64 << 20, MemTableBytes: 32 << 20})
	return benchOver(b, engine, err)
}

// benchOnDisk is an Engine with a cache of so many bytes, 0 for what is usual.
func benchOnDisk(b *testing.B, cacheBytes int64) *Engine {
	engine, err := pebblekv.Open(b.TempDir(), pebblekv.Options{CacheBytes: cacheBytes})
	return benchOver(b, engine, err)
}

func benchOver(b *testing.B, engine kv.Engine, err error) *Engine {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
	filters := match.NewParser()
	store, ddl, err := indexddl.Open(context.Background(), engine, storage.Options{Clock: clock.NewFake(time.UnixMilli(testTime)), Indexes: index.NewParser(filters)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close(); _ = engine.Close() })
	return New(store, ddl, filters)
}

// benchFill inserts n documents.
func benchFill(b *testing.B, e *Engine, ns namespace.NS, n int, doc func(i int) bson.Doc) {
	b.Helper()
	const batch = 1000
	for i := 0; i < n; i += batch {
		err := e.Store.Write(context.Background(), ns, storage.WriteOptions{Durability: kv.Buffered, Create: true, Now: testTime}, func(w *storage.Writer) error {
			for j := i; j < min(i+batch, n); j++ {
				if _, err := w.Insert(doc(j)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

func benchIndexes(b *testing.B, e *Engine, ns namespace.NS, specs ...string) {
	b.Helper()
	parser := index.NewParser(match.NewParser())
	_, err := e.DDL.CreateIndexes(context.Background(), ns, func(*catalog.Collection) (all []*index.Definition, err error) {
		for _, spec := range specs {
			d, err := parser.Parse(bson.MustDoc(spec), nil)
			if err != nil {
				return nil, err
			}
			all = append(all, d)
		}
		return all, nil
	})
	if err != nil {
		b.Fatal(err)
	}
}
