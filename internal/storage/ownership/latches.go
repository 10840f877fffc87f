package ownership

import (
	"context"
	"hash/maphash"
	"math/bits"
)

// Stripes is a set of latches.
type Stripes uint64

const stripeCount = 64

// Latches keep apart the operations that have conflicted: each holds those of the keys it claimed while it tries again.
type Latches struct {
	seed  maphash.Seed
	locks [stripeCount]Lock
}

// NewLatches are all free.
func NewLatches() *Latches { return &Latches{seed: maphash.MakeSeed()} }

// Of is the latch of a key.
func (l *Latches) Of(key []byte) Stripes { return 1 << (maphash.Bytes(l.seed, key) % stripeCount) }

// Acquire takes the latches in order, so that no two operations wait for each other.
func (l *Latches) Acquire(ctx context.Context, set Stripes) error {
	for rest := set; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(uint64(rest))
		if err := l.locks[i].Acquire(ctx, true); err != nil {
			l.Release(set & (1<<i - 1))
			return err
		}
	}
	return nil
}

// Release gives them back.
func (l *Latches) Release(set Stripes) {
	for ; set != 0; set &= set - 1 {
		l.locks[bits.TrailingZeros64(uint64(set))].Release(true)
	}
}
