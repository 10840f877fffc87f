package ebb

import (
	"context"
	"net"
	"os"
	"strconv"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/host"
	"github.com/ebbdb/ebb/internal/member"
	"github.com/ebbdb/ebb/internal/replset"
)

// The oplog of a server of which nobody says how large it may be: mongod's share of what is free on the disk, or of the memory where the
// data is in memory, and its bounds.
const (
	oplogShare          = 20
	minOplogBytes       = 990 << 20
	minMemoryOplogBytes = 50 << 20
	maxOplogBytes       = 50 << 30
)

// replicaSet is what the server knows of the set that it is a member of, nil where it is of none.
func (s *Server) replicaSet() *command.ReplicaSet {
	o := s.opts.ReplicaSet
	if o == nil {
		return nil
	}
	if s.opts.sharesKeyspace() {
		return &command.ReplicaSet{Name: o.Name, Host: o.Advertise, Term: new(atomic.Int64), Topology: replset.NewTopology(), OplogBytes: minOplogBytes}
	}
	set := &command.ReplicaSet{Name: o.Name, Host: o.Advertise, Term: new(atomic.Int64), Topology: replset.NewTopology(), OplogBytes: o.OplogBytes, OplogMinHours: o.OplogMinHours, IsSelf: s.isSelf}
	if set.Host == "" {
		set.Host = s.reachedAt()
	}
	if set.OplogBytes == 0 {
		set.OplogBytes = oplogFor(command.FreeDisk(s.DBPath()), minOplogBytes)
		if s.opts.Engine == InMemory {
			set.OplogBytes = oplogFor(host.Look().MemoryLimit, minMemoryOplogBytes)
		}
	}
	s.group = s.openGroup(set.Host)
	set.Group = s.group
	return set
}

// joinReplicaSet has the server be the member that it was, or begin the set where it is to. One that is of no set looks whether its data is.
func (d *database) joinReplicaSet(s *Server) error {
	o := s.opts.ReplicaSet
	if o == nil {
		return d.commands.StandAlone(context.Background())
	}
	if err := d.commands.JoinReplicaSet(context.Background(), d.role.Term); err != nil {
		return err
	}
	if d.role.Kind != member.Alone {
		return nil
	}
	if v := d.commands.Replica.View(); v.Config == nil && o.Initiate {
		return d.commands.InitiateReplicaSet(context.Background())
	} else if v.Config != nil && v.Self >= 0 && o.Advertise != "" && v.Host() != o.Advertise {
		s.log.Startup().Warn("The replica set's configuration has another address than --advertise says; clients are told that of the configuration, "+
			"which rs.reconfig() changes", "configured", v.Host(), "advertise", o.Advertise)
	}
	return nil
}

// oplogFor is how large the oplog may be where there is so much room; 0 is room that nobody knows of.
func oplogFor(room, least int64) int64 {
	return min(max(room/oplogShare, least), maxOplogBytes)
}

// reachedAt is where clients may find the server: the address that it listens on, or the machine's name where that is any.
func (s *Server) reachedAt() string {
	a, ok := s.network.Addr().(*net.TCPAddr)
	if !ok {
		return s.Addr()
	}
	name := a.IP.String()
	if a.IP.IsUnspecified() {
		var err error
		if name, err = os.Hostname(); err != nil {
			name = "localhost"
		}
	}
	return net.JoinHostPort(name, strconv.Itoa(a.Port))
}

// port is the one that the server listens on; 0 where it is in no TCP network.
func (s *Server) port() int {
	if a, ok := s.network.Addr().(*net.TCPAddr); ok {
		return a.Port
	}
	return 0
}

// isSelf says whether an address of a replica set's configuration is this server's: the port is its own, and the name one of this
// machine.
func (s *Server) isSelf(ctx context.Context, address string) bool {
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		name, port = address, strconv.Itoa(config.DefaultPort)
	}
	if own := s.port(); own == 0 || port != strconv.Itoa(own) {
		return false
	}
	lookup := net.DefaultResolver.LookupIPAddr
	if m := s.opts.Machine; m != nil && m.Lookup != nil {
		lookup = m.Lookup
	}
	addresses, err := lookup(ctx, name)
	if err != nil {
		return false
	}
	local, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range addresses {
		if a.IP.IsLoopback() {
			return true
		}
		for _, l := range local {
			if n, ok := l.(*net.IPNet); ok && n.IP.Equal(a.IP) {
				return true
			}
		}
	}
	return false
}
