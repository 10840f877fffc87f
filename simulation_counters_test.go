package ebb

import (
	"fmt"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

const simCounters = 3

// simCounter adds one to counters, of which nobody else writes any. Each write is done once, however often it is sent, and is answered the same each time.
type simCounter struct {
	*simClient
	least, most [simCounters]int64 // what each may be
}

func (c *simCounter) run() {
	c.each(func() error {
		i, j := c.random.IntN(simCounters), c.random.IntN(simCounters)
		switch c.random.IntN(4) {
		case 0:
			return c.modify(i)
		case 1:
			return c.add(fmt.Sprintf(`{update: "c", updates: [{q: {_id: %d}, u: {$inc: {n: 1}}}, {q: {_id: %d}, u: {$inc: {n: 1}}}]}`, i, j), i, j)
		}
		return c.add(fmt.Sprintf(`{update: "c", updates: [{q: {_id: %d}, u: {$inc: {n: 1}}}]}`, i), i)
	})
}

// send sends a write, and now and then once more although it was answered. It says whether it was answered.
func (c *simCounter) send(text string) (reply bson.Doc, ok bool, err error) {
	reply, err = c.write("%s", text)
	switch {
	case err != nil && mayBeDone(err):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("%s: %w", text, err)
	}
	c.s.counts.add("counted")
	if c.random.IntN(4) > 0 {
		return reply, true, nil
	}
	c.s.pause(time.Duration(c.random.Int64N(int64(simThink))))
	if c.s.fault == faultTwice {
		c.txns++
	}
	again, err := c.atPrimary("d", c.inSession(text).Int64("txnNumber", c.txns).Doc(), simPatience)
	switch {
	case err != nil && mayBeDone(err):
	case err != nil:
		return nil, false, fmt.Errorf("%s, sent again: %w", text, err)
	default:
		for _, field := range []string{"n", "nModified", "value"} {
			if bson.Compare(again.Lookup(field), reply.Lookup(field)) != 0 {
				return nil, false, fmt.Errorf("%s is answered %s, and %s when it is sent again", text, reply, again)
			}
		}
		c.s.counts.add("sent again")
	}
	return reply, true, nil
}

// add adds one to each of the counters.
func (c *simCounter) add(text string, counters ...int) error {
	reply, ok, err := c.send(text)
	if err != nil {
		return err
	}
	for _, i := range counters {
		c.most[i]++
		if ok {
			c.least[i]++
		}
	}
	if n := int64(len(counters)); ok && (reply.Lookup("n").TruncInt64() != n || reply.Lookup("nModified").TruncInt64() != n) {
		return fmt.Errorf("%s is answered %s", text, reply)
	}
	return nil
}

// modify adds one to a counter, and learns what it was or is.
func (c *simCounter) modify(i int) error {
	isNew := c.random.IntN(2)
	reply, ok, err := c.send(fmt.Sprintf(`{findAndModify: "c", query: {_id: %d}, update: {$inc: {n: 1}}, new: %t}`, i, isNew == 1))
	if err != nil || !ok {
		c.most[i]++
		return err
	}
	n := reply.Lookup("value").Doc().Lookup("n").TruncInt64() - int64(isNew)
	if n < c.least[i] || n > c.most[i] {
		return fmt.Errorf("counter %d was %d, and can only have been from %d to %d", i, n, c.least[i], c.most[i])
	}
	c.least[i], c.most[i] = n+1, n+1
	return nil
}

func (c *simCounter) check() error {
	reply, err := c.atPrimary("d", bson.MustDoc(`{find: "c"}`), simPatience)
	if err != nil {
		return err
	}
	for _, d := range docs(reply) {
		i, n := d.Lookup("_id").TruncInt64(), d.Lookup("n").TruncInt64()
		if n < c.least[i] || n > c.most[i] {
			return fmt.Errorf("counter %d is %d in the end, and can only be from %d to %d", i, n, c.least[i], c.most[i])
		}
	}
	return nil
}

// simKeys inserts documents of ascending _id, and some of them once more, which has to be refused.
type simKeys struct {
	*simClient
	state map[int]presence
	next  int
}

type presence int

const (
	absent presence = iota
	present
	doubtful
)

func (c *simKeys) run() {
	c.state = map[int]presence{}
	c.each(func() error {
		n := c.next
		if n > 0 && c.random.IntN(2) == 0 {
			n = max(0, n-1-c.random.IntN(20))
		} else {
			c.next++
		}
		_, err := c.write(`{insert: "u", documents: [{_id: %d, k: %d}]}`, n, n)
		switch was := c.state[n]; {
		case err == nil && was == present:
			return fmt.Errorf("%d was inserted, and can be once more", n)
		case err == nil:
			c.state[n] = present
		case codeOf(err) == mongoerr.DuplicateKey && was == absent:
			return fmt.Errorf("%d is there, and was never inserted", n)
		case codeOf(err) == mongoerr.DuplicateKey:
			c.state[n] = present
			c.s.counts.add("refused key")
		case !mayBeDone(err):
			return err
		case was == absent:
			c.state[n] = doubtful
		}
		return nil
	})
}

func (c *simKeys) check() error {
	reply, err := c.atPrimary("d", bson.MustDoc(`{find: "u", batchSize: 100000, hint: {k: 1}}`), simPatience)
	if err != nil {
		return err
	}
	there := map[int]bool{}
	for _, d := range docs(reply) {
		there[int(d.Lookup("_id").TruncInt64())] = true
	}
	for n, was := range c.state {
		if was == present && !there[n] {
			return fmt.Errorf("%d was inserted, and is lost", n)
		}
	}
	for n := range there {
		if c.state[n] == absent {
			return fmt.Errorf("%d is there, and was never inserted", n)
		}
	}
	return nil
}
