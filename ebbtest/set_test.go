package ebbtest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/ebbtest"
	"github.com/ebbdb/ebb/internal/clock"
)

// set is a Set with clients.
type set struct {
	*ebbtest.Set
	t       *testing.T
	client  *mongo.Client
	directs [ebbtest.Members]*mongo.Client
}

func startSet(t *testing.T) *set {
	t.Helper()
	s := &set{Set: ebbtest.StartSet(t), t: t}
	connect := func(uri string) *mongo.Client {
		c, err := mongo.Connect(options.Client().ApplyURI(uri))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Disconnect(context.Background()) })
		return c
	}
	s.client = connect(s.URI())
	for i := range s.directs {
		s.directs[i] = connect(s.MemberURI(i))
	}
	return s
}

// expiring makes a collection whose documents expire an hour after the time in a field, with n documents that have just begun. By "_ts" they are
// hidden from then on; by another until they are deleted they are not.
func (s *set) expiring(name, field string, n int) *mongo.Collection {
	s.t.Helper()
	c := s.client.Database("d").Collection(name)
	if _, err := c.Indexes().CreateOne(s.t.Context(), mongo.IndexModel{Keys: bson.D{{Key: field, Value: 1}}, Options: options.Index().SetExpireAfterSeconds(3600)}); err != nil {
		s.t.Fatal(err)
	}
	var docs []any
	for i := range n {
		docs = append(docs, bson.M{"_id": i, "at": s.Clock.Now()})
	}
	if _, err := c.InsertMany(s.t.Context(), docs); err != nil {
		s.t.Fatal(err)
	}
	return c
}

// has fails unless a member sees so many documents, and its store has so many.
func (s *set) has(member int, coll string, seen, stored int64) {
	s.t.Helper()
	db := s.directs[member].Database("d")
	n, err := db.Collection(coll).CountDocuments(s.t.Context(), bson.M{})
	if err != nil || n != seen {
		s.t.Errorf("member %d shows %d documents of %s, want %d; %v", member, n, coll, seen, err)
	}
	var v struct{ NRecords int64 }
	if err := db.RunCommand(s.t.Context(), bson.D{{Key: "validate", Value: coll}}).Decode(&v); err != nil || v.NRecords != stored {
		s.t.Errorf("member %d has %d records of %s, want %d; %v", member, v.NRecords, coll, stored, err)
	}
}

// deleted is how many documents a member has deleted because they had expired.
func (s *set) deleted(member int) int64 {
	s.t.Helper()
	var r struct {
		Metrics struct {
			TTL struct{ DeletedDocuments int64 }
		}
	}
	if err := s.directs[member].Database("admin").RunCommand(s.t.Context(), bson.M{"serverStatus": 1}).Decode(&r); err != nil {
		s.t.Fatal(err)
	}
	return r.Metrics.TTL.DeletedDocuments
}

func (s *set) others(primary int) (members []int) {
	for i := range ebbtest.Members {
		if i != primary {
			members = append(members, i)
		}
	}
	return members
}

// admin runs a command on a member's database admin.
func (s *set) admin(member int, command any) error {
	return s.directs[member].Database("admin").RunCommand(s.t.Context(), command).Err()
}

func (s *set) setParameter(member int, name string, value any) {
	s.t.Helper()
	if err := s.admin(member, bson.D{{Key: "setParameter", Value: 1}, {Key: name, Value: value}}); err != nil {
		s.t.Fatal(err)
	}
}

// stepDown has another member be the primary, and returns which.
func (s *set) stepDown() int {
	s.t.Helper()
	was := s.Primary()
	_ = s.admin(was, bson.D{{Key: "replSetStepDown", Value: 60}}) // the connection may end with the role
	for range 1000 {
		if now := s.Primary(); now != was {
			return now
		}
		_ = clock.Wait(s.t.Context(), clock.Wall(), 10*time.Millisecond)
	}
	s.t.Fatal("the primary is the same")
	return -1
}

// TestSetSecondariesDeleteNothing (R13, R34): all members end with the one document that has not expired, and only the primary has deleted. One
// that does not hear of the primary deletes nothing, however late it is, and catches up.
func TestSetSecondariesDeleteNothing(t *testing.T) {
	s := startSet(t)
	c := s.expiring("c", "at", 2)
	if _, err := c.InsertOne(t.Context(), bson.M{"_id": "lasts", "at": s.Clock.Now().Add(30 * time.Hour)}); err != nil {
		t.Fatal(err)
	}
	s.Settle()
	p := s.Primary()
	away := s.others(p)[0]
	s.Isolate(away)
	s.Advance(2 * time.Hour)
	for i := range ebbtest.Members {
		switch i {
		case away:
			s.has(i, "c", 3, 3) // by the primary's time, as far as it has heard of that
		default:
			s.has(i, "c", 1, 1)
		}
	}
	s.Heal()
	s.Settle()
	for i := range ebbtest.Members {
		s.has(i, "c", 1, 1)
		want := int64(0)
		if i == p {
			want = 2
		}
		if n := s.deleted(i); n != want {
			t.Errorf("member %d has deleted %d documents, want %d", i, n, want)
		}
	}
}

