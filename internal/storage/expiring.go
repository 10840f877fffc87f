package storage

import (
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// Expiring is what a change of a collection's TTLs makes expire at once.
type Expiring struct {
	// Documents is how many there are. Expired ones that are hidden are not.
	Documents int64
	// Would is how many of them have not expired by the TTLs that change, as they are, and would have.
	Would int64
	// TTLs are those that are new, or become others.
	TTLs []ChangedTTL
	// Hidden is how many others have expired and are hidden by TTLs that the change loosens, takes away or makes visible: they are
	// deleted by it, or else Shown of them are seen again. Gone are those TTLs.
	Hidden, Shown int64
	Gone          []GoneTTL
	// Held is why they are not deleted at the moment, unless the change is told to; "" when they are.
	Held string
}

// GoneTTL is a TTL that hides, and does not any more, or not as much.
type GoneTTL struct {
	Rule policy.Rule
	// Hidden is how many documents it hides.
	Hidden int64
}

// ChangedTTL is a TTL that is new, or becomes another.
type ChangedTTL struct {
	Rule policy.Rule
	// Old is what it is now, nil when it is new.
	Old *policy.Rule
	// Would is how many documents have not expired by Old, and would by Rule; Already, how many have and are still stored.
	Would, Already int64
}

// changedTTLs are the TTLs that next has and c has not, or has others.
func changedTTLs(c *collection, next *catalog.Collection) (changed []ChangedTTL) {
	for _, rule := range rulesOf(next).All() {
		old, there := c.rules.Counterpart(&rule)
		switch {
		case !there:
			changed = append(changed, ChangedTTL{Rule: rule})
		case old.Kind != rule.Kind || old.Seconds != rule.Seconds || old.Cell != rule.Cell:
			changed = append(changed, ChangedTTL{Rule: rule, Old: old})
		}
	}
	return changed
}

// expiring is what the change from r's collection to next makes expire. It counts keys where those tell, and looks at all
// documents otherwise, or when look, which may be nil, is to see them: those that are visible.
func (r *Reader) expiring(next *catalog.Collection, look func(Record) error) (e Expiring, err error) {
	e.TTLs = changedTTLs(r.c, next)
	if e.Documents, err = r.Count(); err != nil {
		return e, err
	}
	switch {
	case look == nil && len(e.TTLs) == 0:
		return e, nil
	case look == nil && len(e.TTLs) == 1 && r.keysTell(&e.TTLs[0]):
		ok, err := r.expiringByKeys(&e.TTLs[0])
		if err != nil || ok {
			e.Would = e.TTLs[0].Would
			return e, err
		}
	}
	return e, r.expiringByDocuments(&e, look)
}

// keysTell says whether the keys there are say what expires by t: its index has the entries that it will have, what expires
// by one of Old and Rule is part of what expires by the other, and no document among them is hidden for another reason.
func (r *Reader) keysTell(t *ChangedTTL) bool {
	if t.Old != nil && t.Old.Cell != t.Rule.Cell {
		return false
	}
	if d := t.Rule.Index; d != nil {
		if ix := r.c.index(d.ID); ix == nil || ix.Kind != d.Kind {
			return false
		}
	}
	for i := range r.c.rules.All() {
		if rule := &r.c.rules.All()[i]; rule != t.Old && rule.Hides(r.view.hiding.all) {
			return false
		}
	}
	return true
}

// expiringByKeys is not ok when there are too many to tell.
func (r *Reader) expiringByKeys(t *ChangedTTL) (ok bool, err error) {
	due, ok, err := r.countDue(&t.Rule, r.view.now)
	if !ok || err != nil || t.Old == nil {
		t.Would = due
		return ok, err
	}
	t.Already, ok, err = r.countDue(t.Old, r.view.now)
	t.Would = max(due-t.Already, 0)
	return ok, err
}

func (r *Reader) expiringByDocuments(e *Expiring, look func(Record) error) error {
	c, err := r.Scan(RecordScan{})
	if err != nil {
		return err
	}
	defer c.Close()
	for i := range e.TTLs {
		e.TTLs[i].Would, e.TTLs[i].Already = 0, 0
	}
	for c.Next() {
		rec := c.Record()
		if look != nil {
			if err := look(rec); err != nil {
				return err
			}
		}
		e.add(rec, r.view.now)
	}
	return c.Err()
}

func (e *Expiring) add(rec Record, now int64) {
	would, already := false, false
	for i := range e.TTLs {
		t := &e.TTLs[i]
		switch {
		case t.Old != nil && isDue(t.Old, rec, now):
			already = true
			t.Already++
		case isDue(&t.Rule, rec, now):
			would = true
			t.Would++
		}
	}
	if would && !already {
		e.Would++
	}
}

func isDue(rule *policy.Rule, rec Record, now int64) bool {
	deadline, _ := rule.Deadline(rec.Doc, rec.Modified)
	return deadline <= now
}

// expiringHidden says what becomes of documents that are hidden, in the change from r's collection to next.
func (r *Reader) expiringHidden(e *Expiring, next *catalog.Collection) error {
	after, all := rulesOf(next), r.view.hiding.all
	rules := r.c.shownBy(after, all)
	h, err := r.hiddenBy(rules, after, all)
	if err != nil {
		return err
	}
	e.Hidden, e.Shown = h.due, h.shown
	for _, rule := range rules {
		n, _, err := r.countDue(rule, r.at)
		if err != nil {
			return err
		}
		e.Gone = append(e.Gone, GoneTTL{*rule, n})
	}
	if e.Hidden > 0 {
		e.Held = r.view.store.held(r.c)
	}
	return nil
}
