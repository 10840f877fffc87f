// Package ttlchange tells what a change of a collection's TTLs does to its documents: which of them expire by it at once, and which
// hidden ones would be seen again; and what the change spares for a while (Graces). It counts keys where those tell, and reads documents otherwise. It changes nothing, and knows neither
// the Store nor what commands do about it.
package ttlchange

import (
	"github.com/ebbdb/ebb/internal/storage/due"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// Effect is what a change of a collection's TTLs makes expire at once.
type Effect struct {
	// Documents is how many there are. Expired ones that are hidden are not.
	Documents int64
	// Would is how many of them have not expired by the TTLs that change, as they are, and would have.
	Would int64
	// TTLs are those that are new, or become others.
	TTLs []Changed
	// Hidden is how many others have expired and are hidden by TTLs that the change loosens, takes away or makes visible: they are
	// deleted by it, or else Shown of them are seen again. Gone are those TTLs.
	Hidden, Shown int64
	Gone          []Gone
	// Held is why they are not deleted at the moment, unless the change is told to; "" when they are.
	Held string
}

// Gone is a TTL that hides, and does not any more, or not as much.
type Gone struct {
	Rule policy.Rule
	// Hidden is how many documents it hides.
	Hidden int64
}

// Changed is a TTL that is new, or becomes another.
type Changed struct {
	Rule policy.Rule
	// Old is what it is now, nil when it is new.
	Old *policy.Rule
	// Would is how many documents have not expired by Old, and would by Rule; Already, how many have and are still stored.
	Would, Already int64
}

// ChangedOf are the TTLs that next has and before has not, or has others.
func ChangedOf(before, next policy.Rules) (changed []Changed) {
	for _, rule := range next.All() {
		old, there := before.Counterpart(&rule)
		switch {
		case !there:
			changed = append(changed, Changed{Rule: rule})
		case old.Kind != rule.Kind || old.Seconds != rule.Seconds || old.Cell != rule.Cell:
			changed = append(changed, Changed{Rule: rule, Old: old})
		}
	}
	return changed
}

// Collection is a collection before the change, in one view.
type Collection struct {
	// Dates is where its rules have their dates.
	Dates *due.Source
	// Now is the view's; what has expired by HiddenAt is hidden, by all rules where All says so.
	Now, HiddenAt int64
	All           bool
	// Count is how many documents are visible, and Each calls f with each of them.
	Count func() (int64, error)
	Each  func(f func(layout.Record) error) error
	// Stored reads records, hidden or not; those that are not there have no document.
	Stored func(ids []layout.RecordID) ([]layout.Record, error)
}

// Expiring is what the change to the rules next makes expire. It counts keys where those tell, and looks at all documents
// otherwise, or when look, which may be nil, is to see them: those that are visible.
func (c *Collection) Expiring(next policy.Rules, look func(layout.Record) error) (e Effect, err error) {
	e.TTLs = ChangedOf(c.Dates.Rules, next)
	if e.Documents, err = c.Count(); err != nil {
		return e, err
	}
	switch {
	case look == nil && len(e.TTLs) == 0:
		return e, nil
	case look == nil && len(e.TTLs) == 1 && c.KeysTell(&e.TTLs[0]):
		ok, err := c.expiringByKeys(&e.TTLs[0])
		if err != nil || ok {
			e.Would = e.TTLs[0].Would
			return e, err
		}
	}
	return e, c.expiringByDocuments(&e, look)
}

// KeysTell says whether the keys there are say what expires by t: its index has the entries that it will have, what expires
// by one of Old and Rule is part of what expires by the other, and no document among them is hidden for another reason.
func (c *Collection) KeysTell(t *Changed) bool {
	if t.Old != nil && t.Old.Cell != t.Rule.Cell {
		return false
	}
	if !c.HasKeysOf(&t.Rule) {
		return false
	}
	for i := range c.Dates.Rules.All() {
		if rule := &c.Dates.Rules.All()[i]; rule != t.Old && rule.Hides(c.All) {
			return false
		}
	}
	return true
}

// HasKeysOf says whether the keys there are have the dates that the rule counts from: its index has the entries that it will have.
func (c *Collection) HasKeysOf(rule *policy.Rule) bool {
	if rule.Index == nil {
		return true
	}
	ix, _ := c.Dates.State.Index(rule.Index.ID)
	return ix.Definition != nil && ix.Kind == rule.Index.Kind
}

// expiringByKeys is not ok when there are too many to tell.
func (c *Collection) expiringByKeys(t *Changed) (ok bool, err error) {
	due, ok, err := c.CountDue(&t.Rule, c.Now)
	if !ok || err != nil || t.Old == nil {
		t.Would = due
		return ok, err
	}
	t.Already, ok, err = c.CountDue(t.Old, c.Now)
	t.Would = max(due-t.Already, 0)
	return ok, err
}

func (c *Collection) expiringByDocuments(e *Effect, look func(layout.Record) error) error {
	for i := range e.TTLs {
		e.TTLs[i].Would, e.TTLs[i].Already = 0, 0
	}
	return c.Each(func(rec layout.Record) error {
		if look != nil {
			if err := look(rec); err != nil {
				return err
			}
		}
		e.add(rec, c.Now)
		return nil
	})
}

func (e *Effect) add(rec layout.Record, now int64) {
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

func isDue(rule *policy.Rule, rec layout.Record, now int64) bool {
	deadline, _ := rule.Deadline(rec.Doc, rec.Modified)
	return deadline <= now
}

// AddHidden adds to e what becomes of documents that are hidden when the rules become after.
func (c *Collection) AddHidden(e *Effect, after policy.Rules) error {
	rules := Shown(c.Dates.Rules, after, c.All)
	h, err := c.Hidden(rules, after, c.All)
	if err != nil {
		return err
	}
	e.Hidden, e.Shown = h.Due, h.Shown
	for _, rule := range rules {
		n, _, err := c.CountDue(rule, c.HiddenAt)
		if err != nil {
			return err
		}
		e.Gone = append(e.Gone, Gone{*rule, n})
	}
	return nil
}
