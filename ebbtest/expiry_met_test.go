package ebbtest_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
)

// met counts what a run has met, by name; a check that meets nothing is of no use.
type met map[string]int

// What is counted.
const (
	metSwept       = "documents deleted by the monitor"
	metSecond      = "of them by another index than the first"
	metOverride    = "of them by a ttl of their own"
	metAtOnce      = "sweeps at once"
	metPart        = "of them leaving documents behind"
	metClustered   = "sweeps at once of clustered collections"
	metAtOnceOf    = "documents swept at once"
	metReclustered = "records put in order"
	metMoved       = "records moved by an update"
	metVacuumed    = "dead entries vacuumed"
	metDead        = "restarts with dead entries"
	metRestarts    = "restarts"
	metHidden      = "hidden documents left out by looks"
	metRefused     = "writes refused for their keys"
	metLoosened    = "TTLs loosened"
	metTightened   = "TTLs tightened"
	metWithDue     = "TTLs loosened or dropped with documents due"
	metDropped     = "TTL indexes dropped"
	metReordered   = "of them that gave the order"
	metOrders      = "first TTL indexes on documents"
	metHideOff     = "hiding switched off with documents hidden"
	metHideOn      = "hiding switched on with documents due"
	metGone        = "hidden documents deleted by commands"
	metKept        = "hidden documents kept by commands"
	metHeld        = "commands refused while expiry is held"
	metForced      = "hidden documents deleted though it was"
	metBack        = "clocks turned back"
	metFarBack     = "clocks set back by a minute and more"
	metDoubted     = "clocks that were not trusted"
	metCorrected   = "of them set right"
	metTrusted     = "documents deleted when such a clock was trusted after all"
	metHolds       = "expiry held at a time"
	metReleases    = "expiry released"
	metCursors     = "cursors at their end"
	metOutOf       = "documents that such cursors showed twice or never, having been changed"
)

// counts are all of them, and how often they are met at least in a hundred runs.
var counts = []struct {
	name  string
	least int
}{
	{metSwept, 1000}, {metSecond, 100}, {metOverride, 10}, {metAtOnce, 20}, {metPart, 4}, {metClustered, 1}, {metAtOnceOf, 5000}, {metReclustered, 100}, {metMoved, 100}, {metVacuumed, 1000},
	{metRestarts, 20}, {metDead, 1}, {metHidden, 1000}, {metRefused, 100}, {metLoosened, 20}, {metTightened, 20}, {metDropped, 20}, {metWithDue, 4}, {metReordered, 10},
	{metOrders, 20}, {metHideOff, 1}, {metHideOn, 2}, {metGone, 10}, {metKept, 10}, {metHeld, 4}, {metForced, 4}, {metBack, 20}, {metFarBack, 20}, {metDoubted, 20}, {metCorrected, 10}, {metTrusted, 10}, {metHolds, 20}, {metReleases, 20}, {metCursors, 100}, {metOutOf, 0},
}

func (m met) add(o met) {
	for name, n := range o {
		m[name] += n
	}
}

// noteHidden counts what a command made of hidden documents.
func (m met) noteHidden(o *outcome, held bool) {
	gone := int(o.counts["deletedExpired"])
	m[metGone] += gone
	m[metKept] += int(o.counts["keptExpired"])
	m[metHeld] += btoi(o.code == illegalOperation)
	if held {
		m[metForced] += gone
	}
}

func (m met) String() string {
	var out []string
	for _, c := range counts {
		out = append(out, fmt.Sprintf("%9d %s", m[c.name], c.name))
	}
	return strings.Join(out, "\n")
}

// missed is what so many runs should have met more often.
func (m met) missed(runs int) (out []string) {
	for _, c := range counts {
		if least := c.least * runs / 100; m[c.name] < least {
			out = append(out, fmt.Sprintf("%d %s, not %d", m[c.name], c.name, least))
		}
	}
	return out
}

// fewSwept is how many documents the server deletes at once at least.
const fewSwept = 256