// TestSetCursorsAnywhere: a secondary is asked for more of a cursor, without a read preference as drivers do, and says that it has none such.
func TestSetCursorsAnywhere(t *testing.T) {
	s := startSet(t)
	s.Settle() // or a secondary may not know yet that it is one
	for _, i := range s.others(s.Primary()) {
		if r := s.send(i, bson.D{{Key: "getMore", Value: int64(12345)}, {Key: "collection", Value: "c"}, {Key: "$db", Value: "d"}}); r.Code != cursorNotFound {
			t.Errorf("getMore: %+v", r)
		}
		if r := s.send(i, bson.D{{Key: "killCursors", Value: "c"}, {Key: "cursors", Value: bson.A{int64(12345)}}, {Key: "$db", Value: "d"}}); r.OK != 1 {
			t.Errorf("killCursors: %+v", r)
		}
		if r := s.send(i, bson.D{{Key: "find", Value: "c"}, {Key: "$db", Value: "d"}}); r.Code != notPrimaryNoSecondaryOk {
			t.Errorf("find: %+v", r)
		}
	}
}

// TestSetHidesEverywhere (Z31): what has expired and is not deleted yet is hidden on all members.
func TestSetHidesEverywhere(t *testing.T) {
	s := startSet(t)
	p := s.Primary()
	s.setParameter(p, "ttlMonitorEnabled", false)
	s.expiring("c", "_ts", 5)
	s.Advance(2 * time.Hour)
	for i := range ebbtest.Members {
		s.has(i, "c", 0, 5)
	}
	s.setParameter(p, "ttlMonitorEnabled", true)
	s.Advance(2 * time.Minute)
	for i := range ebbtest.Members {
		s.has(i, "c", 0, 0)
	}
}

// TestSetSeenExpiredStaysSo: a session that has seen that a document has expired does not see it again on a member that has not heard of the
// primary's time, although nothing there has changed for others.
func TestSetSeenExpiredStaysSo(t *testing.T) {
	s := startSet(t)
	s.setParameter(s.Primary(), "ttlMonitorEnabled", false)
	s.expiring("c", "_ts", 3)
	s.Settle()
	p := s.Primary()
	behind := s.others(p)[0]
	s.Isolate(behind)
	s.Clock.Advance(time.Hour + time.Second) // beyond what a told time may be ahead: it is the whole hour that it lacks
	s.Settle()
	count := func(member int, clusterTime bson.Raw, limit time.Duration) (int64, bson.Raw, error) {
		t.Helper()
		command := bson.D{{Key: "count", Value: "c"}, {Key: "query", Value: bson.M{}}}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		ctx = s.knowing(ctx, member, clusterTime)
		raw, err := s.directs[member].Database("d").RunCommand(ctx, command).Raw()
		if err != nil {
			return 0, nil, err
		}
		n, _ := raw.Lookup("n").AsInt64OK()
		return n, bson.Raw(raw.Lookup("$clusterTime").Document()), nil
	}
	n, seen, err := count(p, nil, time.Minute)
	if err != nil || n != 0 {
		t.Fatal("the primary shows", n, err)
	}
	if n, _, err := count(behind, nil, time.Minute); err != nil || n != 3 {
		t.Error("who has seen nothing sees", n, err)
	}
	if n, _, err := count(behind, seen, 300*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Error("a member that is an hour behind waits; it answered", n, err)
	}
	s.Heal()
	s.Settle()
	// Now a few seconds, which it need not wait for.
	if _, err := s.client.Database("d").Collection("c").InsertOne(t.Context(), bson.M{"_id": "late"}); err != nil {
		t.Fatal(err)
	}
	s.Advance(time.Hour - time.Second)
	s.Isolate(behind)
	s.Clock.Advance(2 * time.Second)
	s.Settle()
	if n, seen, err = count(p, nil, time.Minute); err != nil || n != 0 {
		t.Fatal("the primary shows", n, err)
	}
	if n, _, err := count(behind, nil, time.Minute); err != nil || n != 1 {
		t.Error("who has seen nothing sees", n, err)
	}
	n, told, err := count(behind, seen, time.Minute)
	if err != nil || n != 0 {
		t.Error("who has seen it expired sees it again:", n, err)
	}
	if n, _, err := count(behind, told, time.Minute); err != nil || n != 0 {
		t.Error("and with what that member has told:", n, err)
	}
	cursor, err := s.directs[behind].Database("d").RunCommandCursor(s.knowing(t.Context(), behind, seen), bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: 0}})
	if err != nil {
		t.Fatal(err)
	}
	if cursor.Next(t.Context()) {
		t.Error("a cursor has it:", cursor.Current)
	}
}

