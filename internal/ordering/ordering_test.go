package ordering

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSorts(t *testing.T) {
	for _, n := range []int{0, 1, 2, 100, 5000} {
		in := make([]int, n)
		for i := range in {
			in[i] = rand.IntN(100)
		}
		for name, sort := range map[string]func([]int, func(int, int) int, func() error) error{"stable": Stable[int], "any": Any[int]} {
			for _, ask := range []func() error{nil, func() error { return nil }} {
				got := slices.Clone(in)
				if err := sort(got, cmp.Compare, ask); err != nil || !slices.IsSorted(got) || len(got) != n {
					t.Errorf("%s of %d: %v", name, n, err)
				}
			}
		}
	}
}

// TestEnds counts comparisons: a sort that has ended makes no more.
func TestEnds(t *testing.T) {
	stop := errors.New("stop")
	for name, sort := range map[string]func([]int, func(int, int) int, func() error) error{"stable": Stable[int], "any": Any[int]} {
		n := 0
		err := sort(rand.Perm(100_000), func(a, b int) int { n++; return a - b }, func() error { return stop })
		if !errors.Is(err, stop) || n > comparisonsPerAsk {
			t.Errorf("%s: %v after %d", name, err, n)
		}
	}
}

// TestLargeOnesAsk: a comparison of what is large asks by itself.
func TestLargeOnesAsk(t *testing.T) {
	stop := errors.New("stop")
	large := func(int) int { return comparisonsPerAsk * bytesPerComparison }
	for name, sort := range map[string]func([]int, func(int, int) int, func(int) int, func() error) error{"stable": StableSized[int], "any": AnySized[int]} {
		n := 0
		err := sort(rand.Perm(100), func(a, b int) int { n++; return a - b }, large, func() error { return stop })
		if !errors.Is(err, stop) || n > 0 {
			t.Errorf("%s: %v after %d", name, err, n)
		}
	}
}
