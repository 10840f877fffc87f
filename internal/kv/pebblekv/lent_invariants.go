//go:build invariants

package pebblekv

import "slices"

// lent is what an iterator has handed out, which is its reader's until it moves or is closed: from then on it is wrong, so that tests find who
// looks at it longer. Pebble would use the memory again sooner or later.
type lent struct{ all [][]byte }

func (l *lent) lend(b []byte) []byte {
	b = slices.Clone(b)
	l.all = append(l.all, b)
	return b
}

func (l *lent) spoil() {
	for _, b := range l.all {
		for i := range b {
			b[i] = 0xa5
		}
	}
	clear(l.all)
	l.all = l.all[:0]
}
