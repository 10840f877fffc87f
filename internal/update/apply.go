package update

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// MaxArrayPadding is the largest number of nulls that setting an element behind an array's end may add.
const MaxArrayPadding = 1_500_000

// effect is what became of a value.
type effect uint8

const (
	unchanged effect = iota
	replaced
	removed
)

// modifier is what a leaf of the tree does.
type modifier interface {
	// apply appends to dst the bytes of what shall stand instead of old, which is missing where the path does not exist (then
	// it is only called when the operator creates fields), and returns their type.
	apply(a *applier, dst []byte, old bson.Value) ([]byte, bson.Type, effect, error)
}

// applier walks a document and the tree of an update side by side, and writes the new document: what no node touches is
// copied as bytes.
type applier struct {
	args Args
	root bson.Doc
	// path is where the walk stands, for messages and for _id.
	path []string
	// arrays counts the arrays on the way.
	arrays int
	// renames are the values that $renames move, missing where there is nothing to move.
	renames []bson.Value
	matched string // the position for "$"
	filters map[string]*arrayFilter

	elements []bson.Value
}

func (a *applier) push(name string) { a.path = append(a.path, name) }
func (a *applier) pop()             { a.path = a.path[:len(a.path)-1] }

// ask is what may end the work; nil where nobody can.
func (a *applier) ask() func() error {
	if a.args.Env == nil {
		return nil
	}
	return a.args.Env.Interrupt
}

func (a *applier) dotted() string { return strings.Join(a.path, ".") }

// idText is the document's _id as messages show it.
func (a *applier) idText() string {
	id := a.root.Lookup("_id")
	if id.IsMissing() {
		return "no id"
	}
	return element("_id", id)
}

func element(name string, v bson.Value) string { return name + ": " + v.String() }

// value applies n to a value that exists.
func (a *applier) value(dst []byte, n *node, v bson.Value) ([]byte, bson.Type, effect, error) {
	switch {
	case n.kind == leafNode:
		return a.leaf(dst, n, v)
	case n.kind == arrayNode:
		if v.Type != bson.TypeArray {
			return dst, 0, unchanged, mongoerr.New(mongoerr.BadValue, "Cannot apply array updates to non-array element %s",
				element(a.path[len(a.path)-1], v))
		}
		return a.filtered(dst, n, v.Doc())
	case v.Type == bson.TypeObject:
		dst, changed, err := a.object(dst, n, v.Doc())
		return dst, bson.TypeObject, changed, err
	case v.Type == bson.TypeArray:
		return a.indexed(dst, n, v.Doc())
	}
	children, err := a.childrenOf(n)
	if err != nil {
		return dst, 0, unchanged, err
	}
	for i := range children {
		if err := a.notViable(children[i], v); err != nil {
			return dst, 0, unchanged, err
		}
	}
	return dst, 0, unchanged, nil
}

// leaf applies a modifier to a value that exists, and keeps _id as it is.
func (a *applier) leaf(dst []byte, n *node, old bson.Value) ([]byte, bson.Type, effect, error) {
	if !a.active(n) {
		return dst, 0, unchanged, nil
	}
	mark := len(dst)
	dst, t, e, err := n.modifier.apply(a, dst, old)
	if err == nil && e == replaced {
		err = a.checkDepth(t, dst[mark:])
	}
	if err != nil || e == unchanged || a.path[0] != "_id" {
		return dst, t, e, err
	}
	if e == replaced && len(a.path) == 1 && n.operator.WholeValue && bson.Compare(old, bson.Value{Type: t, Data: dst[mark:]}) == 0 {
		return dst, t, e, nil
	}
	return dst, t, e, mongoerr.New(mongoerr.ImmutableField,
		"Performing an update on the path '%s' would modify the immutable field '_id'", a.dotted())
}

// active says whether a leaf has anything to do for this document.
func (a *applier) active(n *node) bool {
	if n.rename > 0 && a.renames[n.rename-1].IsMissing() {
		return false
	}
	return a.args.Insert || !n.operator.InsertOnly
}

// childrenOf are n's children with the positional one under the name that the query matched.
func (a *applier) childrenOf(n *node) ([]child, error) {
	if n.positional == nil {
		return n.children, nil
	}
	if a.matched == "" {
		return nil, mongoerr.New(mongoerr.BadValue, "The positional operator did not find the match needed from the query.")
	}
	i, found := n.find(a.matched)
	children := slices.Clone(n.children)
	if !found {
		return slices.Insert(children, i, child{a.matched, position(a.matched), n.positional}), nil
	}
	both, err := merge(children[i].node, n.positional, append(a.path[:len(a.path):len(a.path)], a.matched))
	if err != nil {
		return nil, err
	}
	children[i].node = both
	return children, nil
}

func openDoc(dst []byte) ([]byte, int) { return append(dst, 0, 0, 0, 0), len(dst) }

func closeDoc(dst []byte, start int) []byte {
	dst = append(dst, 0)
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start))
	return dst
}

// head appends an element's type and name and returns where the type stands.
func head(dst []byte, t bson.Type, name string) ([]byte, int) {
	at := len(dst)
	dst = append(dst, byte(t))
	dst = append(dst, name...)
	return append(dst, 0), at
}

