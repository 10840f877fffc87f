package ownership

import (
	"context"
	"hash/maphash"
	"math/bits"
)

const stripeCount = 64

// latches are Latches between goroutines.
type latches struct {
	seed  maphash.Seed
	locks [stripeCount]lock
}

func newLatches() *latches { return &latches{seed: maphash.MakeSeed()} }

// Of is Latches'.
func (l *latches) Of(key []byte) Stripes { return 1 << (maphash.Bytes(l.seed, key) % stripeCount) }

// Acquire is Latches': it takes them in their order.
func (l *latches) Acquire(ctx context.Context, set Stripes) error {
	for rest := set; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(uint64(rest))
		if err := l.locks[i].Acquire(ctx, Exclusive); err != nil {
			l.Release(set & (1<<i - 1))
			return err
		}
	}
	return nil
}

// Release is Latches'.
func (l *latches) Release(set Stripes) {
	for ; set != 0; set &= set - 1 {
		l.locks[bits.TrailingZeros64(uint64(set))].Release(Exclusive)
	}
}
