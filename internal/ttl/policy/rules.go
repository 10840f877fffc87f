package policy

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/index"
)

// Rules are all rules of one collection. The zero Rules expire nothing.
type Rules struct {
	rules []Rule
}

// NewRules are the rules of a collection with the given indexes; own is that of its own TTL, or nil. cell is the Cell of
// all rules of a time series, 0 elsewhere.
func NewRules(indexes []*index.Definition, own *Rule, cell int64) Rules {
	var rs Rules
	for _, d := range indexes {
		if r, ok := ForIndex(d); ok {
			if r.Kind == Field {
				r.Cell = cell
			}
			rs.rules = append(rs.rules, r)
		}
	}
	if own != nil {
		rs.rules = append(rs.rules, *own)
	}
	return rs
}

// All are the rules in the order of their indexes.
func (rs Rules) All() []Rule { return rs.rules }

// Any says whether there is a rule.
func (rs Rules) Any() bool { return len(rs.rules) > 0 }

// Hiding says whether any rule hides; all is the server's ttlHideExpired.
func (rs Rules) Hiding(all bool) bool {
	for i := range rs.rules {
		if rs.rules[i].Hides(all) {
			return true
		}
	}
	return false
}

// HidesBy says whether r hides and no other rule does; all is the server's ttlHideExpired.
func (rs Rules) HidesBy(r *Rule, all bool) bool {
	for i := range rs.rules {
		if o := &rs.rules[i]; (o == r) != o.Hides(all) {
			return false
		}
	}
	return true
}

// Hidden says whether doc, modified last at the millisecond modified, is invisible at now.
func (rs Rules) Hidden(doc bson.Doc, modified, now int64, all bool) bool {
	for i := range rs.rules {
		r := &rs.rules[i]
		if !r.Hides(all) {
			continue
		}
		if d, _ := r.Deadline(doc, modified); d <= now {
			return true
		}
	}
	return false
}

// Deadline is the earliest deadline of doc, and the rule that gives it; Never and nil when no rule does.
func (rs Rules) Deadline(doc bson.Doc, modified int64) (int64, *Rule) {
	earliest, by := Never, (*Rule)(nil)
	for i := range rs.rules {
		if d, _ := rs.rules[i].Deadline(doc, modified); d < earliest {
			earliest, by = d, &rs.rules[i]
		}
	}
	return earliest, by
}

// ForIndexID is the rule of the index with the number id.
func (rs Rules) ForIndexID(id uint32) (*Rule, bool) {
	for i := range rs.rules {
		if d := rs.rules[i].Index; d != nil && d.ID == id {
			return &rs.rules[i], true
		}
	}
	return nil, false
}

// Own is the rule of the collection itself: that of a clustered one, or of a time series.
func (rs Rules) Own() (*Rule, bool) {
	for i := range rs.rules {
		if rs.rules[i].Index == nil {
			return &rs.rules[i], true
		}
	}
	return nil, false
}
