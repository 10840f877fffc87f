package ebb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/ebbdb/ebb/internal/standin"
)

// TestNamesAreGone: the members of a set that are known by names go on and change their roles where nobody serves names any more: they know from their
// log who they are. No client hears meanwhile that a member is of no set.
func TestNamesAreGone(t *testing.T) {
	var gone atomic.Bool
	var lookups atomic.Int64 // since then
	address := func(host string) string { return strings.Replace(host, "member.test", "127.0.0.1", 1) }
	machine := &standin.Machine{
		Dial: func(ctx context.Context, host string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", address(host))
		},
		Lookup: func(context.Context, string) ([]net.IPAddr, error) {
			if gone.Load() {
				lookups.Add(1)
				return nil, errors.New("nobody serves names")
			}
			return []net.IPAddr{{IP: net.IPv4(127, 0, 0, 1)}}, nil
		},
	}
	s := &three{t: t}
	hosts := bson.A{}
	for i := range s.servers {
		s.open(i, Options{Port: AnyPort, Engine: InMemory, ReplicaSet: &ReplicaSet{Name: "rs"}, Machine: machine})
		_, port, _ := net.SplitHostPort(s.servers[i].Addr())
		hosts = append(hosts, bson.M{"_id": i, "host": "member.test:" + port})
	}
	t.Cleanup(s.close)
	if err := s.command(s.direct(0), bson.M{"replSetInitiate": bson.M{"_id": "rs", "members": hosts}}); err != nil {
		t.Fatal(err)
	}
	hello := func(i int) (r struct {
		IsWritablePrimary, Secondary bool
		Me                           string
	}, err error) {
		err = s.direct(i).Database("admin").RunCommand(t.Context(), bson.M{"hello": 1}).Decode(&r)
		if err == nil && !r.IsWritablePrimary && !r.Secondary {
			err = fmt.Errorf("member %d is neither primary nor secondary", i)
		}
		return r, err
	}
	for i := range s.servers {
		s.until("every member takes part", func() error { _, err := hello(i); return err })
	}
	gone.Store(true)
	was := s.primary()
	if err := s.command(s.direct(was), bson.D{{Key: "replSetStepDown", Value: 20}}); err != nil {
		t.Log("the connection ended with the role:", err)
	}
	s.until("another primary", func() error {
		for i := range s.servers {
			r, err := hello(i)
			if code(err) != 0 { // its role changes just now
				continue
			}
			if want := hosts[i].(bson.M)["host"]; err != nil || r.Me != want {
				t.Fatalf("member %d, which is %s: %+v, %v", i, want, r, err)
			}
		}
		if s.primary() == was {
			return errors.New("it is the same")
		}
		return nil
	})
	s.reconfig(func(members bson.A) bson.A { return members })
	if n := lookups.Load(); n != 0 {
		t.Errorf("%d names were looked up", n)
	}
}
