package ebb

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestQuorumCheck: a configuration whose voters are away for the most part is refused, since nobody could lead by it, nor change it.
func TestQuorumCheck(t *testing.T) {
	t.Parallel() // it mostly waits
	s := startThree(t, nil)
	p := s.primary()
	away, other := (p+1)%3, (p+2)%3
	var r struct{ Config bson.M }
	s.until("configuration", func() error {
		return s.direct(p).Database("admin").RunCommand(t.Context(), bson.M{"replSetGetConfig": 1}).Decode(&r)
	})
	members := r.Config["members"].(bson.A)
	s.closeOne(away)
	s.until("the member is known to be away", func() error {
		var r struct {
			Members []struct{ Health float64 }
		}
		if err := s.direct(p).Database("admin").RunCommand(t.Context(), bson.M{"replSetGetStatus": 1}).Decode(&r); err != nil {
			return err
		}
		if len(r.Members) != 3 || r.Members[away].Health != 0 {
			return fmt.Errorf("members: %v", r.Members)
		}
		return nil
	})
	r.Config["version"] = r.Config["version"].(int32) + 1
	r.Config["members"] = slices.Delete(slices.Clone(members), other, other+1)
	if err := s.command(s.direct(p), bson.M{"replSetReconfig": r.Config}); code(err) != 74 || !strings.Contains(err.Error(), "required 2 but only the following 1 voting nodes responded") {
		t.Error("without whoever is there:", err)
	}
	r.Config["members"] = slices.Delete(slices.Clone(members), away, away+1)
	if err := s.command(s.direct(p), bson.M{"replSetReconfig": r.Config}); err != nil {
		t.Error("without who is away:", err)
	}
}

// TestFrozenMember: nobody hands over to a member that is not to be elected for some time.
func TestFrozenMember(t *testing.T) {
	s := startThree(t, nil)
	p := s.primary()
	frozen := (p + 1) % 3
	if p != 0 {
		frozen = 0 // which comes first in the configuration
	}
	if err := s.command(s.direct(frozen), bson.D{{Key: "replSetFreeze", Value: 600}}); err != nil {
		t.Fatal(err)
	}
	s.until("another member leads", func() error { // which may fail as long as the primary has not heard of it
		_ = s.command(s.direct(p), bson.D{{Key: "replSetStepDown", Value: 600}, {Key: "secondaryCatchUpPeriodSecs", Value: 0}})
		if s.primary() == p {
			return errors.New("the same does")
		}
		return nil
	})
	if is := s.primary(); is == frozen {
		t.Errorf("member %d leads, which is frozen", is)
	}
}

// TestMemberElsewhere: a member gets another address by the configuration, whether its server is at that one now, as a member that runs under another
// name or was started elsewhere, or an empty server is to take its place.
func TestMemberElsewhere(t *testing.T) {
	s, all := startThreeStored(t)
	n := 0
	moveTo := func(i int, host string) {
		t.Helper()
		s.reconfig(func(members bson.A) bson.A {
			members[i].(bson.D)[1].Value = host
			return members
		})
		s.until("it takes part as "+host, func() error {
			var r struct {
				Members []struct{ Name, StateStr string }
			}
			if err := s.direct(s.primary()).Database("admin").RunCommand(t.Context(), bson.M{"replSetGetStatus": 1}).Decode(&r); err != nil {
				return err
			}
			if len(r.Members) != 3 || r.Members[i].Name != host || r.Members[i].StateStr != "SECONDARY" && r.Members[i].StateStr != "PRIMARY" {
				return fmt.Errorf("members: %v", r.Members)
			}
			return nil
		})
		n++
		insert := bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.M{"_id": n}}}, {Key: "writeConcern", Value: bson.M{"w": 3}}}
		if err := s.direct(s.primary()).Database("d").RunCommand(t.Context(), insert).Err(); err != nil {
			t.Fatal("not with all three:", err)
		}
		s.until("it has all", func() error {
			count, err := s.direct(i).Database("d").Collection("c").CountDocuments(t.Context(), bson.M{})
			if err == nil && count != int64(n) {
				err = fmt.Errorf("it has %d of %d", count, n)
			}
			return err
		})
	}
	i := (s.primary() + 1) % 3
	_, port, _ := net.SplitHostPort(s.servers[i].Addr())
	moveTo(i, net.JoinHostPort("localhost", port))
	_, port, _ = net.SplitHostPort(s.servers[s.primary()].Addr())
	moveTo(s.primary(), net.JoinHostPort("localhost", port))
	for _, path := range []string{all[i].DBPath, t.TempDir()} {
		s.closeOne(i)
		all[i].DBPath, s.directs[i] = path, nil
		s.open(i, all[i])
		moveTo(i, s.servers[i].Addr())
	}
}

// TestReplacedAtOnce: a member whose server has lost its directory, and that is let go and added again at once, gets a copy.
func TestReplacedAtOnce(t *testing.T) {
	s, all := startThreeStored(t)
	if _, err := s.client.Database("d").Collection("c").InsertOne(t.Context(), bson.M{"_id": 1}); err != nil {
		t.Fatal(err)
	}
	i := (s.primary() + 1) % 3
	all[i].Port = s.servers[i].network.Addr().(*net.TCPAddr).Port
	s.closeOne(i)
	all[i].DBPath, s.directs[i] = t.TempDir(), nil
	s.open(i, all[i])
	var own any
	s.reconfig(func(members bson.A) bson.A {
		own = members[i]
		return slices.Delete(members, i, i+1)
	})
	s.reconfig(func(members bson.A) bson.A { return append(members, own) })
	s.until("it has a copy", func() error {
		n, err := s.direct(i).Database("d").Collection("c").CountDocuments(t.Context(), bson.M{})
		if err == nil && n != 1 {
			err = fmt.Errorf("it has %d documents", n)
		}
		return err
	})
	s.voters(3)
}
