package main

import (
	"math"
	"testing"
)

// TestZipf draws and compares the shares of the first items with what they should be.
func TestZipf(t *testing.T) {
	const items, draws = 1000, 200_000
	z, r, seen := newZipf(items), dice(1), make([]int, items)
	for range draws {
		seen[z.next(r)]++ // panics when it is out of bounds
	}
	var sum float64
	for i := range items {
		sum += math.Pow(float64(i+1), -zipfConstant)
	}
	for i, slack := range map[int]float64{0: 0.05, 1: 0.05, 9: 0.3, 99: 0.3} {
		want := draws * math.Pow(float64(i+1), -zipfConstant) / sum
		if got := float64(seen[i]); math.Abs(got-want) > slack*want {
			t.Errorf("item %d came %v times, expected %.0f", i, got, want)
		}
	}
	if seen[0] < 50*seen[500] {
		t.Errorf("item 0 came %d times and item 500 %d times: that is hardly skewed", seen[0], seen[500])
	}
}

func TestZipfOfFew(t *testing.T) {
	for items := range int64(4) {
		z, r := newZipf(items+1), dice(2)
		for range 1000 {
			if n := z.next(r); n < 0 || n > items {
				t.Fatalf("%d of %d items", n, items+1)
			}
		}
	}
}

func TestScatter(t *testing.T) {
	seen := map[uint64]int64{}
	for n := range int64(100_000) {
		h := scatter(n)
		if other, ok := seen[h]; ok {
			t.Fatalf("%d and %d are both scattered to %d", n, other, h)
		}
		seen[h] = n
	}
}
