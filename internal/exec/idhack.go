package exec

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/planner"
	"github.com/ebbdb/ebb/internal/storage"
)

// idHack looks up one document by its _id.
type idHack struct {
	plan *planner.IDHack
	loneRecord
	// tellsKey has the _id told as the key of the index.
	tellsKey bool
}

func (n *idHack) work(r *reading, m *Member) (status, error) {
	there, err := n.fetch(r, m, func(reader *storage.Reader) (storage.Record, bool, error) { return reader.GetByID(n.plan.ID) })
	if !there {
		return ended, err
	}
	if n.tellsKey {
		m.IndexKey = bson.Build().Value("_id", m.Doc.Lookup("_id")).Doc()
	}
	n.stats.Keys++
	r.seen.Keys++
	if r.details != nil {
		r.details.Position = -1
	}
	return advanced, nil
}
