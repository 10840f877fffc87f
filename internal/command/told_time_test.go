package command

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
)

// ledGroup is the Group of a member that leads, or believes so; its database's clock is the set's.
type ledGroup struct {
	noGroup
	clock *clock.Fake
}

func (g ledGroup) Leader() (string, int64, bool) { return "localhost:27018", 1, true }

func (g ledGroup) HearTime(millis int64) {
	if ahead := time.UnixMilli(millis).Sub(g.clock.Now()); ahead > 0 {
		g.clock.Advance(ahead)
	}
}

// waitingGroup is a ledGroup whose reads wait, while time goes on.
type waitingGroup struct{ ledGroup }

func (g waitingGroup) AwaitRead(context.Context) error {
	g.clock.Advance(700 * time.Millisecond)
	return nil
}

// TestToldTimeOfWaitingRead: a reply tells no earlier time than when its operation has read, though that has begun long before: something may have
// expired and been deleted meanwhile.
func TestToldTimeOfWaitingRead(t *testing.T) {
	h := newMember(t)
	if body := h.send(t.Context(), "0", "admin", bson.MustDoc("{replSetInitiate: {}}")).Body; body.Lookup("ok").Double() != 1 {
		t.Fatal(body)
	}
	h.clock.Advance(2*time.Second + 100*time.Millisecond)
	h.server.ReplicaSet.Group = waitingGroup{ledGroup{clock: h.clock}}
	reply := h.send(t.Context(), "1", "d", bson.MustDoc("{find: 'c', readConcern: {level: 'linearizable'}}")).Body
	if told := toldTimes(reply.Lookup("$clusterTime").Doc()).told(); reply.Lookup("ok").Double() != 1 || told < clock.Millis(h.clock) {
		t.Fatalf("at %d %v", clock.Millis(h.clock), reply)
	}
}

// toldTimes are the times of a reply, as a client keeps them for all of its threads.
type toldTimes bson.Doc

func (t toldTimes) cluster() bson.Value { return bson.Doc(t).Lookup("clusterTime") }
func (t toldTimes) told() int64         { return bson.Doc(t).Lookup("signature").Doc().Lookup("keyId").Int64() }

// TestToldTimesDoNotGoBack: of all times that the threads of a client are told by members whose clocks differ, the client keeps the latest, though
// it goes by the cluster time that they come with.
func TestToldTimesDoNotGoBack(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 0))
		var members []*harness
		for place := range 3 {
			h := newMember(t)
			if body := h.send(t.Context(), "0", "admin", bson.MustDoc("{replSetInitiate: {}}")).Body; body.Lookup("ok").Double() != 1 {
				t.Fatal(body)
			}
			h.clock.Advance(2*time.Second + time.Duration(place*random.IntN(1500))*time.Millisecond)
			h.server.ReplicaSet.Group = ledGroup{clock: h.clock}
			members = append(members, h)
		}
		clients := make([]struct {
			kept    toldTimes
			latest  int64
			answers []toldTimes // of threads that have not looked at them
		}, 2)
		for n := range 300 {
			c, place := &clients[random.IntN(len(clients))], random.IntN(len(members))
			h := members[place]
			const nobodys = "{nobodys: 1}" // of which no more is read
			command := []string{"{ping: 1}", "{insert: 'c', documents: [{}]}", "{find: 'c'}", "{find: 1}", nobodys}[random.IntN(5)]
			b := bson.Build().Fields(bson.MustDoc(command))
			knows := int64(0)
			if c.kept != nil {
				b.Document("$clusterTime", bson.Doc(c.kept))
				knows = c.kept.told()
			}
			reply := h.send(t.Context(), "1", "d", b.Doc()).Body
			answer := toldTimes(reply.Lookup("$clusterTime").Doc())
			if answer.told() < knows && command != nobodys {
				t.Fatalf("seed %d, step %d: member %d tells %d, and was told %d", seed, n, place, answer.told(), knows)
			}
			c.answers = append(c.answers, answer)
			for len(c.answers) > random.IntN(4) {
				i := random.IntN(len(c.answers))
				answer := c.answers[i]
				c.answers = append(c.answers[:i], c.answers[i+1:]...)
				c.latest = max(c.latest, answer.told())
				if c.kept == nil || bson.Compare(answer.cluster(), c.kept.cluster()) > 0 {
					c.kept = answer
				}
				if c.kept.told() < c.latest {
					t.Fatalf("seed %d, step %d: the client keeps %v with the time %d, and was told %d", seed, n, c.kept.cluster(), c.kept.told(), c.latest)
				}
			}
			members[random.IntN(len(members))].clock.Advance(time.Duration(random.IntN(40)) * time.Millisecond)
		}
	}
}
