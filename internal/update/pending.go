package update

import "slices"

// pending is a set of children that were not met yet.
type pending struct {
	left  int
	small uint64
	large []bool // of those done, when there are more than 64
}

func newPending(n int) pending {
	if n > 64 {
		return pending{left: n, large: make([]bool, n)}
	}
	return pending{left: n}
}

func (p *pending) done(i int) bool {
	if p.large != nil {
		return p.large[i]
	}
	return p.small>>i&1 != 0
}

func (p *pending) take(i int) {
	p.left--
	if p.large != nil {
		p.large[i] = true
	} else {
		p.small |= 1 << i
	}
}

// lookup finds the child for a field, once.
func lookup(children []child, p *pending, name string) int {
	if len(children) <= 8 {
		for i := range children {
			if children[i].name == name && !p.done(i) {
				return i
			}
		}
		return -1
	}
	i, ok := slices.BinarySearchFunc(children, name, func(c child, name string) int { return compareNames(c.name, name) })
	if !ok || p.done(i) {
		return -1
	}
	return i
}