// object applies n to a document: fields in place, new ones behind in the order of the tree.
func (a *applier) object(dst []byte, n *node, d bson.Doc) ([]byte, effect, error) {
	children, err := a.childrenOf(n)
	if err != nil {
		return dst, unchanged, err
	}
	todo, out := newPending(len(children)), unchanged
	dst, start := openDoc(dst)
	run, pos := 4, 4 // d[run:pos] is still to be copied
	for it := d.Iter(); todo.left > 0 && it.Next(); {
		key, v := it.Key(), it.Value()
		next := pos + 2 + len(key) + len(v.Data)
		if i := lookup(children, &todo, key); i >= 0 {
			todo.take(i)
			var e effect
			dst = append(dst, d[run:pos]...)
			if dst, e, err = a.field(dst, children[i], v); err != nil {
				return dst, unchanged, err
			}
			if run = pos; e != unchanged {
				run, out = next, replaced
			}
		}
		pos = next
	}
	dst = append(dst, d[run:len(d)-1]...)
	for i := range children {
		if todo.left > 0 && !todo.done(i) {
			var e effect
			if dst, e, err = a.newField(dst, children[i].name, children[i].node); err != nil {
				return dst, unchanged, err
			}
			out = max(out, e)
		}
	}
	return closeDoc(dst, start), out, nil
}

// field applies a child to the field of its name; dst is as before when that changed nothing or removed it.
func (a *applier) field(dst []byte, c child, v bson.Value) ([]byte, effect, error) {
	dst, at := head(dst, 0, c.name)
	a.push(c.name)
	dst, t, e, err := a.value(dst, c.node, v)
	if err != nil {
		return dst, e, err
	}
	a.pop()
	if e != replaced {
		return dst[:at], e, nil
	}
	dst[at] = byte(t)
	return dst, e, a.checkName(c.name)
}

// newField appends a field that did not exist, if n creates one.
func (a *applier) newField(dst []byte, name string, n *node) ([]byte, effect, error) {
	ok, err := a.creates(n, name)
	if err != nil || !ok {
		return dst, unchanged, err
	}
	if len(a.path) > 0 && a.path[0] == "_id" {
		return dst, unchanged, mongoerr.New(mongoerr.ImmutableField,
			"Updating the path '%s' to %s would modify the immutable field '_id'", a.dotted(), a.idText())
	}
	if err := a.checkName(name); err != nil {
		return dst, unchanged, err
	}
	dst, at := head(dst, 0, name)
	a.push(name)
	dst, t, err := a.create(dst, n)
	a.pop()
	if err != nil {
		return dst, unchanged, err
	}
	dst[at] = byte(t)
	return dst, replaced, nil
}

// checkName refuses to write fields at the top whose names start with '$', which only an insert may.
func (a *applier) checkName(name string) error {
	if len(a.path) == 0 && !a.args.Insert && name != "" && name[0] == '$' {
		return dollarField(name)
	}
	return nil
}

// checkDepth refuses a value that nests too deep where the walk stands.
func (a *applier) checkDepth(t bson.Type, data []byte) error {
	depth := len(a.path) + 1
	if t != bson.TypeObject && t != bson.TypeArray || len(data) <= 5 {
		return checkLevel(depth - 1)
	}
	return checkDepth(bson.Doc(data), depth)
}

// creates says whether n would make a value where there is none.
func (a *applier) creates(n *node, name string) (bool, error) {
	switch n.kind {
	case leafNode:
		return n.operator.Creates && a.active(n), nil
	case arrayNode:
		path := append(a.path[:len(a.path):len(a.path)], name)
		return false, mongoerr.New(mongoerr.BadValue, "The path '%s' must exist in the document in order to apply array updates.",
			strings.Join(path, "."))
	}
	children, err := a.childrenOf(n)
	if err != nil {
		return false, err
	}
	any := false
	a.push(name)
	for i := range children {
		ok, err := a.creates(children[i].node, children[i].name)
		if err != nil {
			return false, err
		}
		any = any || ok
	}
	a.pop()
	return any, nil
}

// create appends the value that n makes where there is none.
func (a *applier) create(dst []byte, n *node) ([]byte, bson.Type, error) {
	if n.kind == leafNode {
		mark := len(dst)
		dst, t, _, err := n.modifier.apply(a, dst, bson.Missing)
		if err == nil {
			err = a.checkDepth(t, dst[mark:])
		}
		return dst, t, err
	}
	dst, _, err := a.object(dst, n, bson.EmptyDoc)
	return dst, bson.TypeObject, err
}

// notViable is the error of a child whose path leads through v, which is neither a document nor an array with such a
// position; nil when the child does not mind.
func (a *applier) notViable(c child, v bson.Value) error {
	last := a.path[len(a.path)-1]
	ok, err := a.creates(c.node, c.name)
	switch {
	case err != nil:
		return err
	case ok:
		return mongoerr.New(mongoerr.PathNotViable, "Cannot create field '%s' in element {%s}", c.name, element(last, v))
	case a.minds(c.node):
		return mongoerr.New(mongoerr.PathNotViable, "Cannot use the part (%s) of (%s.%s) to traverse the element ({%s})",
			c.name, a.dotted(), c.name, element(last, v))
	}
	return nil
}

// minds says whether an operator below n fails on a path that could not exist.
func (a *applier) minds(n *node) bool {
	if n.kind == leafNode {
		return !n.operator.AnyPath && a.active(n)
	}
	return n.positional != nil && a.minds(n.positional) ||
		slices.ContainsFunc(n.children, func(c child) bool { return a.minds(c.node) })
}
