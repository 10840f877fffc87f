package ebbtest_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/ebbdb/ebb/internal/mongoerr"
)

// TestSetLocal: what is written to local at the primary is at all members, and a secondary says that it takes no write of its own (difference 77).
func TestSetLocal(t *testing.T) {
	s := startSet(t)
	primary := s.Primary()
	secondary := s.others(primary)[0]
	insert := bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.M{"_id": 1}}}}
	if err := s.directs[primary].Database("local").RunCommand(t.Context(), insert).Err(); err != nil {
		t.Fatal(err)
	}
	s.Settle()
	local := s.directs[secondary].Database("local")
	if n, err := local.Collection("c").CountDocuments(t.Context(), bson.M{}); err != nil || n != 1 {
		t.Errorf("a secondary has %d documents, %v", n, err)
	}
	for _, c := range []struct {
		db      string
		command bson.D
		code    mongoerr.Code
	}{
		{"local", insert, mongoerr.NotWritablePrimary},
		{"local", bson.D{{Key: "create", Value: "d"}}, mongoerr.NotWritablePrimary},
		{"admin", bson.D{{Key: "replSetResizeOplog", Value: 1}, {Key: "size", Value: 2000.0}}, mongoerr.NotWritablePrimary},
		{"admin", bson.D{{Key: "replSetResizeOplog", Value: 1}, {Key: "minRetentionHours", Value: 1.0}}, 0},
		{"d", bson.D{{Key: "profile", Value: 2}}, mongoerr.IllegalOperation},
		{"d", bson.D{{Key: "profile", Value: 0}, {Key: "slowms", Value: 50}}, 0},
	} {
		err := s.directs[secondary].Database(c.db).RunCommand(t.Context(), c.command).Err()
		if code := codeOf(err); code != c.code || code == 0 && err != nil {
			t.Errorf("%v: %v, want code %d", c.command, err, c.code)
		}
	}
}

func codeOf(err error) mongoerr.Code {
	if e, ok := err.(mongo.CommandError); ok {
		return mongoerr.Code(e.Code)
	}
	return 0
}
