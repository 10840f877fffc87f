package ebbtest_test

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/ebbdb/ebb/ebbtest"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/peer"
	"github.com/ebbdb/ebb/internal/wire"
)

// concernReply is what the reply of a write says.
type concernReply struct {
	OK                float64
	N                 int
	Code              int32
	Text              string
	WriteErrors       []struct{ Index, Code int32 }
	WriteConcernError struct {
		Code    int32
		ErrInfo struct{ WTimeout bool }
	}
}

// isEarly says whether the operation was over before it had written: the machine is slow.
func (r *concernReply) isEarly() bool {
	return r.Code == maxTimeMSExpired || r.Code == notWritablePrimary || r.Code == interrupted
}

// step is how far the clock is turned each few milliseconds while a write waits.
const step = 10 * time.Second

// write runs a write at a member while the clock is turned, and returns the reply as it comes.
func (s *set) write(member int, command bson.D) concernReply { return s.writeBy(step, member, command) }

func (s *set) writeBy(step time.Duration, member int, command bson.D) (r concernReply) {
	s.t.Helper()
	var over atomic.Bool
	turned := make(chan struct{})
	go func() {
		defer close(turned)
		for !over.Load() {
			s.Clock.Advance(step)
			_ = clock.Wait(s.t.Context(), clock.Wall(), 5*time.Millisecond)
		}
	}()
	if !slices.ContainsFunc(command, func(e bson.E) bool { return e.Key == "$db" }) {
		command = append(command, bson.E{Key: "$db", Value: "d"})
	}
	r = s.send(member, command)
	over.Store(true)
	<-turned
	return r
}

// send runs a command at a member, and returns the reply as it comes.
func (s *set) send(member int, command bson.D) (r concernReply) {
	s.t.Helper()
	body, err := bson.Marshal(command)
	if err != nil {
		s.t.Fatal(err)
	}
	codec, err := wire.NewCodec(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	uri, err := url.Parse(s.MemberURI(member))
	if err != nil {
		s.t.Fatal(err)
	}
	conn, err := peer.Dial(s.t.Context(), uri.Host, peer.Options{Codec: codec})
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	reply, err := conn.Call(s.t.Context(), body)
	if e, failed := errors.AsType[*mongoerr.Error](err); failed {
		return concernReply{Code: int32(e.Code), Text: e.Message}
	} else if err != nil {
		s.t.Fatal(err)
	}
	if err := bson.Unmarshal(reply, &r); err != nil {
		s.t.Fatal(err)
	}
	return r
}

const (
	cursorNotFound          = 43
	notPrimaryNoSecondaryOk = 13435
)

const (
	maxTimeMSExpired    = 50
	writeConcernTimeout = 64
	notWritablePrimary  = 10107
	interrupted         = 11602 // since the member is no primary any more
)

// TestSetWriteWithoutMajority: a write that no majority gets is answered when its time is over. It stands, and nobody sees it; when the others are there again it is
// there, once, however often it is sent. What would have to see it is not tried.
func TestSetWriteWithoutMajority(t *testing.T) {
	s := startSet(t)
	if err := s.client.Database("d").CreateCollection(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	insert := func(id string, more ...bson.E) bson.D {
		return append(bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.M{"_id": id}}}}, more...)
	}
	wtimeout := bson.E{Key: "writeConcern", Value: bson.M{"w": "majority", "wtimeout": 60_000}}
	session := bson.E{Key: "lsid", Value: bson.M{"id": bson.Binary{Subtype: bson.TypeBinaryUUID, Data: []byte("sixteen letters.")}}}
	var sent bson.D

	// A primary without a majority steps down after a second, and the machine may be slow.
	for try := 0; ; try++ {
		p := s.Primary()
		own := s.directs[p]
		sent = insert("retryable", session, bson.E{Key: "txnNumber", Value: int64(try + 1)}, wtimeout)
		if _, err := s.client.Database("d").Collection("c").DeleteMany(t.Context(), bson.M{}); err != nil { // so that the client knows the primary, too
			t.Fatal(err)
		}
		for _, i := range s.others(p) {
			s.Isolate(i)
		}
		first := s.write(p, insert("timed out", wtimeout))
		second := s.write(p, insert("over", bson.E{Key: "maxTimeMS", Value: 60_000}))
		third := s.write(p, sent)
		several := s.write(p, bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{
			bson.M{"q": bson.M{"_id": "upserted"}, "u": bson.M{"$inc": bson.M{"n": 1}}, "upsert": true},
			bson.M{"q": bson.M{"_id": "upserted"}, "u": bson.M{"$inc": bson.M{"n": 1}}, "upsert": true},
		}}, wtimeout})
		seen, err := own.Database("d").Collection("c").CountDocuments(t.Context(), bson.M{})
		s.Heal()
		if try < 5 && (first.isEarly() || second.isEarly() || third.isEarly() || several.isEarly()) {
			t.Log("nothing was written, or the primary has stepped down before it was told")
			s.Settle()
			continue
		}
		if first.OK != 1 || first.N != 1 || first.WriteConcernError.Code != writeConcernTimeout || !first.WriteConcernError.ErrInfo.WTimeout {
			t.Errorf("after wtimeout: %+v", first)
		}
		if second.OK != 1 || second.N != 1 || second.WriteConcernError.Code != maxTimeMSExpired {
			t.Errorf("after maxTimeMS: %+v", second)
		}
		if third.OK != 1 || third.N != 1 || third.WriteConcernError.Code != writeConcernTimeout {
			t.Errorf("a retryable write after wtimeout: %+v", third)
		}
		if several.OK != 1 || several.N != 1 || several.WriteConcernError.Code != writeConcernTimeout || len(several.WriteErrors) != 1 ||
			several.WriteErrors[0].Index != 1 || several.WriteErrors[0].Code != writeConcernTimeout {
			t.Errorf("two statements after wtimeout: %+v", several)
		}
		if err != nil || seen != 0 {
			t.Errorf("%d of them are seen, %v", seen, err)
		}
		break
	}
	s.Settle()
	if r := s.write(s.Primary(), sent); r.OK != 1 || r.N != 1 || r.WriteConcernError.Code != 0 || len(r.WriteErrors) > 0 {
		t.Errorf("sent again: %+v", r)
	}
	s.Settle()
	for i := range ebbtest.Members {
		c := s.directs[i].Database("d").Collection("c")
		if n, err := c.CountDocuments(t.Context(), bson.M{"_id": "retryable"}); err != nil || n != 1 {
			t.Errorf("member %d has %d of what was sent twice, %v", i, n, err)
		}
		var doc struct{ N int }
		if err := c.FindOne(t.Context(), bson.M{"_id": "upserted"}).Decode(&doc); !errors.Is(err, mongo.ErrNoDocuments) && (err != nil || doc.N != 1) {
			t.Errorf("member %d has the first of two statements, or none: %+v %v", i, doc, err)
		}
	}
}

