package update

import "github.com/ebbdb/ebb/internal/fieldpath"

// Aims are the places that modifiers go to; nil for an update of another kind.
func (u *Update) Aims() *fieldpath.Aim {
	if u.kind != Modifiers {
		return nil
	}
	if u.aims == nil {
		u.aims = u.root.aim()
	}
	return u.aims
}

func (n *node) aim() *fieldpath.Aim {
	a := &fieldpath.Aim{}
	n.addTo(a)
	return a
}

func (n *node) addTo(a *fieldpath.Aim) {
	switch n.kind {
	case leafNode:
		a.Value = true
		if p, ok := n.modifier.(*push); ok {
			a.Appends = p.position == noLimit && p.slice == noLimit && p.sort == nil
		}
	case objectNode:
		if a.Fields == nil {
			a.Fields = make(map[string]*fieldpath.Aim, len(n.children))
		}
		for _, c := range n.children {
			if a.Fields[c.name] == nil {
				a.Fields[c.name] = &fieldpath.Aim{}
			}
			c.node.addTo(a.Fields[c.name])
		}
		if n.positional != nil {
			if a.Element == nil {
				a.Element = &fieldpath.Aim{}
			}
			n.positional.addTo(a.Element)
		}
	case arrayNode:
		a.Element, a.Each = &fieldpath.Aim{}, true
		for _, c := range n.children {
			c.node.addTo(a.Element)
		}
	}
}
