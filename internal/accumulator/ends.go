package accumulator

import "github.com/ebbdb/ebb/internal/bson"

func endOperators() []Operator {
	return []Operator{
		{Name: "$first", Since: "2.2", Doc: "The first document's value.", Group: one(newFirst, grows), Window: edgeWindow(false)},
		{Name: "$last", Since: "2.2", Doc: "The last document's value.", Group: one(newLast, grows), Window: edgeWindow(true)},
		{Name: "$firstN", Since: "5.2", Doc: "The first n documents' values.", Group: several(5787801, newFirstN), Window: edgesWindow(false)},
		{Name: "$lastN", Since: "5.2", Doc: "The last n documents' values.", Group: several(5787801, newLastN), Window: edgesWindow(true)},
	}
}

type first struct {
	kept
	taken bool
}

func newFirst(bson.Value) (Fold, error) { return &first{}, nil }

func (f *first) Add(args []bson.Value) error {
	if !f.taken {
		f.taken = true
		f.set(args[0])
	}
	return nil
}

func (f *first) Value() (bson.Value, error) { return f.kept.Value, nil }
func (f *first) Partial() bson.Value        { return partialOf(f.kept.Value, f.taken) }
func (f *first) Size() int                  { return cap(f.Data) + 64 }

func (f *first) Merge(partial bson.Value) error {
	if partial.Type == bson.TypeNull {
		return nil
	}
	return f.Add([]bson.Value{unwrap(partial)})
}

type last struct {
	kept
	taken bool
}

func newLast(bson.Value) (Fold, error) { return &last{}, nil }

func (l *last) Add(args []bson.Value) error {
	l.taken = true
	l.set(args[0])
	return nil
}

func (l *last) Value() (bson.Value, error) { return l.kept.Value, nil }
func (l *last) Partial() bson.Value        { return partialOf(l.kept.Value, l.taken) }
func (l *last) Size() int                  { return cap(l.Data) + 64 }

func (l *last) Merge(partial bson.Value) error {
	if partial.Type == bson.TypeNull {
		return nil
	}
	return l.Add([]bson.Value{unwrap(partial)})
}

// partialOf is null before anything was taken.
func partialOf(v bson.Value, taken bool) bson.Value {
	if !taken {
		return bson.Null
	}
	return wrap(v)
}

// wrap makes a value of one that may be missing.
func wrap(v bson.Value) bson.Value {
	if v.IsMissing() {
		return bson.EmptyArr
	}
	return bson.ArrayOf(v)
}

func unwrap(v bson.Value) bson.Value { return v.Doc().Index(0) }

// queue is the values of the n first or last documents.
type queue struct {
	op   string
	n    int64
	vs   []bson.Value
	held int
	last bool
	out  growing
}

// queueBytes is about what an empty queue takes.
const queueBytes = 120

// queuedBytes is about what a value in a queue takes, which has room for half as many again.
func queuedBytes(v bson.Value) int { return 44 + allocated(len(v.Data)) }

func newFirstN(_ *Parser) maker { return newQueue("$firstN", false) }
func newLastN(_ *Parser) maker  { return newQueue("$lastN", true) }

func newQueue(op string, last bool) maker {
	return func(init bson.Value) (Fold, error) {
		n, err := readN(op, init)
		return &queue{op: op, n: n, last: last}, err
	}
}

func (q *queue) Add(args []bson.Value) error {
	if int64(len(q.vs)) == q.n {
		if !q.last {
			return nil
		}
		q.held -= queuedBytes(q.vs[0])
		q.vs = q.vs[1:]
	}
	v := orNull(args[0]).Clone()
	q.vs = append(q.vs, v)
	q.held += queuedBytes(v)
	if q.held > MaxArrayBytes {
		return tooMuchMemory(q.op)
	}
	return nil
}

func (q *queue) Value() (bson.Value, error) { return q.array(), nil }
func (q *queue) Partial() bson.Value        { return q.array() }
func (q *queue) Size() int                  { return queueBytes + q.held + q.out.size() }

func (q *queue) array() bson.Value {
	q.out.clear()
	for _, v := range q.vs {
		q.out.put(v)
	}
	return q.out.value()
}

func (q *queue) Merge(partial bson.Value) error {
	for it := partial.Doc().Iter(); it.Next(); {
		if err := q.Add([]bson.Value{it.Value()}); err != nil {
			return err
		}
	}
	return nil
}
