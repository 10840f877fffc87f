package exec

import (
	"bytes"
	"container/heap"
	"fmt"

	"github.com/ebbdb/ebb/internal/keystring"
	"github.com/ebbdb/ebb/internal/planner"
)

// mergeInputs is SORT_MERGE: it gives the least of what its inputs stand at, each record once. Inputs come from index scans,
// whose keys have the fields of the order; they are compared as bytes.
type mergeInputs struct {
	inputs []mergeInput
	// empty are the inputs that have to be asked for their next member before the least can be told, by number.
	empty []int
	heads mergeHeads
	given givenIDs
}

// mergeInput is one input with the member that it stands at.
type mergeInput struct {
	working
	scan   *indexScan // that it comes from
	fields []mergeField
	member Member
	// key is what the member is ordered by.
	key []byte
}

// mergeField is where in an input's keys a field of the order stands, and whether it stands there the other way round.
type mergeField struct {
	at     int
	invert bool
}

func newMergeInputs(plan *planner.SortMerge, stats *Stats, inputs []working) *mergeInputs {
	n := &mergeInputs{inputs: make([]mergeInput, len(inputs)), given: givenIDs{stats: stats}}
	n.heads.of = n.inputs
	for i, in := range inputs {
		n.inputs[i] = mergeInput{working: in, scan: scanOf(in.node), fields: mergeFields(plan.Inputs[i], plan.Order)}
		n.empty = append(n.empty, i)
	}
	return n
}

// scanOf is the index scan that a node's members come from.
func scanOf(n node) *indexScan {
	switch n := n.(type) {
	case *indexScan:
		return n
	case *fetch:
		return scanOf(n.in.node)
	}
	panic(fmt.Sprintf("exec: SORT_MERGE of a %T", n))
}

// mergeFields finds the fields of the order in the keys of the index that n walks.
func mergeFields(n planner.Node, order []planner.OrderField) []mergeField {
	for len(n.Children()) > 0 {
		n = n.Children()[0]
	}
	x := planner.IndexOf(n)
	if x == nil {
		panic("exec: SORT_MERGE of what is not in the order of an index")
	}
	out := make([]mergeField, len(order))
	for i, o := range order {
		at := fieldOf(x, o.Path)
		out[i] = mergeField{at, x.Fields[at].Descending != o.Descending}
	}
	return out
}

func fieldOf(x *planner.Index, path string) int {
	for i := range x.Fields {
		if x.Fields[i].Path == path {
			return i
		}
	}
	panic("exec: SORT_MERGE by a field that an input's index lacks")
}

func (n *mergeInputs) work(r *reading, m *Member) (status, error) {
	if k := len(n.empty); k > 0 {
		return n.fill(r, n.empty[k-1])
	}
	if len(n.heads.order) == 0 {
		return ended, nil
	}
	i := heap.Pop(&n.heads).(int)
	n.empty = append(n.empty, i)
	*m = n.inputs[i].member
	if first, err := n.given.add(r, m.ID); !first {
		return needTime, err
	}
	return advanced, nil
}

// fill asks the i-th input, the last of the empty ones, for its next member.
func (n *mergeInputs) fill(r *reading, i int) (status, error) {
	in := &n.inputs[i]
	s, err := in.work(r, &in.member)
	if err != nil {
		return s, err
	}
	switch s {
	case ended:
		n.empty = n.empty[:len(n.empty)-1]
	case advanced:
		if err := in.readKey(); err != nil {
			return ended, err
		}
		n.empty = n.empty[:len(n.empty)-1]
		heap.Push(&n.heads, i)
	}
	return needTime, nil
}

// readKey makes of the key that the member was found by one whose bytes order as the merge does.
func (in *mergeInput) readKey() error {
	var ends [maxKeyFields + 1]int
	key := in.member.Entry.Key
	for i := 0; ends[i] < len(key) && i < maxKeyFields; i++ {
		n, err := keystring.Skip(key[ends[i]:])
		if err != nil {
			return err
		}
		ends[i+1] = ends[i] + n
	}
	in.key = in.key[:0]
	for _, f := range in.fields {
		start := len(in.key)
		in.key = append(in.key, key[ends[f.at]:ends[f.at+1]]...)
		if f.invert {
			for i := range in.key[start:] {
				in.key[start+i] ^= 0xFF
			}
		}
	}
	return nil
}

// maxKeyFields is more than the fields of any key.
const maxKeyFields = 64

// park forgets the members that the inputs stand at: in the next view they may be gone, be others, or match no longer. The
// inputs give them once more if they are still there.
func (n *mergeInputs) park() {
	for _, i := range n.heads.order {
		n.inputs[i].scan.unread()
	}
	n.empty = append(n.empty, n.heads.order...)
	n.heads.order = n.heads.order[:0]
	for i := range n.inputs {
		n.inputs[i].park()
	}
}

func (n *mergeInputs) close() (err error) {
	for i := range n.inputs {
		if e := n.inputs[i].close(); err == nil {
			err = e
		}
	}
	return err
}

// mergeHeads is a heap of inputs by their members' keys; equal ones come in the order of the inputs.
type mergeHeads struct {
	of    []mergeInput
	order []int
}

func (h *mergeHeads) Len() int { return len(h.order) }
func (h *mergeHeads) Less(i, j int) bool {
	a, b := h.order[i], h.order[j]
	c := bytes.Compare(h.of[a].key, h.of[b].key)
	return c < 0 || c == 0 && a < b
}
func (h *mergeHeads) Swap(i, j int) { h.order[i], h.order[j] = h.order[j], h.order[i] }
func (h *mergeHeads) Push(x any)    { h.order = append(h.order, x.(int)) }
func (h *mergeHeads) Pop() any {
	last := h.order[len(h.order)-1]
	h.order = h.order[:len(h.order)-1]
	return last
}
