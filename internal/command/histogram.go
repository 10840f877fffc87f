package command

import (
	"math/bits"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/bson"
)

// histogram counts durations by MongoDB's bounds: powers of two, and from 2048 µs to 2 s the middles between them.
type histogram struct{ counts [51]atomic.Int64 }

// histogramBounds are the least microseconds of each bucket.
func histogramBounds() [51]int64 {
	bounds, n := [51]int64{}, 1
	add := func(micros int64) { bounds[n] = micros; n++ }
	for power := int64(2); n < len(bounds); power *= 2 {
		add(power)
		if power >= 2048 && power <= 1<<20 {
			add(power + power/2)
		}
	}
	return bounds
}

func (h *histogram) add(micros int64) { h.counts[bucketOf(micros)].Add(1) }

// bucketOf is the last bucket whose bound is not above micros.
func bucketOf(micros int64) int {
	if micros < 2 {
		return 0
	}
	power := bits.Len64(uint64(micros)) - 1
	switch {
	case power < 11:
		return power
	case power <= 20:
		return 11 + 2*(power-11) + int(micros>>(power-1))&1
	}
	return min(31+power-21, 50)
}

// print appends the buckets that are not empty; h may be nil.
func (h *histogram) print(b *bson.Builder) {
	b.Array("histogram")
	if h != nil {
		n := 0
		for i, bound := range histogramBounds() {
			if count := h.counts[i].Load(); count > 0 {
				b.Object(bson.IndexKey(n)).Int64("micros", bound).Int64("count", count).End()
				n++
			}
		}
	}
	b.End()
}
