package exec

import (
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/storage"
)

// givenIDs are the record ids that a node has given already.
type givenIDs struct {
	stats *Stats
	ids   map[string]struct{}
	bytes int
}

// givenOverhead is about what an entry of the set takes besides the id.
const givenOverhead = 48

// add says whether id is met for the first time.
func (g *givenIDs) add(r *reading, id storage.RecordID) (first bool, err error) {
	g.stats.DupsTested++
	id = id.Identity() // it may have moved since
	if _, again := g.ids[string(id)]; again {
		g.stats.DupsDropped++
		return false, nil
	}
	if err := r.remember(len(id) + givenOverhead); err != nil {
		return false, err
	}
	if g.bytes += len(id) + givenOverhead; g.bytes > maxDedupBytes {
		return false, mongoerr.New(mongoerr.QueryExceededMemoryLimitNoDiskUseAllowed, "telling documents apart needs more than %d bytes", maxDedupBytes)
	}
	if g.ids == nil {
		g.ids = map[string]struct{}{}
	}
	g.ids[string(id)] = struct{}{}
	return true, nil
}
