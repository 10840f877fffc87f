package main

import (
	"math"
	"math/rand/v2"
)

// zipfConstant is YCSB's: with it one key in a million gets some 6 % of the requests.
const zipfConstant = 0.99

// zipf draws numbers from 0 on, small ones most: number i with a probability proportional to 1/(i+1)^0.99. It is the
// algorithm of Gray et al., "Quickly Generating Billion-Record Synthetic Databases" (SIGMOD 1994), that YCSB uses. (math/rand's Zipf wants an exponent above 1.)
type zipf struct {
	items            int64
	zeta             float64 // the sum of all weights
	alpha, eta, half float64
}

func newZipf(items int64) *zipf {
	z := &zipf{items: items, alpha: 1 / (1 - zipfConstant), half: math.Pow(0.5, zipfConstant)}
	for i := range items {
		z.zeta += 1 / math.Pow(float64(i+1), zipfConstant)
	}
	z.eta = (1 - math.Pow(2/float64(items), 1-zipfConstant)) / (1 - (1+z.half)/z.zeta)
	return z
}

func (z *zipf) next(r *rand.Rand) int64 {
	u := r.Float64()
	switch uz := u * z.zeta; {
	case uz < 1 || z.items == 1:
		return 0
	case uz < 1+z.half || z.items == 2:
		return 1
	}
	n := int64(float64(z.items) * math.Pow(z.eta*u-z.eta+1, z.alpha))
	return min(n, z.items-1)
}

// scatter spreads neighbours over all 64 bits (the finalizer of MurmurHash3), so that the keys asked for most do not lie
// side by side. It is one to one.
func scatter(n int64) uint64 {
	h := uint64(n) + 0x9e3779b97f4a7c15
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
