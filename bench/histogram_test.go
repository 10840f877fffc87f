package main

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestBuckets(t *testing.T) {
	below := time.Duration(-1)
	for i := range histogramBuckets {
		top := upper(i)
		if top <= below || bucketOf(top) != i || bucketOf(below+1) != i {
			t.Fatalf("bucket %d ends at %d, the one before at %d; those fall into %d and %d", i, top, below, bucketOf(top), bucketOf(below+1))
		}
		if width := top - below; width > 1 && float64(width) > float64(top)/64+1 {
			t.Fatalf("bucket %d up to %d is %d wide", i, top, width)
		}
		below = top
	}
	if below != longest || bucketOf(-time.Second) != 0 || bucketOf(time.Duration(1<<62)) != histogramBuckets-1 {
		t.Errorf("the buckets end at %d", below)
	}
}

func TestQuantiles(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	var whole, left, right histogram
	var exact []time.Duration
	for i := range 10_000 {
		d := time.Duration(r.ExpFloat64() * float64(time.Millisecond))
		exact = append(exact, d)
		whole.add(d)
		[]*histogram{&left, &right}[i%2].add(d)
	}
	if left.merge(&right); left != whole {
		t.Error("two halves merged are not the whole")
	}
	slices.Sort(exact)
	for _, q := range []float64{0, 0.001, 0.5, 0.99, 0.999, 1} {
		want := exact[max(0, int(q*10_000)-1)]
		if got := whole.quantile(q); got < want || float64(got) > float64(want)*(1+1.0/64)+1 {
			t.Errorf("quantile %v is %v, and should be %v (seed %d)", q, got, want, seed)
		}
	}
	if got := (&histogram{}).quantile(0.5); got != 0 {
		t.Errorf("the median of nothing is %v", got)
	}
}