// unheard runs a command at a primary whose others hear nothing of it, after prepare, and returns its reply; it tries again where the primary has stepped
// down before it was told, or had something of its own to write first. Then all is well again.
func (s *set) unheard(prepare func(primary, try int), command func(try int) bson.D) (r concernReply) {
	s.t.Helper()
	return s.unheardUntil(func(r concernReply) bool { return !r.isEarly() && r.Code != writeConcernTimeout }, prepare, command)
}

// unheardUntil is unheard that tries again until the reply is good.
func (s *set) unheardUntil(good func(concernReply) bool, prepare func(primary, try int), command func(try int) bson.D) (r concernReply) {
	s.t.Helper()
	for try := 0; ; try++ {
		p := s.Primary()
		prepare(p, try)
		for _, i := range s.others(p) {
			s.Isolate(i)
		}
		r = s.writeBy(time.Second, p, command(try))
		s.Heal()
		s.Settle()
		if try == 5 || good(r) {
			return r
		}
		s.t.Logf("once more after %+v", r)
	}
}

// TestSetCommitWithoutMajority: the commit of a transaction that no majority gets is answered as a write is. It stands, and who asks again learns what has
// become of it.
func TestSetCommitWithoutMajority(t *testing.T) {
	s := startSet(t)
	db := s.client.Database("d")
	if err := db.CreateCollection(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	for name, end := range map[string]struct {
		within bson.E
		code   int32
	}{
		"wtimeout":  {bson.E{Key: "writeConcern", Value: bson.M{"w": "majority", "wtimeout": 3_000}}, writeConcernTimeout},
		"maxTimeMS": {bson.E{Key: "maxTimeMS", Value: 3_000}, maxTimeMSExpired},
	} {
		t.Run(name, func(t *testing.T) {
			session := []byte("sixteen letters.")
			copy(session, name)
			of := func(try int, command ...bson.E) bson.D {
				return append(command, bson.E{Key: "lsid", Value: bson.M{"id": bson.Binary{Subtype: bson.TypeBinaryUUID, Data: session}}},
					bson.E{Key: "txnNumber", Value: int64(try + 1)}, bson.E{Key: "autocommit", Value: false})
			}
			commit := func(try int) bson.D {
				return of(try, bson.E{Key: "commitTransaction", Value: 1}, end.within, bson.E{Key: "$db", Value: "admin"})
			}
			last := 0
			r := s.unheard(func(p, try int) {
				last = try
				if _, err := db.Collection("c").DeleteMany(t.Context(), bson.M{}); err != nil {
					t.Fatal(err)
				}
				r := s.send(p, of(try, bson.E{Key: "insert", Value: "c"}, bson.E{Key: "documents", Value: bson.A{bson.M{"_id": name}}},
					bson.E{Key: "startTransaction", Value: true}, bson.E{Key: "$db", Value: "d"}))
				if r.OK != 1 || r.N != 1 {
					t.Fatalf("the statement: %+v", r)
				}
			}, commit)
			if r.OK != 1 || r.WriteConcernError.Code != end.code {
				t.Errorf("without a majority: %+v", r)
			}
			if r := s.send(s.Primary(), commit(last)); r.OK != 1 || r.WriteConcernError.Code != 0 {
				t.Errorf("asked again: %+v", r)
			}
			s.Settle()
			for i := range ebbtest.Members {
				s.has(i, "c", 1, 1)
			}
		})
	}
}

// TestSetChangeWithoutMajority: so it is with what makes, renames and drops collections. What would have to see such a change is not tried.
func TestSetChangeWithoutMajority(t *testing.T) {
	s := startSet(t)
	db := s.client.Database("d")
	if err := db.CreateCollection(t.Context(), "old"); err != nil {
		t.Fatal(err)
	}
	within := bson.E{Key: "writeConcern", Value: bson.M{"w": "majority", "wtimeout": 3_000}}
	names := func() string {
		found, err := db.ListCollectionNames(t.Context(), bson.M{})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(found)
		return strings.Join(found, " ")
	}
	for _, c := range []struct {
		name    string
		command bson.D
		after   string // the collections then
	}{
		{"create", bson.D{{Key: "create", Value: "new"}, within}, "new old"},
		{"rename", bson.D{{Key: "renameCollection", Value: "d.old"}, {Key: "to", Value: "d.other"}, within, {Key: "$db", Value: "admin"}}, "new other"},
		{"drop", bson.D{{Key: "drop", Value: "other"}, within}, "new"},
		{"insert into none", bson.D{{Key: "insert", Value: "implicit"}, {Key: "documents", Value: bson.A{bson.M{}}}, within}, "implicit new"},
		{"dropDatabase", bson.D{{Key: "dropDatabase", Value: 1}, within}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := s.unheard(func(int, int) {
				if names() == c.after {
					t.Skipf("%s was done by a try whose answer was lost", c.name)
				}
			}, func(int) bson.D { return slices.Clone(c.command) })
			if r.OK != 1 || r.WriteConcernError.Code != writeConcernTimeout {
				t.Errorf("%s, without a majority: %+v", c.name, r)
			} else if c.name == "insert into none" && (r.N != 0 || len(r.WriteErrors) != 1 || r.WriteErrors[0].Code != writeConcernTimeout) {
				t.Errorf("%s: its document cannot be there: %+v", c.name, r)
			}
			if now := names(); now != c.after {
				t.Errorf("after %s there are %q, not %q", c.name, now, c.after)
			}
		})
	}
	for i := range ebbtest.Members {
		if found, err := s.directs[i].Database("d").ListCollectionNames(t.Context(), bson.M{}); err != nil || len(found) > 0 {
			t.Errorf("member %d has %v, %v", i, found, err)
		}
	}
}

