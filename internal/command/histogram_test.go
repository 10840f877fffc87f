package command

import (
	"slices"
	"testing"
)

// The bounds rise, and are those of MongoDB where its manual shows them.
func TestHistogramBounds(t *testing.T) {
	bounds := histogramBounds()
	if !slices.IsSorted(bounds[:]) || bounds[0] != 0 || bounds[len(bounds)-1] != 1<<40 {
		t.Fatalf("%v", bounds)
	}
	for _, want := range []int64{2, 1024, 2048, 3072, 1 << 20, 1572864, 1 << 21, 1 << 22} {
		if !slices.Contains(bounds[:], want) {
			t.Errorf("no bucket begins at %d: %v", want, bounds)
		}
	}
	for i, bound := range bounds {
		if bucketOf(bound) != i || bound > 0 && bucketOf(bound-1) != i-1 {
			t.Errorf("%d is in bucket %d, and what is less in %d", bound, bucketOf(bound), bucketOf(bound-1))
		}
	}
	if bucketOf(-1) != 0 || bucketOf(1<<62) != len(bounds)-1 {
		t.Error("what is out of bounds is in no bucket")
	}
}