// sweep lets the truth sweep as the server has, and counts.
func (x *trial) sweep() {
	part, clustered := 0, 0
	x.met[metSwept] += x.truth.sweep(func(c *truthColl, gone []*truthDoc) {
		first := c.firstTTL()
		for _, d := range gone {
			if first != nil && d.by(first).deadline > x.truth.now {
				x.met[metSecond]++
			} else if first != nil && first.fields[0] == "_ts" && override(d.doc) > 0 {
				x.met[metOverride]++
			}
		}
		switch {
		case len(gone) < fewSwept:
		case c.clustered && len(c.indexes) == 0:
			clustered++
		case len(c.docs) > 0:
			part++
		}
	})
	if part+clustered > 0 {
		before := x.atOnce
		x.count()
		x.met[metPart] += min(part, x.atOnce-before)
		x.met[metClustered] += min(clustered, max(x.atOnce-before-part, 0))
	}
}

// count asks the server what it has counted since it was started.
func (x *trial) count() {
	ebb := x.ask(bson.MustDoc("{serverStatus: 1}")).Lookup("metrics").Doc().Lookup("ttl").Doc().Lookup("ebb").Doc()
	x.atOnce = int(ebb.Lookup("sweeps").Int64())
	x.counted = met{metAtOnce: x.atOnce, metAtOnceOf: int(ebb.Lookup("sweptDocuments").Int64()), metReclustered: int(ebb.Lookup("reclusteredDocuments").Int64()),
		metVacuumed: int(ebb.Lookup("vacuumedEntries").Int64())}
}

// countAll keeps what the server has counted, which forgets it when it ends.
func (x *trial) countAll() {
	x.count()
	x.met.add(x.counted)
	x.atOnce, x.counted = 0, nil
}

// hasDead says whether the server keeps entries of records that were swept.
func (x *trial) hasDead() bool {
	for it := x.ask(bson.MustDoc("{ebbTTL: 1}")).Lookup("indexes").Doc().Iter(); it.Next(); {
		if it.Value().Doc().Lookup("deadEntries").TruncInt64() > 0 {
			return true
		}
	}
	return false
}

// firstTTL is the index that decides where records lie, most often.
func (c *truthColl) firstTTL() *truthIndex {
	for _, ix := range c.indexes {
		if ix.ttl && ix.kind == "" {
			return ix
		}
	}
	return nil
}

// note counts what a command has changed of the collection: it was before, and is c now; nil when there is none.
func (m met) note(verb string, before, c *truthColl) {
	if before == nil || c == nil {
		return
	}
	switch first := before.firstTTL(); verb {
	case "update", "findAndModify":
		if first != nil {
			m[metMoved] += movedBy(first, before, c)
		}
	case "createIndexes":
		if now := c.firstTTL(); first == nil && now != nil && len(c.docs) > 0 {
			m[metOrders]++
		}
		m.noteTTLs(before, c)
	case "collMod", "dropIndexes":
		if first != nil && c.index(first.name) == nil {
			m[metReordered]++
		}
		m.noteTTLs(before, c)
	}
}

func (m met) noteTTLs(before, c *truthColl) {
	changed := false
	for _, ix := range before.indexes {
		now := c.index(ix.name)
		switch {
		case !ix.ttl:
		case now == nil:
			m[metDropped]++
			changed = true
		case longer(ix, now):
			m[metLoosened]++
			changed = true
		case longer(now, ix):
			m[metTightened]++
		}
	}
	if changed && len(c.docs) < len(before.docs) {
		m[metWithDue]++
	}
}

// movedBy is how many documents have another deadline than before by an index.
func movedBy(ix *truthIndex, before, c *truthColl) (n int) {
	old := map[int]*truthDoc{}
	for _, d := range before.docs {
		old[d.number] = d
	}
	for _, d := range c.docs {
		if o := old[d.number]; o != nil && o != d && o.by(ix).deadline != d.by(ix).deadline {
			n++
		}
	}
	return n
}

// hasDue says whether any document has expired and is stored.
func (t *truth) hasDue() bool {
	for _, c := range t.colls {
		if slices.ContainsFunc(c.docs, func(d *truthDoc) bool { return t.expired(c, d) }) {
			return true
		}
	}
	return false
}
