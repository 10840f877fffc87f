package ebb

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv/tikvkv"
)

// openTiKV connects to the cluster that has the data, and takes the keyspace there. failed is told when it is lost. With waiting it waits for the
// keyspace for as long as another server has it, and tells which one that is.
func (s *Server) openTiKV(ctx context.Context, failed func(error), waiting func(tikvkv.Holder)) (*tikvkv.Engine, error) {
	o := s.tikvOptions()
	o.OnFailure, o.Waiting = failed, waiting
	if s.opts.seams != nil && s.opts.seams.cluster != nil {
		return tikvkv.OpenStore(ctx, s.opts.seams.cluster(), o)
	}
	if len(s.opts.Cluster.PD) == 0 {
		return nil, errors.New("the storage engine tikv needs the address of a placement driver (--tikvPD)")
	}
	return tikvkv.Open(ctx, o)
}

// followTiKV connects to the cluster to read what another server works on there, from where that says that it is.
func (s *Server) followTiKV(ctx context.Context, at tikvkv.Told) (*tikvkv.Follower, error) {
	o, id := s.tikvOptions(), rand.Text()
	if s.opts.seams != nil && s.opts.seams.cluster != nil {
		return tikvkv.FollowStore(ctx, s.opts.seams.cluster(), o, id, at)
	}
	return tikvkv.OpenFollower(ctx, o, id, at)
}

// tikvOptions say where the cluster is, and what the server is to others there.
func (s *Server) tikvOptions() tikvkv.Options {
	c := s.opts.Cluster
	o := tikvkv.Options{PD: c.PD, Keyspace: c.Keyspace, Name: s.network.Addr().String(), Address: c.Advertise, CAFile: c.CAFile, CertFile: c.CertificateFile, KeyFile: c.KeyFile,
		Logger: s.log.For("STORAGE"), Clock: clock.Wall()} // leases are about real networks
	if name, err := os.Hostname(); err == nil {
		o.Name = name + " at " + o.Name
	}
	if o.Address == "" {
		o.Address = s.reachedAt()
	}
	o.RowCacheBytes = s.opts.CacheBytes // there is no other cache
	return o
}

// clusterTime is the clock of a database in a TiKV cluster: the cluster's, unless another one was given.
func (s *Server) clusterTime(e *tikvkv.Engine) clock.Clock {
	if s.opts.Clock != nil {
		return s.clock
	}
	return clusterClock{s.clock, e}
}

// clusterClock is the clock of a database in a TiKV cluster: its wall time is that of the cluster's timestamps, so that all servers there find the same
// documents expired. What passes between two looks at those passes here.
type clusterClock struct {
	clock.Clock
	engine *tikvkv.Engine
}

func (c clusterClock) Now() time.Time {
	wall, _ := c.Read()
	return wall
}

func (c clusterClock) Read() (wall time.Time, monotonic time.Duration) {
	_, monotonic = c.Clock.Read()
	return c.engine.Now(), monotonic
}
