package ttlchange

import (
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/recordset"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// Shown are the rules that hide and that after does not have any more, or not as strictly. all says that every rule hides after.
func Shown(before, after policy.Rules, all bool) (rules []*policy.Rule) {
	for i := range before.All() {
		if rule := &before.All()[i]; rule.Hides(all) && rule.IsLoosened(after, all) {
			rules = append(rules, rule)
		}
	}
	return rules
}

// HiddenByAll are the rules that hide because all do.
func HiddenByAll(of policy.Rules) (rules []*policy.Rule) {
	for i := range of.All() {
		if rule := &of.All()[i]; rule.Hides(true) && !rule.Hides(false) {
			rules = append(rules, rule)
		}
	}
	return rules
}

// HiddenCount is how many documents are due by rules that hide, and how many of those are visible under others.
type HiddenCount struct{ Due, Shown int64 }

// hiddenBatch is how many records are looked at, at once, where keys do not tell.
const hiddenBatch = 1000

// Hidden counts the documents that have expired by the rules, which hide, and those of them that are not hidden under the rules
// after. It counts keys where those tell.
func (c *Collection) Hidden(rules []*policy.Rule, after policy.Rules, all bool) (h HiddenCount, err error) {
	if len(rules) == 0 {
		return h, nil
	}
	if len(rules) == 1 {
		h, ok, err := c.hiddenByKeys(rules[0], after, all)
		if ok || err != nil {
			return h, err
		}
	}
	var met recordset.IDs
	for i, rule := range rules {
		for next, more := []byte(nil), true; more; more = next != nil {
			var ids []layout.RecordID
			if ids, next, err = c.Dates.All(rule, c.HiddenAt, next, hiddenBatch); err != nil {
				return h, err
			}
			found, err := c.Stored(ids)
			if err != nil {
				return h, err
			}
			for _, rec := range found {
				if rec.Doc == nil || isDueByAny(rules[:i], rec, c.HiddenAt) || !isDue(rule, rec, c.HiddenAt) {
					continue
				}
				if first, _ := met.Add(rec.ID); !first {
					continue
				}
				h.Due++
				if !after.Hidden(rec.Doc, rec.Modified, c.HiddenAt, all) {
					h.Shown++
				}
			}
		}
	}
	return h, nil
}

func isDueByAny(rules []*policy.Rule, rec layout.Record, now int64) bool {
	for _, rule := range rules {
		if isDue(rule, rec, now) {
			return true
		}
	}
	return false
}

// hiddenByKeys is not ok when keys do not tell: another rule hides, or there are too many.
func (c *Collection) hiddenByKeys(rule *policy.Rule, after policy.Rules, all bool) (h HiddenCount, ok bool, err error) {
	next, kept := after.Counterpart(rule)
	for i := range after.All() {
		if o := &after.All()[i]; o.Hides(all) && !(kept && o == next) {
			return h, false, nil
		}
	}
	if kept && next.Kind != rule.Kind {
		return h, false, nil
	}
	if h.Due, ok, err = c.CountDue(rule, c.HiddenAt); !ok || err != nil {
		return h, ok, err
	}
	h.Shown = h.Due
	if kept && next.Hides(all) {
		still, all, err := c.CountDue(next, c.HiddenAt)
		if !all || err != nil {
			return h, all, err
		}
		h.Shown = max(h.Due-still, 0)
	}
	return h, true, nil
}

// CountDue is how many documents are due at now by a rule as it is given; all is false when there are too many to tell.
func (c *Collection) CountDue(rule *policy.Rule, now int64) (n int64, all bool, err error) {
	w, err := c.Dates.DeadlinesBy(rule, now, func(int64) { n++ })
	return n, w.All, err
}
