package chaos

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/ebbdb/ebb/e2e/binary"
)

var failovers = flag.Int("failovers", 3, "how often TestFailover kills the primary")

// TestFailover kills the primary again and again: the write that comes then is acknowledged by another one, and is there. How long each took is in
// the log of the test.
func TestFailover(t *testing.T) {
	m := build(t, binary.Build(t))
	client := m.initiate()
	coll := client.Database("d").Collection("c")
	var times []time.Duration
	told := 0
	for n := range *failovers {
		if _, err := coll.InsertOne(t.Context(), bson.M{"_id": fmt.Sprint("before ", n)}); err != nil {
			t.Fatal(err)
		}
		var p *machine
		until(t, 30*time.Second, "all are there", func() error {
			secondaries := 0
			for _, v := range m.all {
				var r struct{ IsWritablePrimary, Secondary bool }
				own := connect(t, direct(v))
				if err := own.Database("admin").RunCommand(t.Context(), bson.M{"hello": 1}).Decode(&r); err != nil {
					return err
				}
				if r.IsWritablePrimary {
					p = v
				}
				if r.Secondary {
					secondaries++
				}
				if found, err := own.Database("d").Collection("c").CountDocuments(t.Context(), bson.M{}); err != nil || found != int64(2*n+1) {
					return fmt.Errorf("member %d has %d documents of %d: %w", v.index, found, 2*n+1, err)
				}
			}
			if p == nil || secondaries != 2 {
				return fmt.Errorf("%d secondaries", secondaries)
			}
			return nil
		})
		p.kill()
		began := time.Now()
		_, err := coll.InsertOne(t.Context(), bson.M{"_id": fmt.Sprint("after ", n)})
		if err != nil && strings.Contains(err.Error(), "was cleared because another operation failed") {
			told++ // the driver's monitor saw the end of the primary before the write went out, and the driver tries such a write but once more
			_, err = coll.InsertOne(t.Context(), bson.M{"_id": fmt.Sprint("after ", n)})
		}
		if err != nil {
			t.Fatalf("failover %d: %v", n, err)
		}
		times = append(times, time.Since(began))
		if err := p.start(); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(times)
	t.Logf("%d failovers: first write acknowledged after %v, median, %v at worst; %d times the driver had no connection and said so", len(times), times[len(times)/2], times[len(times)-1], told)
}
