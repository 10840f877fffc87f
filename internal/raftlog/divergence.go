package raftlog

import (
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"
)

// Raft counts on each member having what it has acknowledged. Where one is an older copy of itself, or has lost the end of its log, a majority may elect a
// member that lacks what was committed, and go on with something else under the same numbers. Raft has no answer to that: a member that has what the others
// have lost passes over what contradicts it, and takes part with other data. So it ends instead, and what it has stays.

// Settle says that the log is committed up to an index: the store has applied it. It is for a member that has not begun to take part.
func (c *Core) Settle(index uint64) { c.settled = max(c.settled, index) }

// contradiction is what is wrong with what another member appends that leads, where this one knows that something else is committed.
func (c *Core) contradiction(m *pb.Message) error {
	if m.GetType() != pb.MsgApp {
		return nil
	}
	if err := c.contradictionAt(m.GetFrom(), m.GetIndex(), m.GetLogTerm()); err != nil {
		return err
	}
	for _, e := range m.GetEntries() {
		if err := c.contradictionAt(m.GetFrom(), e.GetIndex(), e.GetTerm()); err != nil {
			return err
		}
	}
	return nil
}

func (c *Core) contradictionAt(from, index, term uint64) error {
	if index <= c.disk.base.index || index > min(max(c.committed, c.settled), c.disk.last) {
		return nil
	}
	own, err := c.disk.Term(index)
	if err != nil || own == term {
		return err
	}
	return fmt.Errorf("raftlog: the member has committed entry %d of term %d, and %s, which leads, has another one of term %d there: what this member has was acknowledged, and is lost at the others, "+
		"of which one is an older copy of itself or has lost a part of its log. Keep this member's data: copy it with 'ebb salvage' before the member is begun anew", index, own, c.nameOf(from), term)
}

func (c *Core) nameOf(id uint64) string {
	if p, ok := c.disk.peers.ByID(id); ok && p.Host != "" {
		return p.Host
	}
	return fmt.Sprintf("the member with id %d", id)
}

// lookAhead tells of another member that has committed what this one, which leads, has never appended. Once a term and member is enough.
func (c *Core) lookAhead(m *pb.Message) {
	if m.GetType() != pb.MsgAppResp || m.GetReject() || m.GetIndex() <= c.end {
		return
	}
	role := c.Role()
	_, known := c.disk.peers.ByID(m.GetFrom())
	if !known || !role.Leads || m.GetTerm() != role.Term || c.ahead[m.GetFrom()] == role.Term {
		return
	}
	if c.ahead == nil {
		c.ahead = map[uint64]uint64{}
	}
	c.ahead[m.GetFrom()] = role.Term
	c.log.Error("A member says that it has committed more of the log than this one, which leads, has: what was acknowledged is lost here, since a member is an older copy of itself or has lost a part of its log. "+
		"That member cannot follow", "member", c.nameOf(m.GetFrom()), "committed", m.GetIndex(), "last", c.end)
}
