package anomaly

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// fault is what a simulated store does wrong.
type fault string

const (
	sound          fault = "sound"
	noConflicts    fault = "of appends to one list beside one another the last replaces the others"
	mergedAppends  fault = "appends to one list beside one another come one behind the other"
	readCommitted  fault = "each read sees the latest state"
	readDirty      fault = "reads see what is not committed"
	staleSnapshots fault = "transactions begin in the past"
	lostCommits    fault = "a commit is answered and not done"
	halfAborts     fault = "an aborted transaction leaves its first append"
	doubleAppends  fault = "an append that is sent again is executed again"
	halfSnapshots  fault = "some keys are read in the latest state, and others in the transaction's"
)

// TestSimulated runs clients against a store in memory with snapshot isolation, which must pass whatever the seed, and against stores
// that do something wrong, each of which must be found.
func TestSimulated(t *testing.T) {
	for seed := range uint64(60) {
		r := Check(simulate(seed, sound, 400))
		if len(r.Anomalies) > 0 {
			t.Fatalf("seed %d: %v", seed, r.Anomalies[0])
		}
		if r.Skews == 0 {
			t.Errorf("seed %d: nothing ran beside one another", seed)
		}
	}
	for wrong, names := range map[fault][]string{
		noConflicts:    {"order", "G0"},
		mergedAppends:  {"G-single"},
		readCommitted:  {"internal", "G-single"},
		readDirty:      {"G1a", "G1b"},
		staleSnapshots: {"G-single-realtime"},
		lostCommits:    nil, // one knot, of which any circle may be shown
		halfAborts:     {"G1a"},
		doubleAppends:  {"duplicate"},
		halfSnapshots:  {"internal", "G-single"},
	} {
		t.Run(string(wrong), func(t *testing.T) {
			all := map[string]int{}
			for seed := range uint64(6) {
				anomalies := Check(simulate(seed, wrong, 1000)).Anomalies
				if len(anomalies) == 0 {
					t.Errorf("seed %d: found nothing", seed)
				}
				for _, a := range anomalies {
					all[a.Name]++
				}
			}
			for _, n := range names {
				if all[n] == 0 {
					t.Errorf("found %v, and no %s", all, n)
				}
			}
		})
	}
}

// simulated is a store of lists.
type simulated struct {
	random *rand.Rand
	fault  fault
	now    int64
	states []map[string][]int64 // after each commit
	open   []*client
}

// client runs one transaction after the other.
type client struct {
	txn      *Txn
	snapshot int
	writes   map[string][]int64
	left     int // operations to come
}

const simulatedKeys = 4

func simulate(seed uint64, wrong fault, txns int) []Txn {
	s := &simulated{random: rand.New(rand.NewPCG(seed, 7)), fault: wrong, states: []map[string][]int64{{}}}
	for range 6 {
		s.open = append(s.open, &client{})
	}
	var all []*Txn
	for len(all) < txns {
		s.now++
		c := s.open[s.random.IntN(len(s.open))]
		switch {
		case c.txn == nil:
			c.txn = &Txn{Name: fmt.Sprint("T", len(all)), Start: s.now, End: Never, Outcome: Unknown}
			all = append(all, c.txn)
			c.snapshot, c.writes, c.left = len(s.states)-1, map[string][]int64{}, 1+s.random.IntN(5)
			if s.fault == staleSnapshots && s.random.IntN(10) == 0 {
				c.snapshot = max(0, c.snapshot-8)
			}
		case c.left > 0:
			s.step(c)
			c.left--
		default:
			s.end(c)
			c.txn = nil
		}
	}
	var history []Txn
	for _, t := range all {
		history = append(history, *t)
	}
	s.now++
	last := Txn{Name: "last", Start: s.now, End: s.now + 1}
	for k := range simulatedKeys {
		last.Ops = append(last.Ops, Read(name(k), s.latest()[name(k)]))
	}
	return append(history, last)
}

func name(key int) string { return fmt.Sprint("k", key) }

func (s *simulated) latest() map[string][]int64 { return s.states[len(s.states)-1] }

func (s *simulated) step(c *client) {
	k := name(s.random.IntN(simulatedKeys))
	if s.random.IntN(2) == 0 {
		c.txn.Ops = append(c.txn.Ops, Read(k, slices.Concat(s.base(c, k), c.writes[k])))
		return
	}
	c.txn.Ops = append(c.txn.Ops, Append(k, s.now))
	c.writes[k] = append(c.writes[k], s.now)
	if s.fault == doubleAppends && s.random.IntN(20) == 0 {
		c.writes[k] = append(c.writes[k], s.now)
	}
}

// base is what the client's transaction sees of a list of others' appends.
func (s *simulated) base(c *client, k string) []int64 {
	switch {
	case s.fault == readCommitted, s.fault == halfSnapshots && k == name(0):
		return s.latest()[k]
	case s.fault == readDirty:
		for _, other := range s.open {
			if other != c && other.txn != nil && len(other.writes[k]) > 0 {
				return slices.Concat(s.latest()[k], other.writes[k])
			}
		}
	}
	return s.states[c.snapshot][k]
}

func (s *simulated) end(c *client) {
	c.txn.End = s.now
	conflict := false
	for k := range c.writes {
		conflict = conflict || len(s.latest()[k]) != len(s.states[c.snapshot][k])
	}
	if s.fault == noConflicts || s.fault == mergedAppends {
		conflict = false
	}
	aborts := conflict || s.random.IntN(10) == 0
	if aborts {
		c.txn.Outcome = Aborted
		if s.fault == halfAborts && s.random.IntN(4) == 0 {
			for _, o := range c.txn.Ops {
				if !o.Read {
					s.put(map[string][]int64{o.Key: append(slices.Clone(s.latest()[o.Key]), o.Value)})
					break
				}
			}
		}
		return
	}
	if c.txn.Outcome = Committed; s.random.IntN(10) == 0 { // the answer is lost
		c.txn.Outcome, c.txn.End = Unknown, Never
		if s.random.IntN(2) == 0 {
			return
		}
	} else if s.fault == lostCommits && s.random.IntN(20) == 0 {
		return
	}
	changed := map[string][]int64{}
	for k, values := range c.writes {
		before := s.states[c.snapshot][k]
		if s.fault == mergedAppends {
			before = s.latest()[k]
		}
		changed[k] = slices.Concat(before, values)
	}
	s.put(changed)
}

func (s *simulated) put(changed map[string][]int64) {
	next := map[string][]int64{}
	for k, v := range s.latest() {
		next[k] = v
	}
	for k, v := range changed {
		next[k] = v
	}
	s.states = append(s.states, next)
}
