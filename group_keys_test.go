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
	dir := t.TempDir()
	file := func(text string) string {
		path := filepath.Join(dir, fmt.Sprintf("%x", text))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	s := &three{t: t}
	t.Cleanup(s.close)
	var all [3]Options
	hosts := bson.A{}
	for i := range all {
		all[i] = Options{Port: AnyPort, DBPath: t.TempDir(), MinFreeBytes: -1, ReserveBytes: -1, KeyFile: file("oldkey"), ReplicaSet: &ReplicaSet{Name: "rs"}}
		s.open(i, all[i])
		all[i].Port = s.servers[i].network.Addr().(*net.TCPAddr).Port
		hosts = append(hosts, bson.M{"_id": i, "host": s.servers[i].Addr()})
	}
	if err := s.command(s.direct(0), bson.M{"replSetInitiate": bson.M{"_id": "rs", "members": hosts}}); err != nil {
		t.Fatal(err)
	}
	written := 0
	for _, keys := range []string{"oldkey", "- oldkey\n- newkey\n", "newkey"} {
		for i := range all {
			s.closeOne(i)
			if s.directs[i] != nil {
				_ = s.directs[i].Disconnect(context.Background())
				s.directs[i] = nil
			}
			all[i].KeyFile = file(keys)
			s.open(i, all[i])
			written++
			s.until(fmt.Sprintf("all get a write when member %d has %q", i, keys), func() error {
				var r struct{ WriteConcernError bson.M }
				err := s.direct(s.primary()).Database("d").RunCommand(t.Context(), bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.M{"q": bson.M{"_id": written}, "u": bson.M{"$inc": bson.M{"n": 1}}, "upsert": true}}},
					{Key: "writeConcern", Value: bson.M{"w": 3, "wtimeout": 1000}}}).Decode(&r)
				if err == nil && r.WriteConcernError != nil {
					err = fmt.Errorf("%v", r.WriteConcernError)
				}
				return err
			})
		}
	}
}
