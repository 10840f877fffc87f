package pipeline

import (
	"slices"

	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/sortpattern"
)

// Leading is what a plan can take over from the front of a pipeline.
type Leading struct {
	// Filter is the $match at the front, nil when there is none.
	Filter *match.Filter
	// Sort is the $sort behind it, nil when there is none.
	Sort *sortpattern.Pattern
	// Skip and Limit stand behind those, in this order; Limit 0 is none.
	Skip, Limit int64
	// Filtered, Sorted and Counted are how many stages from the front are done when the plan takes the filter, the sort too,
	// and the counts as well. From(n) is what is left to Build.
	Filtered, Sorted, Counted int
	// Needs is what the stages behind the filter and sort read, and the sort itself when the plan does not take it.
	Needs Dependencies
	// Distinct says that of the documents that the filter finds only the values of Needs' one field are wanted, each once.
	Distinct bool
	// Firsts is the path whose values, by which the sort begins, the stage behind it groups by, to know no more than of the
	// first document of each, or with Lasts of the last; "" when it is not so.
	Firsts string
	Lasts  bool
}

// Leading looks at the front of p.
func (p *Pipeline) Leading() Leading {
	var l Leading
	i := 0
	if i < len(p.Stages) {
		if m, ok := p.Stages[i].(*Match); ok {
			l.Filter = m.Filter
			i++
		}
	}
	l.Filtered = i
	l.Needs = p.From(i).Dependencies()
	l.Distinct = i < len(p.Stages) && groupsOnly(p.Stages[i])
	if i < len(p.Stages) {
		if s, ok := p.Stages[i].(*Sort); ok {
			l.Sort = s.Pattern
			i++
		}
	}
	l.Sorted = i
	if l.Sort != nil && i < len(p.Stages) {
		l.Firsts, l.Lasts = firstsOf(l.Sort, p.Stages[i])
	}
	if i < len(p.Stages) {
		if s, ok := p.Stages[i].(*Skip); ok {
			l.Skip = s.N
			i++
		}
	}
	if i < len(p.Stages) {
		if s, ok := p.Stages[i].(*Limit); ok {
			l.Limit = s.N
			i++
		}
	}
	l.Counted = i
	return l
}

// groupsOnly says whether s is a $group by one field that accumulates nothing.
func groupsOnly(s Stage) bool {
	g, ok := s.(*Group)
	if !ok || len(g.Fields) > 0 {
		return false
	}
	_, field := expr.FieldOf(g.ID)
	return field
}

// firstsOf is the path that s groups by, when that leads the sort and s accumulates nothing but $first, or nothing but $last.
func firstsOf(sort *sortpattern.Pattern, s Stage) (path string, lasts bool) {
	g, ok := s.(*Group)
	if !ok {
		return "", false
	}
	lasts = len(g.Fields) > 0 && g.Fields[0].Spec.Op.Name == "$last"
	want := "$first"
	if lasts {
		want = "$last"
	}
	if slices.ContainsFunc(g.Fields, func(f GroupField) bool { return f.Spec.Op.Name != want }) {
		return "", false
	}
	by, ok := expr.FieldOf(g.ID)
	if !ok || sort.Parts[0].Meta != "" || sort.Parts[0].Path.String() != by.String() {
		return "", false
	}
	return by.String(), lasts
}
