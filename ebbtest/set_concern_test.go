package ebbtest_test

import (
	"errors"
	"net/url"
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
func (s *set) write(member int, command bson.D) (r concernReply) {
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
	body, err := bson.Marshal(append(command, bson.E{Key: "$db", Value: "d"}))
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
	over.Store(true)
	<-turned
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
