package exec

import (
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/storage"
)

// givenIDs are the record ids that a node has given already.
type givenIDs struct {
	stats *Stats
	ids   map[string]struct{}
	// bytes are those that were asked for; spare are of ids that were removed.
	bytes, spare int
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
	more := len(id) + givenOverhead
	spared := min(g.spare, more)
	g.spare, more = g.spare-spared, more-spared
	if err := r.remember(more); err != nil {
		return false, err
	}
	if g.bytes += more; g.bytes > maxDedupBytes {
		return false, mongoerr.New(mongoerr.QueryExceededMemoryLimitNoDiskUseAllowed, "telling documents apart needs more than %d bytes", maxDedupBytes)
	}
	if g.ids == nil {
		g.ids = map[string]struct{}{}
	}
	g.ids[string(id)] = struct{}{}
	return true, nil
}

// remove has id be met for the first time again.
func (g *givenIDs) remove(id storage.RecordID) {
	id = id.Identity()
	if _, there := g.ids[string(id)]; there {
		delete(g.ids, string(id))
		g.spare += len(id) + givenOverhead
	}
}
