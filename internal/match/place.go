package match

// checkPlaces refuses searches that stand where no plan could answer them: more than one, below a negation, or a $near that
// is not a condition of the whole filter.
func checkPlaces(root Node) error {
	var p places
	p.visit(root, false, true)
	switch {
	case p.texts > 1:
		return badValue("Too many text expressions")
	case p.nears > 1:
		return badValue("Too many geoNear expressions")
	case p.textNegated:
		return badValue("text expression not allowed in nor")
	case p.nearBelow:
		return badValue("geoNear must be top-level expr")
	case p.texts > 0 && p.nears > 0:
		return badValue("text and geoNear not allowed in same query")
	}
	return nil
}

type places struct {
	texts, nears           int
	textNegated, nearBelow bool
}

func (p *places) visit(n Node, negated, top bool) {
	switch n.(type) {
	case *Text:
		p.texts++
		p.textNegated = p.textNegated || negated
	case *GeoNear:
		p.nears++
		p.nearBelow = p.nearBelow || !top
	case *Nor, *Not:
		negated = true
	}
	children := Children(n)
	switch n.(type) {
	case *And:
	case *Or: // of one alternative is that one
		top = top && len(children) == 1
	default:
		top = false
	}
	for _, child := range children {
		p.visit(child, negated, top)
	}
}

// Children are the nodes directly below n.
func Children(n Node) []Node {
	switch n := n.(type) {
	case *And:
		return n.Children
	case *Or:
		return n.Children
	case *Nor:
		return n.Children
	case *Not:
		return []Node{n.Child}
	case *ElemMatchObject:
		return []Node{n.Child}
	case *ElemMatchValue:
		return n.Children
	}
	return nil
}
