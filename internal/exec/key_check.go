package exec

import (
	"bytes"

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

// field looks for the span that has value, which stands behind prefix.
func (c *keyCheck) field(prefix, value []byte, spans []planner.Range) (inside bool, to []byte) {
	if c.plan.Backward {
		return c.fieldBackward(prefix, value, spans)
	}
	for _, s := range spans {
		if bytes.Compare(value, s.Low) < 0 {
			return false, c.place(prefix, s.Low)
		}
		if s.High == nil || bytes.Compare(value, s.High) < 0 {
			return true, nil
		}
	}
	c.seek = append(c.seek[:0], prefix...)
	return false, keystring.Successor(c.seek)
}

func (c *keyCheck) fieldBackward(prefix, value []byte, spans []planner.Range) (inside bool, to []byte) {
	for i := len(spans) - 1; i >= 0; i-- {
		s := spans[i]
		if s.High != nil && bytes.Compare(value, s.High) >= 0 {
			return false, c.place(prefix, s.High)
		}
		if bytes.Compare(value, s.Low) >= 0 {
			return true, nil
		}
	}
	return false, c.place(prefix, nil)
}

func (c *keyCheck) place(prefix, value []byte) []byte {
	c.seek = append(append(c.seek[:0], prefix...), value...)
	return c.seek
}
