package ebb

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestAddAway: a server that does not answer can be added to a set, as in MongoDB. It keeps nobody from leading or writing, and joins when it is there.
func TestAddAway(t *testing.T) {
	s := &three{t: t}
	s.open(0, Options{Port: AnyPort, Engine: InMemory, ReplicaSet: &ReplicaSet{Name: "rs", Initiate: true}})
	t.Cleanup(s.close)
	var hosts [3]*net.TCPAddr
	for i := 1; i < len(hosts); i++ {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		hosts[i] = l.Addr().(*net.TCPAddr)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	add := func(i int) {
		t.Helper()
		s.reconfig(func(m bson.A) bson.A { return append(m, bson.M{"_id": i, "host": hosts[i].String()}) })
		s.until("who is there goes on", func() error {
			_, err := s.direct(s.primary()).Database("d").Collection("c").InsertOne(t.Context(), bson.M{})
			return err
		})
	}
	type member struct{ StateStr string }
	counts := func(voters, majority int, states ...string) {
		t.Helper()
		s.until("the status", func() error {
			var r struct {
				VotingMembersCount, MajorityVoteCount int
				Members                               []member
			}
			err := s.direct(s.primary()).Database("admin").RunCommand(t.Context(), bson.M{"replSetGetStatus": 1}).Decode(&r)
			if err == nil && (r.VotingMembersCount != voters || r.MajorityVoteCount != majority || len(r.Members) != len(states)) {
				err = fmt.Errorf("%+v", r)
			}
			if err == nil {
				slices.SortFunc(r.Members, func(a, b member) int { return strings.Compare(a.StateStr, b.StateStr) })
				for i, want := range states { // whoever is the primary by now
					if r.Members[i].StateStr != want {
						err = fmt.Errorf("%+v", r)
					}
				}
			}
			return err
		})
	}
	const away = "(not reachable/healthy)"
	add(1)
	counts(1, 1, away, "PRIMARY")
	add(2) // one that is away already is no obstacle
	counts(1, 1, away, away, "PRIMARY")
	s.open(1, Options{Port: hosts[1].Port, Engine: InMemory, ReplicaSet: &ReplicaSet{Name: "rs"}})
	counts(2, 2, away, "PRIMARY", "SECONDARY")
	s.open(2, Options{Port: hosts[2].Port, Engine: InMemory, ReplicaSet: &ReplicaSet{Name: "rs"}})
	counts(3, 2, "PRIMARY", "SECONDARY", "SECONDARY")
	s.reconfig(func(m bson.A) bson.A { return m[:2] })
	s.until("a server that refuses is refused", func() error {
		s.closeOne(2)
		s.directs[2] = nil
		s.open(2, Options{Port: hosts[2].Port, Engine: InMemory, ReplicaSet: &ReplicaSet{Name: "another"}})
		var r struct{ Config bson.M }
		if err := s.direct(s.primary()).Database("admin").RunCommand(t.Context(), bson.M{"replSetGetConfig": 1}).Decode(&r); err != nil {
			return err
		}
		r.Config["version"] = r.Config["version"].(int32) + 1
		r.Config["members"] = append(r.Config["members"].(bson.A), bson.M{"_id": 2, "host": hosts[2].String()})
		if err := s.command(s.direct(s.primary()), bson.M{"replSetReconfig": r.Config}); code(err) != 74 {
			return fmt.Errorf("of another set: %w", err)
		}
		return nil
	})
}
