package ebb

import (
	"errors"
	"os"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv/tikvkv"
)

// openTiKV connects to the cluster that has the data, and takes the keyspace there.
func (s *Server) openTiKV() (*tikvkv.Engine, error) {
	c := s.opts.Cluster
	if len(c.PD) == 0 {
		return nil, errors.New("the storage engine tikv needs the address of a placement driver (--tikvPD)")
	}
	o := tikvkv.Options{PD: c.PD, Keyspace: c.Keyspace, Name: s.network.Addr().String(), CAFile: c.CAFile, CertFile: c.CertificateFile, KeyFile: c.KeyFile,
		Logger: s.log.For("STORAGE"), Clock: clock.Wall(), OnFailure: s.fail} // leases are about real networks
	if name, err := os.Hostname(); err == nil {
		o.Name = name + " at " + o.Name
	}
	o.RowCacheBytes = s.opts.CacheBytes // there is no other cache
	return tikvkv.Open(o)
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