// TestSetClockOfOneCutOff: a primary that is cut off, and whose clock is set forward, hides nothing that the others do not know to have expired.
// What a majority has been told of the new time has expired on all.
func TestSetClockOfOneCutOff(t *testing.T) {
	s := startSet(t)
	was := s.Primary()
	s.setParameter(was, "ttlMonitorEnabled", false)
	s.expiring("c", "_ts", 3)
	s.Settle()
	s.Isolate(was)
	s.Clock.Step(2 * time.Hour)
	s.has(was, "c", 3, 3)
	now := s.Primary() // another one
	s.setParameter(now, "ttlMonitorEnabled", false)
	s.has(was, "c", 3, 3)
	s.Heal()
	s.Settle()
	for i := range ebbtest.Members {
		s.has(i, "c", 0, 3)
	}
	s.Clock.Step(2 * time.Hour) // nobody writes
	s.expiring("d", "_ts", 1)
	s.Clock.Step(2 * time.Hour)
	s.Settle()
	for i := range ebbtest.Members {
		s.has(i, "d", 0, 1)
	}
}

// TestSetLaterThanOneCutOff: a primary that is cut off does not say of a time that it has not come: another one may have told it.
func TestSetLaterThanOneCutOff(t *testing.T) {
	s := startSet(t)
	was := s.Primary()
	later := bson.Timestamp{T: uint32(s.Clock.Now().Add(time.Hour).Unix()), I: 1}
	find := bson.D{{Key: "find", Value: "c"}, {Key: "readConcern", Value: bson.M{"afterClusterTime": later}}}
	look := func() (refused bool, err error) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		err = s.directs[was].Database("d").RunCommand(ctx, find).Err()
		var e mongo.ServerError
		return errors.As(err, &e) && e.HasErrorCode(invalidOptions), err
	}
	if refused, err := look(); !refused {
		t.Error("a primary that has a majority says", err)
	}
	s.Isolate(was)
	if refused, err := look(); refused || err == nil { // as a secondary it waits
		t.Error("one that is cut off says", err)
	}
}

// knowing is a context with a session at a member that knows of a cluster time, unless that is nil.
func (s *set) knowing(ctx context.Context, member int, clusterTime bson.Raw) context.Context {
	s.t.Helper()
	if clusterTime == nil {
		return ctx
	}
	session, err := s.directs[member].StartSession()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { session.EndSession(context.Background()) })
	known, err := bson.Marshal(bson.D{{Key: "$clusterTime", Value: clusterTime}})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := session.AdvanceClusterTime(known); err != nil {
		s.t.Fatal(err)
	}
	return mongo.NewSessionContext(ctx, session)
}

// TestSetStepDownStopsSweeps: a primary that has stepped down deletes nothing any more, and the next one goes on.
func TestSetStepDownStopsSweeps(t *testing.T) {
	s := startSet(t)
	s.expiring("c", "at", 10)
	was := s.Primary()
	now := s.stepDown()
	s.Advance(2 * time.Hour)
	for i := range ebbtest.Members {
		s.has(i, "c", 0, 0)
	}
	if s.Primary() == now {
		if a, b := s.deleted(was), s.deleted(now); a != 0 || b != 10 {
			t.Errorf("the primary before has deleted %d, the one after it %d", a, b)
		}
	}
}

