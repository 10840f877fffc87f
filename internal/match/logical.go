package match

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
)

func logicalOperators() []Operator {
	return []Operator{
		{Name: "$and", Doc: "Matches what matches all of several filters.", Since: "2.0", top: parseAnd},
		{Name: "$or", Doc: "Matches what matches at least one of several filters.", Since: "1.6", top: parseOr},
		{Name: "$nor", Doc: "Matches what matches none of several filters.", Since: "1.8", top: parseNor},
		{Name: "$not", Doc: "Matches what the operators behind it do not.", Since: "2.0", field: parseNot},
	}
}

// And matches what all of its children match, everything when it has none.
type And struct{ Children []Node }

// Or matches what one of its children matches.
type Or struct{ Children []Node }

// Nor matches what none of its children matches.
type Nor struct{ Children []Node }

// Not matches what its child does not.
type Not struct{ Child Node }

// simple is n's only child, or n.
func (n *And) simple() Node {
	if len(n.Children) == 1 {
		return n.Children[0]
	}
	return n
}

func (n *And) match(c run, s subject) (bool, error) {
	if c.details != nil {
		return n.matchTelling(c, s)
	}
	for _, child := range n.Children {
		if ok, err := child.match(c, s); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (n *And) test(c run, v bson.Value) (bool, error) {
	for _, child := range n.Children {
		if err := c.tick(); err != nil {
			return false, err
		}
		if ok, err := child.test(c, v); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// match tells no position: which alternative matched is not known. (Alternatives of one value each are an In by now.)
func (n *Or) match(c run, s subject) (bool, error) {
	c = c.silent()
	for _, child := range n.Children {
		if ok, err := child.match(c, s); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

func (n *Or) test(c run, v bson.Value) (bool, error) {
	for _, child := range n.Children {
		if err := c.tick(); err != nil {
			return false, err
		}
		if ok, err := child.test(c, v); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

func (n *Nor) match(c run, s subject) (bool, error) {
	ok, err := (&Or{n.Children}).match(c.silent(), s)
	return !ok && err == nil, err
}

func (n *Nor) test(c run, v bson.Value) (bool, error) {
	ok, err := (&Or{n.Children}).test(c.silent(), v)
	return !ok && err == nil, err
}

func (n *Not) match(c run, s subject) (bool, error) {
	ok, err := n.Child.match(c.silent(), s)
	return !ok && err == nil, err
}

func (n *Not) test(c run, v bson.Value) (bool, error) {
	ok, err := n.Child.test(c.silent(), v)
	return !ok && err == nil, err
}

// filters parses the array of $and, $or and $nor.
func (p *parsing) filters(name string, arg bson.Value) ([]Node, error) {
	if arg.Type != bson.TypeArray {
		return nil, badValue("%s must be an array", name)
	}
	if arg.Doc().IsEmpty() {
		return nil, badValue("$and/$or/$nor must be a nonempty array")
	}
	var children []Node
	for it := arg.Doc().Iter(); it.Next(); {
		if it.Value().Type != bson.TypeObject {
			return nil, badValue("$or/$and/$nor entries need to be full objects")
		}
		n, err := p.document(it.Value().Doc(), p.level)
		if err != nil {
			return nil, err
		}
		children = append(children, n)
	}
	return children, nil
}

func parseAnd(p *parsing, arg bson.Value) (Node, error) {
	children, err := p.filters("$and", arg)
	return &And{children}, err
}

func parseOr(p *parsing, arg bson.Value) (Node, error) {
	children, err := p.filters("$or", arg)
	return &Or{children}, err
}

func parseNor(p *parsing, arg bson.Value) (Node, error) {
	children, err := p.filters("$nor", arg)
	return &Nor{children}, err
}

func parseNot(p *parsing, path fieldpath.Path, arg bson.Value, _ bson.Doc) (Node, error) {
	switch {
	case arg.Type == bson.TypeRegex:
		n, err := p.regexValue(path, arg)
		return &Not{n}, err
	case arg.Type != bson.TypeObject:
		return nil, badValue("$not needs a regex or a document")
	case arg.Doc().IsEmpty():
		return nil, badValue("$not cannot be empty")
	}
	and := &And{}
	if err := p.operators(and, path, arg.Doc()); err != nil {
		return nil, err
	}
	return &Not{and.simple()}, nil
}
