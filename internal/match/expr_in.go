package match

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/fieldpath"
)

// MongoDB puts a condition of the query language beside an $expr, so that an index can find what the $expr matches. Both
// must hold. The condition has the collation of the query where it compares, and none where it is an $in: there strings
// are compared by their bytes. So {$expr: {$in: ["$a", ["X"]]}} matches {a: "X"} and not {a: "x"}, whatever the collation.
// Without a collation the condition holds wherever the $expr does, and none is kept.
//
// A condition is made of $in with a path of the document on the left and a list that no document decides on the right, of
// comparisons of such a path, and of $and and $or of these.

// verdict is what a condition says of a document.
type verdict uint8

const (
	unsaid verdict = iota // MongoDB makes no condition of this, which the values of variables may decide
	holds
	fails
)

// condition is one that stands beside an $expr.
type condition interface {
	verdict(c run) (verdict, error)
}

// conditionOf is the condition beside e; nil when it holds wherever e does.
func conditionOf(e expr.Expr) condition {
	c := conditionIn(e)
	if c == nil || !narrows(c) {
		return nil
	}
	return c
}

// conditionIn is the condition made of e, nil when MongoDB makes none.
func conditionIn(e expr.Expr) condition {
	name, args := expr.Operation(e)
	switch name {
	case "$and":
		var all allOf
		for _, arg := range args {
			if c := conditionIn(arg); c != nil {
				all = append(all, c)
			}
		}
		if len(all) > 0 {
			return all
		}
	case "$or":
		var any anyOf
		for _, arg := range args {
			c := conditionIn(arg)
			if c == nil {
				return nil
			}
			any = append(any, c)
		}
		if len(any) > 0 {
			return any
		}
	case "$in":
		path, ok := expr.FieldOf(args[0])
		if ok && expr.IsGiven(args[1]) {
			return &inList{path, args[1]}
		}
	default:
		if c, ok := expr.ComparisonOf(e); ok {
			return &compared{e, c}
		}
	}
	return nil
}

// narrows says whether c may fail where its $expr holds. A comparison in an $and cannot: it is what the $expr says.
func narrows(c condition) bool {
	switch c := c.(type) {
	case allOf:
		for _, part := range c {
			if narrows(part) {
				return true
			}
		}
		return false
	case anyOf:
		for _, part := range c {
			if narrows(part) {
				return true
			}
		}
		return false
	}
	_, in := c.(*inList)
	return in
}

type allOf []condition

func (c allOf) verdict(r run) (verdict, error) {
	said := unsaid
	for _, part := range c {
		v, err := part.verdict(r)
		if err != nil || v == fails {
			return v, err
		}
		said = max(said, v)
	}
	return said, nil
}

type anyOf []condition

func (c anyOf) verdict(r run) (verdict, error) {
	said := fails
	for _, part := range c {
		v, err := part.verdict(r)
		if err != nil || v == unsaid {
			return v, err
		}
		said = min(said, v)
	}
	return said, nil
}

// inList is {path: {$in: list}}.
type inList struct {
	path fieldpath.Path
	list expr.Expr
}

func (c *inList) verdict(r run) (verdict, error) {
	list, err := c.list.Eval(r.env)
	if err != nil || list.Type != bson.TypeArray {
		return unsaid, err
	}
	for it := list.Doc().Iter(); it.Next(); {
		switch it.Value().Type {
		case bson.TypeArray, bson.TypeNull, bson.TypeUndefined, bson.TypeRegex: // an $in of the query language means others
			return unsaid, nil
		}
	}
	found := c.path.Walk(r.root, fieldpath.Traverse, func(v bson.Value, _ int) bool {
		for it := list.Doc().Iter(); it.Next(); {
			if bson.Compare(v, it.Value()) == 0 {
				return true
			}
		}
		return false
	})
	return said(found), nil
}

// compared is a comparison of a path.
type compared struct {
	whole expr.Expr
	expr.Comparison
}

func (c *compared) verdict(r run) (verdict, error) {
	than, err := c.Than.Eval(r.env)
	if err != nil || than.IsMissing() || than.Type == bson.TypeArray || than.Type == bson.TypeUndefined {
		return unsaid, err
	}
	if meetsArray(c.Path, r.root) {
		return holds, nil // MongoDB leaves arrays to the $expr
	}
	v, err := c.whole.Eval(r.env)
	return said(v.Truthy()), err
}

// meetsArray says whether there is an array along p.
func meetsArray(p fieldpath.Path, d bson.Doc) bool {
	for i := range p.Len() {
		v := d.Lookup(p.Part(i))
		if v.Type != bson.TypeObject {
			return v.Type == bson.TypeArray
		}
		d = v.Doc()
	}
	return false
}

func said(ok bool) verdict {
	if ok {
		return holds
	}
	return fails
}
