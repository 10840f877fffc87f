package ebb

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/ebbdb/ebb/internal/serverlog"
	"github.com/ebbdb/ebb/internal/standin"
)

// cutting is a network on which the connection that carries a copy of a store is lost again and again.
type cutting struct {
	left atomic.Int64 // how often
}

// cutAfter is how many bytes go over it before that.
const cutAfter = 3 << 20

func (n *cutting) dial(ctx context.Context, host string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", host)
	return &cutConn{Conn: c, network: n}, err
}

type cutConn struct {
	net.Conn
	network *cutting
	sent    int
}

// Write implements net.Conn.
func (c *cutConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if c.sent += n; c.sent > cutAfter && c.network.left.Add(-1) >= 0 {
		_ = c.Close() // the other side has got it, and its answer does not come
	}
	return n, err
}

// TestCopyGoesOn: a copy of a store goes on where it was when the network was interrupted.
func TestCopyGoesOn(t *testing.T) {
	s := &three{t: t}
	var log bytes.Buffer
	network := &cutting{}
	const cuts, documents, size = 3, 40, 512 << 10
	network.left.Store(cuts)
	for i := range 2 {
		o := Options{Port: AnyPort, DBPath: t.TempDir(), ReplicaSet: &ReplicaSet{Name: "rs", Initiate: i == 0}, MinFreeBytes: -1, ReserveBytes: -1}
		if i == 0 {
			o.Log, o.Machine = serverlog.New(&log, 0).Logger(), &standin.Machine{Dial: network.dial}
		}
		s.open(i, o)
	}
	t.Cleanup(s.close)
	coll := s.direct(0).Database("d").Collection("c")
	random := rand.NewChaCha8([32]byte{})
	for i := range documents {
		data := make([]byte, size)
		_, _ = random.Read(data)
		if _, err := coll.InsertOne(t.Context(), bson.M{"_id": i, "data": data}); err != nil {
			t.Fatal(err)
		}
	}
	s.reconfig(func(m bson.A) bson.A { return append(m, bson.M{"_id": 1, "host": s.servers[1].Addr()}) })
	s.until("the new member has all", func() error {
		n, err := s.direct(1).Database("d").Collection("c").CountDocuments(t.Context(), bson.M{})
		if err == nil && n != documents {
			err = fmt.Errorf("it has %d", n)
		}
		return err
	})
	s.close()
	if left := network.left.Load(); left > 0 {
		t.Errorf("%d of %d cuts were not made", left, cuts)
	}
	if n := strings.Count(log.String(), "A snapshot is sent"); n != 1 {
		t.Errorf("%d copies were begun:\n%s", n, log.String())
	}
}
