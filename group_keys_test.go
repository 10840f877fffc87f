package ebb

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestRotateKeys: members change their key one by one, as MongoDB's manual has it: all know both first, then the new one alone. Whoever shows the old
// one to a member that does not know it any more shows the new one, too: each member gets every write.
func TestRotateKeys(t *testing.T) {
	t.Parallel() // it mostly waits
	dir := t.TempDir()
	file := func(text string) string {
		path := filepath.Join(dir, fmt.Sprintf("%x", text))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	s, all := startWithKey(t, file("oldkey"))
	for _, keys := range []string{"oldkey", "- oldkey\n- newkey\n", "newkey"} {
		for i := range all {
			all[i].KeyFile = file(keys)
			s.openAgain(i, all[i])
			s.allGet(fmt.Sprintf("a write when member %d has %q", i, keys))
		}
	}
}

// startWithKey starts a set on disk whose members know a key, and has their options, by which they are opened again at the same ports.
func startWithKey(t *testing.T, key string) (s *three, all [3]Options) {
	t.Helper()
	s = &three{t: t}
	t.Cleanup(s.close)
	hosts := bson.A{}
	for i := range all {
		all[i] = Options{Port: AnyPort, DBPath: t.TempDir(), MinFreeBytes: -1, ReserveBytes: -1, KeyFile: key, ReplicaSet: &ReplicaSet{Name: "rs"}}
		s.open(i, all[i])
		all[i].Port = s.servers[i].network.Addr().(*net.TCPAddr).Port
		hosts = append(hosts, bson.M{"_id": i, "host": s.servers[i].Addr()})
	}
	if err := s.command(s.direct(0), bson.M{"replSetInitiate": bson.M{"_id": "rs", "members": hosts}}); err != nil {
		t.Fatal(err)
	}
	return s, all
}

// openAgain closes a member and opens it with other options.
func (s *three) openAgain(i int, o Options) {
	s.t.Helper()
	s.closeOne(i)
	if s.directs[i] != nil {
		_ = s.directs[i].Disconnect(context.Background())
		s.directs[i] = nil
	}
	s.open(i, o)
}

// allGet waits until a write is at each member.
func (s *three) allGet(what string) {
	s.t.Helper()
	s.until("all get "+what, func() error {
		var r struct{ WriteConcernError bson.M }
		err := s.direct(s.primary()).Database("d").RunCommand(s.t.Context(), bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.M{"q": bson.M{"_id": what}, "u": bson.M{"$inc": bson.M{"n": 1}}, "upsert": true}}},
			{Key: "writeConcern", Value: bson.M{"w": 3, "wtimeout": 5000}}}).Decode(&r)
		if err == nil && r.WriteConcernError != nil {
			err = fmt.Errorf("%v", r.WriteConcernError)
		}
		return err
	})
}