// TestSetIndexesWithoutMajority: so it is with what changes indexes and options.
func TestSetIndexesWithoutMajority(t *testing.T) {
	s := startSet(t)
	db := s.client.Database("d")
	if err := db.CreateCollection(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	index := func(key string) bson.D {
		return bson.D{{Key: "createIndexes", Value: "c"}, {Key: "indexes", Value: bson.A{bson.M{"key": bson.M{key: 1}, "name": key, "expireAfterSeconds": 100}}}}
	}
	wtimeout := bson.E{Key: "writeConcern", Value: bson.M{"w": "majority", "wtimeout": 3_000}}
	maxTime := bson.E{Key: "maxTimeMS", Value: 3_000}
	// indexes are those of the collection at a member, with their TTLs.
	indexes := func(db *mongo.Database) string {
		found, err := db.Collection("c").Indexes().ListSpecifications(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, d := range found {
			name := d.Name
			if d.ExpireAfterSeconds != nil {
				name += fmt.Sprint(*d.ExpireAfterSeconds)
			}
			out = append(out, name)
		}
		slices.Sort(out)
		return strings.Join(out, " ")
	}
	for _, c := range []struct {
		name    string
		command bson.D
		code    int32
		after   string // the indexes then
		told    bson.M // what the history of expiry has then
	}{
		{"createIndexes", append(index("a"), wtimeout), writeConcernTimeout, "_id_ a100", bson.M{"event": "created", "index": "a", "new": 100}},
		{"createIndexes in time", append(index("b"), maxTime), maxTimeMSExpired, "_id_ a100 b100", bson.M{"event": "created", "index": "b", "new": 100}},
		{"collMod", bson.D{{Key: "collMod", Value: "c"}, {Key: "index", Value: bson.M{"name": "a", "expireAfterSeconds": 50}}, wtimeout}, writeConcernTimeout, "_id_ a50 b100", bson.M{"event": "changed", "index": "a", "new": 50}},
		{"collMod in time", bson.D{{Key: "collMod", Value: "c"}, {Key: "index", Value: bson.M{"name": "a", "expireAfterSeconds": 60}}, maxTime}, maxTimeMSExpired, "_id_ a60 b100", bson.M{"event": "changed", "index": "a", "old": 50, "new": 60}},
		{"dropIndexes", bson.D{{Key: "dropIndexes", Value: "c"}, {Key: "index", Value: "a"}, wtimeout}, writeConcernTimeout, "_id_ b100", bson.M{"event": "dropped", "index": "a"}},
		{"dropIndexes in time", bson.D{{Key: "dropIndexes", Value: "c"}, {Key: "index", Value: "*"}, maxTime}, maxTimeMSExpired, "_id_", bson.M{"event": "dropped", "index": "b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := s.unheard(func(int, int) {
				if indexes(db) == c.after {
					t.Skipf("%s was done by a try whose answer was lost", c.name)
				}
			}, func(int) bson.D { return slices.Clone(c.command) })
			if r.OK != 1 || r.WriteConcernError.Code != c.code {
				t.Errorf("%s, without a majority: %+v", c.name, r)
			}
			s.Settle()
			for i := range ebbtest.Members {
				if now := indexes(s.directs[i].Database("d")); now != c.after {
					t.Errorf("member %d: after %s there are %q, not %q", i, c.name, now, c.after)
				}
			}
			told := int64(0)
			for try := 0; told == 0 && try < 1000; try++ { // it is written behind the change, whoever waits
				var err error
				if told, err = s.client.Database("local").Collection("ttl_history").CountDocuments(t.Context(), c.told); err != nil {
					t.Fatal(err)
				}
				_ = clock.Wait(t.Context(), clock.Wall(), 10*time.Millisecond)
			}
			if told != 1 {
				t.Errorf("the history tells %d times of %s", told, c.name)
			}
		})
	}
}