// TestSetSweepGoesOnElsewhere (R14): what one primary has begun to delete the next one ends, and the log tells of no deletion twice.
func TestSetSweepGoesOnElsewhere(t *testing.T) {
	s := startSet(t)
	const n = 3000
	s.expiring("c", "at", n)
	s.Settle()
	was := s.Primary()
	before, err := s.directs[was].Database("admin").RunCommand(t.Context(), bson.M{"ping": 1}).Raw()
	if err != nil {
		t.Fatal(err)
	}
	seconds, counter := before.Lookup("operationTime").Timestamp()
	s.Clock.Advance(2 * time.Hour) // the sweep is about to begin, or has
	s.Crash(was)
	now := s.Primary()
	s.Settle()
	s.Advance(2 * time.Minute)
	s.has(now, "c", 0, 0)
	s.Start(was)
	s.Settle()
	s.has(was, "c", 0, 0)
	if _, err := s.client.Database("d").Collection("c").InsertOne(t.Context(), bson.M{"_id": "last"}); err != nil {
		t.Fatal(err)
	}
	told, err := s.directs[now].Database("d").Collection("c").Watch(t.Context(), mongo.Pipeline{},
		options.ChangeStream().SetStartAtOperationTime(&bson.Timestamp{T: seconds, I: counter}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = told.Close(context.Background()) }()
	deleted := map[string]bool{}
	for told.Next(t.Context()) {
		key := told.Current.Lookup("documentKey", "_id").String()
		if key == `"last"` {
			break
		}
		if told.Current.Lookup("operationType").StringValue() != "delete" {
			continue // it begins with what was written before
		}
		if deleted[key] {
			t.Errorf("the log tells twice of the deletion of %s", key)
		}
		deleted[key] = true
	}
	if err := told.Err(); err != nil || len(deleted) != n {
		t.Errorf("the log tells of %d deletions, %v", len(deleted), err)
	}
}

// TestSetIsolatedPrimary: an old primary that nobody hears deletes nothing, and what it takes for expired is there for all others.
func TestSetIsolatedPrimary(t *testing.T) {
	s := startSet(t)
	s.expiring("c", "at", 5)
	s.Settle()
	old := s.Primary()
	s.Isolate(old)
	now := s.Primary()
	if now == old {
		t.Fatal("the isolated member is the primary of the others")
	}
	s.Clock.Advance(2 * time.Hour)
	s.Settle()
	s.has(now, "c", 0, 0)
	if n := s.deleted(old); n != 0 {
		t.Errorf("the old primary has deleted %d", n)
	}
	var v struct{ NRecords int64 }
	if err := s.directs[old].Database("d").RunCommand(t.Context(), bson.D{{Key: "validate", Value: "c"}}).Decode(&v); err != nil || v.NRecords != 5 {
		t.Errorf("the old primary has %d records, %v", v.NRecords, err)
	}
	s.Heal()
	s.Settle()
	s.has(old, "c", 0, 0)
}

// TestSetCollMod: another expireAfterSeconds is there on all members, and counts on all.
func TestSetCollMod(t *testing.T) {
	s := startSet(t)
	s.expiring("c", "at", 4)
	if err := s.client.Database("d").RunCommand(t.Context(), bson.D{{Key: "collMod", Value: "c"}, {Key: "index", Value: bson.D{
		{Key: "keyPattern", Value: bson.D{{Key: "at", Value: 1}}}, {Key: "expireAfterSeconds", Value: 36000}}}}).Err(); err != nil {
		t.Fatal(err)
	}
	s.Advance(2 * time.Hour)
	for i := range ebbtest.Members {
		s.has(i, "c", 4, 4)
		specs, err := s.directs[i].Database("d").Collection("c").Indexes().ListSpecifications(t.Context())
		if err != nil || len(specs) != 2 || specs[1].ExpireAfterSeconds == nil || *specs[1].ExpireAfterSeconds != 36000 {
			t.Errorf("member %d: %+v %v", i, specs, err)
		}
	}
	s.stepDown()
	s.Advance(9 * time.Hour)
	for i := range ebbtest.Members {
		s.has(i, "c", 0, 0)
	}
}

// ExampleStartSet has a session expire on all members of a replica set.
func ExampleStartSet() {
	// In a test t is the test's own.
	_ = func(t *testing.T) {
		set := ebbtest.StartSet(t)
		client, err := mongo.Connect(options.Client().ApplyURI(set.URI()))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = client.Disconnect(context.Background()) }()
		sessions := client.Database("app").Collection("sessions")
		if _, err := sessions.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "at", Value: 1}}, Options: options.Index().SetExpireAfterSeconds(3600)}); err != nil {
			t.Fatal(err)
		}
		if _, err := sessions.InsertOne(t.Context(), bson.M{"at": set.Clock.Now()}); err != nil {
			t.Fatal(err)
		}
		set.Advance(2 * time.Hour)
		set.Crash(set.Primary()) // whoever comes next has none either
		if n, err := sessions.CountDocuments(t.Context(), bson.M{}); err != nil || n != 0 {
			t.Fatal(n, err)
		}
	}
	fmt.Println("done")
	// Output: done
}
