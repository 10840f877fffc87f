package match

import (
	"fmt"
	"math"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
)

func arrayOperators() []Operator {
	return []Operator{
		{Name: "$all", Doc: "Matches arrays that hold all of several values.", Since: "1.0", field: parseAll},
		{Name: "$elemMatch", Doc: "Matches arrays of which one element meets several conditions.", Since: "1.4", field: parseElemMatch},
		{Name: "$size", Doc: "Matches arrays of a given length.", Since: "1.0", field: parseSize},
	}
}

// Size matches arrays of N elements.
type Size struct {
	Path fieldpath.Path
	N    int64
}

func (n *Size) match(c run, s subject) (bool, error) {
	return matchPath(n, c, n.Path, fieldpath.Whole, s)
}

func (n *Size) test(_ run, v bson.Value) (bool, error) {
	return v.Type == bson.TypeArray && int64(v.Doc().Count()) == n.N, nil
}

func parseSize(_ *parsing, path fieldpath.Path, arg bson.Value, _ bson.Doc) (Node, error) {
	n, err := nonNegative("$size", arg)
	if err == nil && n > math.MaxInt32 {
		err = fmt.Errorf("Cannot represent in an int: $size: %s", arg)
	}
	if err != nil {
		return nil, badValue("Failed to parse $size. %s", err)
	}
	return &Size{path, n}, nil
}

// ElemMatchObject matches arrays of which one element, a document or an array, matches Child.
type ElemMatchObject struct {
	Path  fieldpath.Path
	Child Node
}

func (n *ElemMatchObject) match(c run, s subject) (bool, error) {
	return matchPath(n, c, n.Path, fieldpath.Whole, s)
}

func (n *ElemMatchObject) test(c run, v bson.Value) (bool, error) {
	if v.Type != bson.TypeArray {
		return false, nil
	}
	i := 0
	for it := v.Doc().Iter(); it.Next(); i++ {
		e := it.Value()
		if e.Type != bson.TypeObject && e.Type != bson.TypeArray {
			continue
		}
		// An array is looked into as a document of its positions.
		ok, err := n.Child.match(c.silent(), subject{value: e.Doc().Value()})
		if err != nil {
			return false, err
		}
		if ok {
			c.found(i)
			return true, nil
		}
	}
	return false, nil
}

func (c run) found(i int) {
	if c.details != nil {
		c.details.Position = i
	}
}

// ElemMatchValue matches arrays of which one element meets all of Children, whose paths are empty.
type ElemMatchValue struct {
	Path     fieldpath.Path
	Children []Node
}

func (n *ElemMatchValue) match(c run, s subject) (bool, error) {
	return matchPath(n, c, n.Path, fieldpath.Whole, s)
}

func (n *ElemMatchValue) test(c run, v bson.Value) (bool, error) {
	if v.Type != bson.TypeArray {
		return false, nil
	}
	all := And{n.Children}
	i := 0
	for it := v.Doc().Iter(); it.Next(); i++ {
		ok, err := all.test(c.silent(), it.Value())
		if err != nil {
			return false, err
		}
		if ok {
			c.found(i)
			return true, nil
		}
	}
	return false, nil
}

func parseElemMatch(p *parsing, path fieldpath.Path, arg bson.Value, _ bson.Doc) (Node, error) {
	if arg.Type != bson.TypeObject {
		return nil, badValue("$elemMatch needs an Object")
	}
	if isOperators(arg, true) {
		if _, top := p.tops[arg.Doc().FirstKey()]; !top {
			return p.elemMatchValue(path, arg.Doc())
		}
	}
	child, err := p.document(arg.Doc(), subLevel)
	if err != nil {
		return nil, err
	}
	return &ElemMatchObject{path, child}, nil
}

func (p *parsing) elemMatchValue(path fieldpath.Path, d bson.Doc) (Node, error) {
	outer := p.level
	p.level = subLevel
	defer func() { p.level = outer }()
	and := &And{}
	if err := p.operators(and, fieldpath.Path{}, d); err != nil {
		return nil, err
	}
	return &ElemMatchValue{path, and.Children}, nil
}

// parseAll turns $all into the conjunction that it is.
func parseAll(p *parsing, path fieldpath.Path, arg bson.Value, _ bson.Doc) (Node, error) {
	if arg.Type != bson.TypeArray {
		return nil, badValue("$all needs an array")
	}
	if arg.Doc().IsEmpty() {
		return &AlwaysFalse{}, nil
	}
	parse := p.allValue
	if first := arg.Doc().Index(0); first.Type == bson.TypeObject && first.Doc().FirstKey() == "$elemMatch" {
		parse = p.allElemMatch
	}
	and := &And{}
	for it := arg.Doc().Iter(); it.Next(); {
		n, err := parse(path, it.Value())
		if err != nil {
			return nil, err
		}
		and.Children = append(and.Children, n)
	}
	return and.simple(), nil
}

func (p *parsing) allElemMatch(path fieldpath.Path, v bson.Value) (Node, error) {
	if v.Type != bson.TypeObject || v.Doc().FirstKey() != "$elemMatch" {
		return nil, badValue("$all/$elemMatch has to be consistent")
	}
	return parseElemMatch(p, path, v.Doc().Index(0), v.Doc())
}

func (p *parsing) allValue(path fieldpath.Path, v bson.Value) (Node, error) {
	if v.Type == bson.TypeRegex {
		return p.regexValue(path, v)
	}
	if v.Type == bson.TypeObject {
		if first := v.Doc().FirstKey(); p.fields[first] != nil && first != "$not" {
			return nil, badValue("no $ expressions in $all")
		}
	}
	return p.compare(path, Eq, v)
}
