package query

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/exec"
	"github.com/ebbdb/ebb/internal/planner"
)

// Express plans are told as one stage, whatever nodes they are run by. MongoDB has them for what is found by one value of
// one field and is one document at most.

// expressByID is the plan by _id, and what it is called where a document is read, updated and deleted.
var expressByID = struct {
	plan                    *planner.Express
	found, updated, deleted string
}{planner.ByID(), "EXPRESS_IXSCAN { _id: 1 }", "EXPRESS_IXSCAN { _id: 1 },EXPRESS_UPDATE", "EXPRESS_IXSCAN { _id: 1 },EXPRESS_DELETE"}

// IsFoundByID says whether summary is that of a find that needed no plan.
func IsFoundByID(summary string) bool { return summary == expressByID.found || summary == "IDHACK" }

// writeSummary is what the plan is called below a stage that writes.
func writeSummary(p *planner.Express, write string) string {
	if p != expressByID.plan {
		return writing(p, write).Summary()
	}
	switch write {
	case "UPDATE":
		return expressByID.updated
	case "DELETE":
		return expressByID.deleted
	}
	return expressByID.found
}

// writing is p as the plan of a write.
func writing(p *planner.Express, write string) *planner.Express {
	w := *p
	w.Write = write
	return &w
}

// expressWrite is the mode of a write that may be express, or may not.
func expressWrite(may bool) planner.ExpressMode {
	if may {
		return planner.ExpressByID
	}
	return planner.NeverExpress
}

// express says whether p's plan may be express: what is told of its documents has to be the documents, or fields of their first level.
func (p *prepared) express() planner.ExpressMode {
	if p.counting || p.distinct != "" || p.Batched || p.ReturnKey || p.ShowRecordID || p.asked != (exec.RecordMeta{}) || !isSimple(p.Projection) {
		return planner.NeverExpress
	}
	return planner.ExpressByField
}

// isSimple says whether a projection takes or leaves fields of the first level, or there is none.
func isSimple(projection bson.Doc) bool {
	return projection.IsEmpty() || (&planner.Projection{Spec: projection}).Stage() == "PROJECTION_SIMPLE"
}

// projecting is p with the projection as a part of it.
func projecting(p *planner.Express, projection bson.Doc) *planner.Express {
	if projection.IsEmpty() {
		return p
	}
	with := *p
	with.Spec = projection
	return &with
}

// flat are the counts of a plan as if it were one node.
func flat(s *exec.Stats) *exec.Stats {
	if s == nil {
		return &exec.Stats{}
	}
	sum := exec.Stats{Advanced: s.Advanced}
	sum.Keys, sum.Docs = examined(s)
	return &sum
}

func examined(s *exec.Stats) (keys, docs int64) {
	keys, docs = s.Keys, s.Docs
	for _, child := range s.Children {
		k, d := examined(child)
		keys, docs = keys+k, docs+d
	}
	return keys, docs
}

// expressStep is how the operation ran whose plan was express.
func (x *execution) expressStep(c *Call) *step {
	ran := &exec.Stats{Keys: c.Seen.Keys, Docs: c.Seen.Docs, Advanced: c.Seen.Docs}
	if x.plan != nil {
		ran = flat(x.stats)
	}
	s := &step{node: x.express, stats: func() *exec.Stats { return ran }}
	switch {
	case x.above.stage != "":
		s.node, s.ran, ran.Advanced = writing(x.express, x.above.stage), x.above.printExpress, 0
	case x.find != nil:
		s.node = projecting(x.express, x.find.Projection)
	}
	return s
}

// printExpress appends what an express stage has written.
func (c stageCounts) printExpress(b *bson.Builder) {
	var modified, deleted int64
	if c.stage == "DELETE" {
		deleted = c.n[0]
	} else {
		modified = c.n[1]
	}
	b.Number("nWouldModify", modified).Int32("nWouldUpsert", 0).Number("nWouldDelete", deleted)
}
