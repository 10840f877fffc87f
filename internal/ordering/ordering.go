// Package ordering sorts what may take long, and stops when whoever wants it has gone. It knows nothing of what it sorts.
package ordering

import "slices"

// comparisonsPerAsk is how many comparisons there are between two questions.
const comparisonsPerAsk = 1024

// Stable sorts s by compare and keeps what compares equal in its order. Ask, which may be nil, is called now and then; its
// error ends the work and is returned. S is in any order then.
func Stable[T any](s []T, compare func(a, b T) int, ask func() error) error {
	if ask == nil || len(s) < 2 {
		slices.SortStableFunc(s, compare)
		return nil
	}
	a := asking[T]{compare: compare, ask: ask}
	slices.SortStableFunc(s, a.next)
	return a.err
}

// Any is Stable, but for the order of what compares equal.
func Any[T any](s []T, compare func(a, b T) int, ask func() error) error {
	if ask == nil || len(s) < 2 {
		slices.SortFunc(s, compare)
		return nil
	}
	a := asking[T]{compare: compare, ask: ask}
	slices.SortFunc(s, a.next)
	return a.err
}

type asking[T any] struct {
	compare func(a, b T) int
	ask     func() error
	n       int
	err     error
}

// next finds all equal once the work has ended, so that the sort has nothing left to do.
func (a *asking[T]) next(x, y T) int {
	if a.err != nil {
		return 0
	}
	if a.n++; a.n%comparisonsPerAsk == 0 {
		a.err = a.ask()
	}
	return a.compare(x, y)
}
