package match

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
)

// matchPath asks n.test of each value that p reaches in s, until one says yes.
func matchPath(n Node, c run, p fieldpath.Path, leaf fieldpath.Leaf, s subject) (ok bool, err error) {
	if err := c.tick(); err != nil {
		return false, err
	}
	if s.skip == 0 && p.Len() == 1 {
		if v := s.value.Doc().Lookup(p.First()); v.Type != bson.TypeArray {
			if err := c.tickFor(v); err != nil {
				return false, err
			}
			return n.test(c, v)
		}
	}
	visit := func(v bson.Value, index int) bool {
		if err = c.tickFor(v); err != nil {
			return true
		}
		ok, err = n.test(c, v)
		if ok && c.details != nil && index != fieldpath.NoIndex {
			c.details.Position = index
		}
		return ok || err != nil
	}
	if s.skip == 0 {
		p.Walk(s.value.Doc(), leaf, visit)
	} else {
		p.WalkFrom(s.skip, s.value, leaf, visit)
	}
	return ok, err
}
