package crash

import (
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/ebbdb/ebb/e2e/binary"
)

// TestCrashOfInitiation kills the server while it begins a replica set at its first start: the next start has a primary of one set, with an
// oplog that tells of what is written.
func TestCrashOfInitiation(t *testing.T) {
	random := rand.New(rand.NewPCG(chosenSeed(t), 300))
	path := binary.Build(t)
	begun := 0
	for round := range *rounds {
		args := []string{"--dbpath", filepath.Join(t.TempDir(), "data"), "--replSet", "rs", "--replSetInitiate", "--oplogSize", "990"}
		first := exec.Command(path, append([]string{"serve", "--nounixsocket", "--port", "0"}, args...)...)
		if err := first.Start(); err != nil {
			t.Fatal(err)
		}
		alive := time.Duration(random.IntN(250)) * time.Millisecond
		time.Sleep(alive)
		_ = first.Process.Kill() // it may have ended by itself
		_ = first.Wait()

		server := binary.Start(t, path, args...)
		db := database(t, server)
		var status struct {
			MyState int
			Term    int64
		}
		if err := db.Client().Database("admin").RunCommand(t.Context(), bson.D{{Key: "replSetGetStatus", Value: 1}}).Decode(&status); err != nil {
			t.Fatal(err)
		}
		if status.MyState != 1 || status.Term < 1 || status.Term > 2 {
			t.Errorf("round %d: killed after %v: %+v", round+1, alive, status)
		}
		begun += int(status.Term) - 1
		if _, err := db.Collection(kept).InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}}); err != nil {
			t.Fatal(err)
		}
		for coll, filter := range map[string]bson.D{"system.replset": {}, "replset.election": {}, "oplog.rs": {{Key: "ns", Value: dbName + "." + kept}, {Key: "op", Value: "i"}}} {
			if n := len(all[bson.D](t, db.Client().Database("local").Collection(coll), filter)); n != 1 {
				t.Errorf("round %d: killed after %v: %d documents in local.%s", round+1, alive, n, coll)
			}
		}
	}
	t.Logf("%d of %d sets had begun when the server was killed", begun, *rounds)
}
