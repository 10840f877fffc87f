package main

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
)

// growth measures the same operations in a collection of a given size, with one secondary index.
type growth struct {
	size int64
	next atomic.Int64
}

func growthRows(s *settings) (out []row) {
	for _, size := range s.sizes {
		out = append(out, row{name: "growth-" + strconv.Itoa(size), long: true, workload: &growth{size: int64(size)},
			about: fmt.Sprintf("insert, find and range in a collection of %d", size)})
	}
	return out
}

// indexesRows are bulk with 0 to -indexes secondary indexes.
func indexesRows(s *settings) (out []row) {
	for n := range s.indexes + 1 {
		out = append(out, row{name: "indexes-" + strconv.Itoa(n), long: true, workload: &bulk{indexes: n},
			about: fmt.Sprintf("bulk with %d secondary indexes", n)})
	}
	return out
}

func (w *growth) prepare(ctx context.Context, b *bench) error {
	coll := b.db.Collection("docs")
	if err := createIndex(ctx, coll, secondary()[0]); err != nil {
		return err
	}
	m := b.target.meter()
	if err := b.load(ctx, coll, 0, w.size); err != nil {
		return err
	}
	w.next.Store(w.size)
	u := m.stop()
	out := metrics{"docs_s": float64(w.size) / u.wall.Seconds()}
	u.into(out, w.size)
	return b.tell("/load", out)
}

// measure inserts last, so that the reads of the first run see the size they are named after.
func (w *growth) measure(ctx context.Context, b *bench) error {
	coll := b.db.Collection("docs")
	for _, step := range []struct {
		name string
		op   operation
	}{{"/find", findByID(coll, w.size)}, {"/range", neighbours(coll, w.size, false)}, {"/insert", insertOne(coll, &w.next)}} {
		seen, err := b.loop().run(ctx, step.op)
		if err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		if err := b.tell(step.name, seen.metrics()); err != nil {
			return err
		}
	}
	return nil
}
