package fieldpath

import "strings"

// Disjoint is a set of paths of which none is another one or below it. It may be large: a path is looked up, not compared
// with all others.
type Disjoint struct {
	// at has for each path and each of its ancestors the first path that came there or below.
	at map[string]string
}

// Conflict is the first path of the set that path, of at most MaxParts components, is, is below or has below it.
func (d *Disjoint) Conflict(path string) (other string, met bool) {
	if other, met := d.at[path]; met {
		return other, true
	}
	for end := range ancestors(path) {
		if other, met := d.at[path[:end]]; met && len(other) == end {
			return other, true
		}
	}
	return "", false
}

// Add puts a path into the set that has no Conflict.
func (d *Disjoint) Add(path string) {
	if d.at == nil {
		d.at = map[string]string{}
	}
	d.at[path] = path
	for end := range ancestors(path) {
		if _, met := d.at[path[:end]]; !met {
			d.at[path[:end]] = path
		}
	}
}

// ancestors yields where the texts of path's ancestors end.
func ancestors(path string) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for end := 0; ; end++ {
			i := strings.IndexByte(path[end:], '.')
			if i < 0 {
				return
			}
			if end += i; !yield(end) {
				return
			}
		}
	}
}
