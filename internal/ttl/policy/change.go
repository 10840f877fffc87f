package policy

// Counterpart is the rule of rs that stands where rule stands: of the same index, or the collection's own. It may say something
// else than rule by now.
func (rs Rules) Counterpart(rule *Rule) (*Rule, bool) {
	if rule.Index == nil {
		return rs.Own()
	}
	return rs.ForIndexID(rule.Index.ID)
}

// Namesake is the rule of rs that rule was before, under another number of its index perhaps; nil when it is new.
func (rs Rules) Namesake(rule *Rule) *Rule {
	for i := range rs.All() {
		if was := &rs.All()[i]; was.Name() == rule.Name() && was.Kind == rule.Kind {
			return was
		}
	}
	return nil
}

// IsLoosened says whether something that has expired by the rule might not have, or be seen again, under the rules after; all
// says whether every rule hides.
func (r *Rule) IsLoosened(after Rules, all bool) bool {
	next, kept := after.Counterpart(r)
	if !kept || next.Kind != r.Kind {
		return true
	}
	shorter := next.Seconds >= 0 && (r.Seconds < 0 || next.Seconds <= r.Seconds)
	if r.Seconds < 0 && next.Seconds < 0 {
		shorter = true
	}
	return !shorter || next.Cell > r.Cell || r.Hides(all) && !next.Hides(all)
}

// IsTighter says whether more may be due by the rule than by what it was.
func (r *Rule) IsTighter(was *Rule) bool {
	return r.Seconds >= 0 && (was.Seconds < 0 || r.Seconds < was.Seconds) || r.Cell < was.Cell
}

// IndexID is the number of the rule's index, 0 for a collection's own TTL.
func (r *Rule) IndexID() uint32 {
	if r.Index == nil {
		return 0
	}
	return r.Index.ID
}
