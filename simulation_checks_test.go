package ebb

import (
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/member"
	"github.com/ebbdb/ebb/internal/replset"
)

// compare holds the stores of all members to one another: those that are at one commit are the same, key by key.
func (s *simulation) compare() {
	synctest.Wait() // nobody does anything meanwhile
	for _, m := range s.members {
		d := m.database()
		if d == nil || d.role.Kind == member.Alone {
			continue
		}
		if v := d.commands.Replica.View(); v.Config == nil || v.State == replset.Startup2 {
			continue // it is of no set, or joins one and has its own store still
		}
		number, sum, err := m.state()
		if err != nil {
			s.fail("member %d: %w", m.place, err)
			return
		}
		if known, ok := s.states[number]; ok && known.sum != sum {
			s.fail("members %d and %d have other keys at commit %d:\n%s", known.member, m.place, number, s.differences(known.member, m.place))
			return
		} else if ok && known.member != m.place {
			s.counts.add("compared")
		}
		s.states[number] = simState{sum, m.place}
	}
}

// settle waits until all members have the same, and compares them.
func (s *simulation) settle() error {
	if err := s.restore(); err != nil {
		return fmt.Errorf("all is well, and the set is not what it was: %w", err)
	}
	s.alignClocks()
	if err := s.within(3*time.Minute, func() error {
		for range 2 { // what one commit brings about is there, too
			s.pause(time.Second)
			synctest.Wait()
			if err := s.isLevel(); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return fmt.Errorf("all is well, and they do not agree: %w", err)
	}
	s.compare()
	return s.failed()
}

// isLevel says whether all members are at the same commit.
func (s *simulation) isLevel() error {
	in, err := s.inSet()
	if err != nil {
		return err
	}
	want, _ := s.leading().engine().Last()
	for _, m := range in {
		if number, _ := m.engine().Last(); number != want {
			return fmt.Errorf("member %d is at commit %d, the primary at %d: %+v", m.place, number, want, s.leading().server.group.Status())
		}
	}
	return nil
}

// alignClocks sets all clocks to the set's time, or to that of the clock that is furthest ahead: where it stands still nothing expires.
func (s *simulation) alignClocks() {
	latest := time.UnixMilli(s.time.Load())
	for _, m := range s.members {
		if m != nil && m.clock.Now().After(latest) {
			latest = m.clock.Now()
		}
	}
	for _, m := range s.members {
		if m != nil {
			m.clock.set(latest.Sub(m.clock.Now()))
		}
	}
}

// atMember runs a command at a member, and tries again for a while where it is interrupted.
func (s *simulation) atMember(m *simMember, db string, body bson.Doc) (reply bson.Doc, err error) {
	err = s.within(simPatience, func() (err error) {
		reply, err = s.admin.call(s.ctx, m.place, db, body)
		return err
	})
	return reply, err
}

// validate has each member look at all its collections, and counts once more what the client's books say.
func (s *simulation) validate() error {
	var in []*simMember // one that was let go hears of no time any more, for which who asks it would wait
	if err := s.within(time.Minute, func() (err error) { in, err = s.inSet(); return err }); err != nil {
		return fmt.Errorf("in the end %w", err)
	}
	for _, m := range in {
		for _, c := range m.database().store.Catalog().All() {
			if c.IsView() || c.NS.DB == "local" {
				continue
			}
			reply, err := s.atMember(m, c.NS.DB, bson.Build().String("validate", c.NS.Coll).Bool("full", true).Doc())
			if err != nil {
				return fmt.Errorf("validate %s of member %d: %w", c.NS, m.place, err)
			}
			if !reply.Lookup("valid").Truthy() || reply.Lookup("warnings").Doc().Count() > 0 {
				return fmt.Errorf("%s of member %d is not valid: %s", c.NS, m.place, reply)
			}
			if err := s.readByIndexes(m, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// simExpired are the collections of which nothing is left in the end.
var simExpired = []string{"p", "h", "q"}

// awaitExpiry waits until nothing that expires is stored at a member any more.
func (s *simulation) awaitExpiry(m *simMember) error {
	return s.within(3*time.Minute, func() error {
		for _, coll := range simExpired {
			reply, err := s.admin.call(s.ctx, m.place, "d", bson.Build().String("validate", coll).Doc())
			if err != nil {
				return err
			}
			if n := reply.Lookup("nrecords").TruncInt64(); n != 0 {
				return fmt.Errorf("member %d keeps %d documents of %s that have expired", m.place, n, coll)
			}
		}
		return nil
	})
}

// readByIndexes holds what a member finds by each index to what a scan finds, and to what it counts: what it knows of them in memory is that of its store.
func (s *simulation) readByIndexes(m *simMember, c *catalog.Collection) error {
	if c.NS.DB != "d" {
		return nil
	}
	find := func(hint string) (ids []string, err error) {
		reply, err := s.atMember(m, "d", bson.Build().String("find", c.NS.Coll).Document("hint", bson.MustDoc(hint)).Document("projection", bson.MustDoc(`{_id: 1}`)).Int32("batchSize", 1<<20).Doc())
		if err != nil {
			return nil, fmt.Errorf("%s of member %d by %s: %w", c.NS, m.place, hint, err)
		}
		for _, d := range docs(reply) {
			ids = append(ids, d.String())
		}
		slices.Sort(ids)
		return ids, nil
	}
	return s.within(simPatience, func() error { // something may expire in between
		scanned, err := find(`{$natural: 1}`)
		if err != nil {
			return err
		}
		reply, err := s.atMember(m, "d", bson.Build().String("count", c.NS.Coll).Doc())
		if err != nil {
			return err
		}
		if n := reply.Lookup("n").TruncInt64(); n != int64(len(scanned)) {
			return fmt.Errorf("member %d counts %d documents of %s, and shows %d", m.place, n, c.NS, len(scanned))
		}
		for _, i := range c.Indexes {
			if i.Key.FirstKey() == "_ts" {
				continue // it serves no query
			}
			found, err := find(i.Key.String())
			if err != nil {
				return err
			}
			if !slices.Equal(found, scanned) {
				return fmt.Errorf("member %d shows %d documents of %s by %s, and %d without", m.place, len(found), c.NS, i.Name, len(scanned))
			}
		}
		return nil
	})
}
