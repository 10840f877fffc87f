package planner

import "strings"

// Signature is what a plan is but for the query's constants: two plans of queries of one shape that have the same one go the
// same way.
func (p *Plan) Signature() string {
	var b strings.Builder
	sign(&b, p.Root)
	return b.String()
}

func sign(b *strings.Builder, n Node) {
	b.WriteString(n.Stage())
	switch n := n.(type) {
	case *IndexScan:
		b.WriteString(" " + n.Index.Name + " " + direction(n.Backward) + " ")
		for _, s := range n.Bounds {
			b.WriteByte(boundLetter(s))
		}
	case *SortMerge:
		if sameScans(n.Inputs) { // of which there is one a value
			b.WriteByte('(')
			sign(b, n.Inputs[0])
			b.WriteByte(')')
			return
		}
	}
	b.WriteByte('(')
	for _, c := range n.Children() {
		sign(b, c)
	}
	b.WriteByte(')')
}

// boundLetter tells how a field is bound: not at all, by values, or by spans.
func boundLetter(s Intervals) byte {
	switch {
	case s.IsAll():
		return '-'
	case s.ArePoints():
		return 'v'
	}
	return 's'
}

// sameScans says whether all nodes walk the same index.
func sameScans(nodes []Node) bool {
	first, ok := nodes[0].(*IndexScan)
	for _, n := range nodes {
		s, also := n.(*IndexScan)
		if !ok || !also || s.Index.ID != first.Index.ID {
			return false
		}
	}
	return true
}
