package ttl

import (
	"slices"
	"time"

	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// snapshot is one state of one collection, asked what is due in it; a storage.Reader is one.
type snapshot interface {
	// Due are at most limit records with an entry that is due at now, earliest first, from behind after on; next is where
	// to go on, nil when there is no more.
	Due(rule *policy.Rule, now int64, after []byte, limit int) (ids []storage.RecordID, next []byte, err error)
}

// budget bounds a piece of work; 0 is no bound.
type budget struct {
	docs, bytes int64
	time        time.Duration
}

// spent says whether work that came so far has to stop.
func (b budget) spent(docs, bytes int64, elapsed time.Duration) bool {
	return b.docs > 0 && docs >= b.docs || b.bytes > 0 && bytes >= b.bytes || b.time > 0 && elapsed >= b.time
}

// scanLimit is how many records are found due at once, before they are deleted in batches: in the order in which they lie, and
// not in which they expire, so that those of a batch are near each other, which a look-up and a delete cost a third less for.
const scanLimit = 10_000

// progress is how far a pass has come in one target. The zero progress is its beginning.
type progress struct {
	staged []storage.RecordID // found, and not looked at yet
	after  []byte             // where to find more
	found  bool               // whether anything was looked for
	// missing says that a record was not there any more when it was to be deleted.
	missing bool
	rule    policy.Rule // by which it was
	telling telling     // of each document
}

// done says whether nothing is left that was due when the last was looked for.
func (p *progress) done() bool { return len(p.staged) == 0 && p.found && p.after == nil }

// stage finds the next records that are due, at most limit of them (0: no bound), unless some are staged already. It
// returns how many it found.
func (p *progress) stage(s snapshot, rule *policy.Rule, now, limit int64) (n int, err error) {
	if len(p.staged) > 0 || p.done() {
		return 0, nil
	}
	most := int64(scanLimit)
	if limit > 0 {
		most = min(most, limit)
	}
	ids, next, err := s.Due(rule, now, p.after, int(most))
	if err != nil {
		return 0, err
	}
	slices.SortFunc(ids, storage.RecordID.Compare)
	p.staged, p.after, p.found = ids, next, true
	return len(ids), nil
}

// take removes the first n of the staged records.
func (p *progress) take(n int) { p.staged = p.staged[n:] }

// again makes p begin anew.
func (p *progress) again() { *p = progress{rule: p.rule, telling: p.telling} }

// follow makes p begin again when the rule is another than the one it was made by: what was not due may be.
func (p *progress) follow(rule *policy.Rule) {
	if p.found && (p.rule.Index != rule.Index || p.rule.Seconds != rule.Seconds) {
		*p = progress{}
	}
	p.rule = *rule
}
