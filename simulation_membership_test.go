package ebb

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv/smalldisk"
	"github.com/ebbdb/ebb/internal/member"
)

// edit has the primary take another list of members for the set's configuration; nil: it stays.
func (s *simulation) edit(change func(list []bson.Value) []bson.Value) error {
	reply, err := s.admin.atPrimary("admin", bson.MustDoc(`{replSetGetConfig: 1}`), simCall)
	if err != nil {
		return err
	}
	config := reply.Lookup("config").Doc()
	list := change(config.Lookup("members").Doc().Values(nil))
	if list == nil {
		return nil
	}
	b := bson.Build()
	for it := config.Iter(); it.Next(); {
		switch it.Key() {
		case "members":
			b.Value("members", bson.ArrayOf(list...))
		case "version":
			b.Int64("version", it.Value().TruncInt64()+1)
		default:
			b.Value(it.Key(), it.Value())
		}
	}
	_, err = s.admin.atPrimary("admin", bson.Build().Document("replSetReconfig", b.Doc()).Doc(), simCall)
	return err
}

func (m *simMember) config() bson.Value {
	return bson.Build().Int32("_id", int32(m.place)).String("host", m.host()).Doc().Value()
}

func (m *simMember) isAt(list []bson.Value) int {
	return slices.IndexFunc(list, func(v bson.Value) bool { return v.Doc().Lookup("host").Str() == m.host() })
}

// reconfigure adds the fourth member, or removes it.
func (s *simulation) reconfigure() string {
	if !s.spare {
		return ""
	}
	m, what := s.members[simMembers], "member added"
	if err := s.edit(func(list []bson.Value) []bson.Value {
		if i := m.isAt(list); i >= 0 {
			what = "member removed"
			return slices.Delete(list, i, i+1)
		}
		return append(list, m.config())
	}); err != nil {
		return "reconfiguration refused"
	}
	return what
}

// revote gives a member another priority, or takes its vote or gives it back.
func (s *simulation) revote() string {
	place, priority, votes := s.random.IntN(simMembers), s.random.IntN(3), 1
	if priority == 0 && s.replaced.member == nil { // whose vote is gone
		votes = s.random.IntN(2)
	}
	if err := s.edit(func(list []bson.Value) []bson.Value {
		i := s.members[place].isAt(list)
		if i < 0 {
			return nil
		}
		b := bson.Build()
		for it := list[i].Doc().Iter(); it.Next(); {
			switch it.Key() {
			case "priority":
				b.Double("priority", float64(priority))
			case "votes":
				b.Int32("votes", int32(votes))
			default:
				b.Value(it.Key(), it.Value())
			}
		}
		list[i] = b.Doc().Value()
		return list
	}); err != nil {
		return "reconfiguration refused"
	}
	return "votes"
}

// freeze keeps a member from being elected for some time, or lets it again, or asks it to lead.
func (s *simulation) freeze() string {
	body := bson.MustDoc(fmt.Sprintf(`{replSetFreeze: %d}`, []int{0, 3, 10}[s.random.IntN(3)]))
	if s.random.IntN(2) == 0 {
		body = bson.MustDoc(`{replSetStepUp: 1}`)
	}
	ctx, cancel := clock.WithTimeout(s.ctx, clock.Wall(), simCall)
	defer cancel()
	if _, err := s.admin.call(ctx, s.any().place, "admin", body); err != nil {
		return ""
	}
	return body.FirstKey()
}

// replacement is a member that comes back without its disk: it is let go, and added again.
type replacement struct {
	member *simMember
	gone   bool // it is in the configuration no more
}

// replace takes a member's disk away, or goes on with what follows from that. What was acknowledged may be counted on at two members of three alone, so
// that is done only where all three vote and have their disks.
func (s *simulation) replace() string {
	if s.replaced.member != nil {
		_ = s.goOn() // or later
		return ""
	}
	if s.down() > 0 || !s.areSound() {
		return ""
	}
	m := s.members[s.random.IntN(simMembers)]
	m.crash()
	m.disk, m.lives = smalldisk.New(simDisk), m.lives+1
	s.replaced = replacement{member: m}
	s.recover()
	return "disk lost"
}

// areSound says whether it is sure that all members vote, by what the primary says that leads at the moment.
func (s *simulation) areSound() bool {
	p := s.leading()
	if p == nil {
		return false
	}
	if _, err := s.admin.call(s.ctx, p.place, "d", bson.MustDoc(`{find: "r", limit: 1, readConcern: {level: "linearizable"}, maxTimeMS: 1000}`)); err != nil {
		return false
	}
	d := p.database()
	if d == nil || d.role.Kind != member.Leader {
		return false
	}
	config := d.commands.Replica.View().Config
	for _, m := range s.members[:simMembers] {
		if i := config.Index(m.host()); i < 0 || config.Members[i].Votes == 0 || !p.server.group.Votes(int64(m.place)) {
			return false
		}
	}
	return true
}

// goOn does the next of what has a member without its disk be a member again.
func (s *simulation) goOn() error {
	r := &s.replaced
	if !r.gone {
		if err := s.edit(func(list []bson.Value) []bson.Value {
			if i := r.member.isAt(list); i >= 0 {
				return slices.Delete(list, i, i+1)
			}
			return nil
		}); err != nil {
			return err
		}
		r.gone = true
	}
	if err := s.edit(func(list []bson.Value) []bson.Value {
		if r.member.isAt(list) >= 0 {
			return nil
		}
		return append(list, r.member.config())
	}); err != nil {
		return err
	}
	s.replaced = replacement{}
	s.counts.add("replaced")
	return nil
}

// restore has the set be of all its members, all of which vote.
func (s *simulation) restore() error {
	err := s.within(5*time.Minute, func() error {
		if s.replaced.member != nil {
			if err := s.goOn(); err != nil {
				return fmt.Errorf("replace a member: %w", err)
			}
		}
		return s.edit(func(list []bson.Value) []bson.Value {
			for i, v := range list {
				if v.Doc().Lookup("votes").TruncInt64() == 0 {
					list[i] = bson.Build().Value("_id", v.Doc().Lookup("_id")).Value("host", v.Doc().Lookup("host")).Doc().Value()
					return list
				}
			}
			return nil
		})
	})
	if err != nil {
		for _, m := range s.members {
			if m != nil && m.server != nil {
				err = fmt.Errorf("%w; member %d: %+v", err, m.place, m.server.group.Status())
			}
		}
	}
	return err
}

// inSet are the members that are in the configuration, by what the primary says.
func (s *simulation) inSet() (in []*simMember, err error) {
	p := s.leading()
	if p == nil {
		return nil, errors.New("nobody leads")
	}
	view := p.database().commands.Replica.View()
	for _, m := range s.members {
		if m == nil || view.Config == nil || view.Config.Index(m.host()) < 0 {
			continue
		}
		if m.database() == nil {
			return nil, fmt.Errorf("member %d has no database", m.place)
		}
		in = append(in, m)
	}
	return in, nil
}