// TestSetWriteBeyondMajority: a write that waits for all members is answered when its time is over, by the clock of the set.
func TestSetWriteBeyondMajority(t *testing.T) {
	s := startSet(t)
	p := s.Primary()
	away := s.others(p)[0]
	s.Isolate(away)
	insert := func(concern bson.M, more ...bson.E) concernReply {
		return s.write(p, append(bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.M{}}}, {Key: "writeConcern", Value: concern}}, more...))
	}
	if r := insert(bson.M{"w": 3, "wtimeout": 600_000}); r.N != 1 || r.WriteConcernError.Code != writeConcernTimeout {
		t.Errorf("after wtimeout: %+v", r)
	}
	r := insert(bson.M{"w": 3}, bson.E{Key: "maxTimeMS", Value: 600_000})
	for try := 0; r.isEarly() && try < 5; try++ {
		r = insert(bson.M{"w": 3}, bson.E{Key: "maxTimeMS", Value: 600_000})
	}
	if r.N != 1 || r.WriteConcernError.Code != maxTimeMSExpired {
		t.Errorf("after maxTimeMS: %+v", r)
	}
	s.Heal()
	if r := insert(bson.M{"w": 3}); r.N != 1 || r.WriteConcernError.Code != 0 {
		t.Errorf("with all members: %+v", r)
	}
	s.Settle()
	s.has(away, "c", 3, 3)
}
