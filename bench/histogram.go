package main

import (
	"math/bits"
	"time"
)

// A histogram counts durations in buckets that are at most 1/64 of their value wide, so that millions of them take little
// memory and quantiles are right within 1.6 %. The largest is kept as it was.
type histogram struct {
	counts [histogramBuckets]int64
	n      int64
	most   time.Duration
}

const (
	fineBits         = 6 // 2^6 buckets from one power of two to the next
	coarseBits       = 42
	histogramBuckets = (coarseBits - fineBits + 1) << fineBits
)

// longest is what the last bucket stands for: about 73 minutes.
const longest = 1<<coarseBits - 1

// bucketOf: below 2^fineBits each nanosecond has its own; above, the leading bit chooses a row and the next ones the place.
func bucketOf(d time.Duration) int {
	v := uint64(min(max(d, 0), longest))
	shift := max(bits.Len64(v)-fineBits-1, 0)
	return shift<<fineBits + int(v>>shift)
}

// upper is the largest duration of a bucket.
func upper(bucket int) time.Duration {
	shift := max(bucket>>fineBits-1, 0)
	return time.Duration(bucket-shift<<fineBits+1)<<shift - 1
}

func (h *histogram) add(d time.Duration) {
	h.counts[bucketOf(d)]++
	h.n++
	h.most = max(h.most, d)
}

func (h *histogram) merge(other *histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.n += other.n
	h.most = max(h.most, other.most)
}

// quantile is the smallest duration that a share q of all does not exceed; 0 of none.
func (h *histogram) quantile(q float64) time.Duration {
	rank := int64(q * float64(h.n))
	if float64(rank) < q*float64(h.n) {
		rank++
	}
	var seen int64
	for i, n := range h.counts {
		if seen += n; seen >= max(rank, 1) {
			return min(upper(i), h.most)
		}
	}
	return h.most
}

// into adds the quantiles under names that begin with prefix.
func (h *histogram) into(m metrics, prefix string) {
	if h.n == 0 {
		return
	}
	m[prefix+"p50_ms"] = millis(h.quantile(0.50))
	m[prefix+"p99_ms"] = millis(h.quantile(0.99))
	m[prefix+"p999_ms"] = millis(h.quantile(0.999))
	m[prefix+"max_ms"] = millis(h.most)
}
