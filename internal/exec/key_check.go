package exec

import (
	"bytes"
	"sort"

	"github.com/ebbdb/ebb/internal/keystring"
	"github.com/ebbdb/ebb/internal/planner"
)

// keyCheck holds the fields of a key behind those that a scan's spans bound to spans of their own, and says where to go on
// when one of them lies outside.
type keyCheck struct {
	plan *planner.IndexScan
	seek []byte
}

// within says whether key is inside. If not, to is where the cursor is to be sent to in the direction of the walk.
func (c *keyCheck) within(key []byte) (inside bool, to []byte, err error) {
	at := 0
	for range c.plan.From {
		n, err := keystring.Skip(key[at:])
		if err != nil {
			return false, nil, err
		}
		at += n
	}
	for _, spans := range c.plan.Behind {
		n, err := keystring.Skip(key[at:])
		if err != nil {
			return false, nil, err
		}
		if spans != nil {
			if inside, to = c.field(key[:at], key[at:at+n], spans); !inside {
				return false, to, nil
			}
		}
		at += n
	}
	return true, nil, nil
}

// field looks for the span that has value, which stands behind prefix. The spans are in the order of their keys and do not overlap; there may
// be as many as an $in has values, so they are searched and not walked.
func (c *keyCheck) field(prefix, value []byte, spans []planner.Range) (inside bool, to []byte) {
	if c.plan.Backward {
		return c.fieldBackward(prefix, value, spans)
	}
	i := sort.Search(len(spans), func(i int) bool { return spans[i].High == nil || bytes.Compare(value, spans[i].High) < 0 })
	switch {
	case i == len(spans):
		c.seek = append(c.seek[:0], prefix...)
		return false, keystring.Successor(c.seek)
	case bytes.Compare(value, spans[i].Low) < 0:
		return false, c.place(prefix, spans[i].Low)
	}
	return true, nil
}

func (c *keyCheck) fieldBackward(prefix, value []byte, spans []planner.Range) (inside bool, to []byte) {
	i := sort.Search(len(spans), func(i int) bool { return bytes.Compare(value, spans[i].Low) < 0 }) - 1
	switch {
	case i < 0:
		return false, c.place(prefix, nil)
	case spans[i].High != nil && bytes.Compare(value, spans[i].High) >= 0:
		return false, c.place(prefix, spans[i].High)
	}
	return true, nil
}

func (c *keyCheck) place(prefix, value []byte) []byte {
	c.seek = append(append(c.seek[:0], prefix...), value...)
	return c.seek
}
