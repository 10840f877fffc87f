package match

import "strings"

// Which position "$" stands for when several conditions of a conjunction have one is a matter of order: the last one tells
// it. MongoDB orders conditions by kind, then by path, before it matches; ours stay as they were written, so the order is
// only looked up here, where a position is asked for.

// matchTelling is And's match for somebody who asks for the position.
func (n *And) matchTelling(c run, s subject) (bool, error) {
	position, last := -1, Node(nil)
	for _, child := range n.Children {
		c.details.Position = -1
		if ok, err := child.match(c, s); !ok || err != nil {
			c.details.Position = -1
			return false, err
		}
		if c.details.Position >= 0 && (last == nil || !tellsBefore(child, last)) {
			position, last = c.details.Position, child
		}
	}
	c.details.Position = position
	return true, nil
}

// tellsBefore says whether MongoDB matches a before b; of equals the first written comes first.
func tellsBefore(a, b Node) bool {
	i, pathA := kind(a)
	j, pathB := kind(b)
	return i < j || i == j && strings.Compare(pathA, pathB) < 0
}

// kind is the place of a node's kind in MongoDB's order of them, and the node's path. Kinds that tell no position are last.
func kind(n Node) (place int, path string) {
	switch n := n.(type) {
	case *And:
		return 0, ""
	case *ElemMatchObject:
		return 1, n.Path.String()
	case *ElemMatchValue:
		return 2, n.Path.String()
	case *Size:
		return 3, n.Path.String()
	case *Compare:
		return [...]int{Eq: 4, Lte: 5, Lt: 6, Gt: 7, Gte: 8}[n.Op], n.Path.String()
	case *Regex:
		return 9, n.Path.String()
	case *Mod:
		return 10, n.Path.String()
	case *Exists:
		return 11, n.Path.String()
	case *In:
		return 12, n.Path.String()
	case *Bits:
		return 13, n.Path.String()
	case *Type:
		return 14, n.Path.String()
	}
	return 15, ""
}
