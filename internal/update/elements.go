package update

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// indexed applies n, whose children are positions, to an array.
func (a *applier) indexed(dst []byte, n *node, d bson.Doc) ([]byte, bson.Type, effect, error) {
	children, err := a.childrenOf(n)
	if err != nil {
		return dst, 0, unchanged, err
	}
	a.arrays++
	defer func() { a.arrays-- }()
	todo, out, count := newPending(len(children)), unchanged, 0
	for i := range children {
		if children[i].index >= 0 {
			continue
		}
		if err := a.notViable(children[i], d.ArrayValue()); err != nil {
			return dst, 0, unchanged, err
		}
		todo.take(i)
	}
	dst, start := openDoc(dst)
	run, pos, i := 4, 4, 0
	for it := d.Iter(); it.Next(); count++ {
		key, v := it.Key(), it.Value()
		next := pos + 2 + len(key) + len(v.Data)
		for i < len(children) && children[i].index < count { // they stand in the order of their positions
			i++
		}
		if i < len(children) && children[i].index == count {
			todo.take(i)
			var e effect
			dst = append(dst, d[run:pos]...)
			if dst, e, err = a.item(dst, children[i].node, children[i].name, key, v); err != nil {
				return dst, 0, unchanged, err
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
			if dst, count, e, err = a.newItem(dst, children[i], count); err != nil {
				return dst, 0, unchanged, err
			}
			out = max(out, e)
		}
	}
	return closeDoc(dst, start), bson.TypeArray, out, nil
}

// item applies n to an element of an array; one that is removed becomes null.
func (a *applier) item(dst []byte, n *node, name, key string, v bson.Value) ([]byte, effect, error) {
	dst, at := head(dst, 0, key)
	a.push(name)
	dst, t, e, err := a.value(dst, n, v)
	if err != nil {
		return dst, e, err
	}
	a.pop()
	switch e {
	case unchanged:
		return dst[:at], e, nil
	case removed:
		dst = dst[:at+2+len(key)]
		t = bson.TypeNull
	}
	dst[at] = byte(t)
	return dst, replaced, nil
}

// newItem appends an element behind an array's end, with nulls before it, if the child creates one.
func (a *applier) newItem(dst []byte, c child, count int) ([]byte, int, effect, error) {
	ok, err := a.creates(c.node, c.name)
	if err != nil || !ok {
		return dst, count, unchanged, err
	}
	switch {
	case c.index < count:
		return dst, count, unchanged, mongoerr.New(mongoerr.ConflictingUpdateOperators, "Update created a conflict at '%s.%s'", a.dotted(), c.name)
	case c.index-count > MaxArrayPadding:
		return dst, count, unchanged, mongoerr.New(mongoerr.CannotBackfillArray, "can't backfill more than %d elements", MaxArrayPadding)
	case a.path[0] == "_id":
		return dst, count, unchanged, mongoerr.New(mongoerr.ImmutableField,
			"Updating the path '%s' to %s would modify the immutable field '_id'", a.dotted(), a.idText())
	}
	for ; count < c.index; count++ {
		dst, _ = head(dst, bson.TypeNull, bson.IndexKey(count))
	}
	dst, at := head(dst, 0, bson.IndexKey(count))
	a.push(c.name)
	dst, t, err := a.create(dst, c.node)
	a.pop()
	if err != nil {
		return dst, count, unchanged, err
	}
	dst[at] = byte(t)
	return dst, count + 1, replaced, nil
}

// filtered applies n's children to the elements that pass the filters they are named for.
func (a *applier) filtered(dst []byte, n *node, d bson.Doc) ([]byte, bson.Type, effect, error) {
	a.arrays++
	defer func() { a.arrays-- }()
	out := unchanged
	dst, start := openDoc(dst)
	run, pos := 4, 4
	for it := d.Iter(); it.Next(); {
		key, v := it.Key(), it.Value()
		next := pos + 2 + len(key) + len(v.Data)
		sub, err := a.passing(n, key, v)
		if err != nil {
			return dst, 0, unchanged, err
		}
		if sub != nil {
			var e effect
			dst = append(dst, d[run:pos]...)
			if dst, e, err = a.item(dst, sub, key, key, v); err != nil {
				return dst, 0, unchanged, err
			}
			if run = pos; e != unchanged {
				run, out = next, replaced
			}
		}
		pos = next
	}
	dst = append(dst, d[run:len(d)-1]...)
	return closeDoc(dst, start), bson.TypeArray, out, nil
}

// passing is what is to be done to an element of an array, or nil.
func (a *applier) passing(n *node, key string, v bson.Value) (*node, error) {
	var all *node
	for _, c := range n.children {
		if c.name != "" {
			ok, err := a.filters[c.name].matches(a, v)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
		}
		if all == nil {
			all = c.node
			continue
		}
		both, err := merge(all, c.node, append(a.path[:len(a.path):len(a.path)], key))
		if err != nil {
			return nil, err
		}
		all = both
	}
	return all, nil
}
