// Package ordering sorts what may take long, and stops when whoever wants it has gone. It knows nothing of what it sorts.
package ordering

import "slices"

// comparisonsPerAsk is how many comparisons there are between two questions, and bytesPerComparison how much makes one more.
const (
	comparisonsPerAsk  = 1024
	bytesPerComparison = 256
)

// Stable sorts s by compare and keeps what compares equal in its order. Ask, which may be nil, is called now and then; its
// error ends the work and is returned. S is in any order then.
func Stable[T any](s []T, compare func(a, b T) int, ask func() error) error {
	return StableSized(s, compare, nil, ask)
}

// StableSized is Stable for what takes long to compare where there is much of it: size is how many bytes.
func StableSized[T any](s []T, compare func(a, b T) int, size func(T) int, ask func() error) error {
	if ask == nil || len(s) < 2 {
		slices.SortStableFunc(s, compare)
		return nil
	}
	a := asking[T]{compare: compare, size: size, ask: ask}
	slices.SortStableFunc(s, a.next)
	return a.err
}

// Any is Stable, but for the order of what compares equal.
func Any[T any](s []T, compare func(a, b T) int, ask func() error) error {
	return AnySized(s, compare, nil, ask)
}

// AnySized is StableSized, but for the order of what compares equal.
func AnySized[T any](s []T, compare func(a, b T) int, size func(T) int, ask func() error) error {
	if ask == nil || len(s) < 2 {
		slices.SortFunc(s, compare)
		return nil
	}
	a := asking[T]{compare: compare, size: size, ask: ask}
	slices.SortFunc(s, a.next)
	return a.err
}

type asking[T any] struct {
	compare func(a, b T) int
	size    func(T) int // nil where all are small
	ask     func() error
	n       int // comparisons since ask was called
	err     error
}

// next finds all equal once the work has ended, so that the sort has nothing left to do.
func (a *asking[T]) next(x, y T) int {
	if a.err != nil {
		return 0
	}
	a.n++
	if a.size != nil {
		a.n += (a.size(x) + a.size(y)) / bytesPerComparison
	}
	if a.n >= comparisonsPerAsk {
		a.n = 0
		if a.err = a.ask(); a.err != nil {
			return 0
		}
	}
	return a.compare(x, y)
}
