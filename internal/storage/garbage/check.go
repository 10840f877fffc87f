package garbage

import (
	"fmt"

	"github.com/ebbdb/ebb/internal/catalog"
)

// Check makes sure that nothing is removed that is in use.
func Check(left []Item, c *catalog.Catalog) error {
	used := map[Item]bool{}
	for _, coll := range c.All() {
		used[OfCollection(coll.ID)] = true
		for _, d := range coll.Indexes {
			used[OfIndex(d.ID)] = true
		}
	}
	for _, g := range left {
		if used[g] {
			return fmt.Errorf("%s is noted as garbage and is in the catalogue", g)
		}
	}
	return nil
}
