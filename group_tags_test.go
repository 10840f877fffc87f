package ebb

import (
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// TestTagsMove: a write that waits for members by their tags waits for those who have the tags by the configuration of the moment, and no longer than somebody can have
// them.
func TestTagsMove(t *testing.T) {
	s := startThree(t, nil)
	primary := s.primary()
	away, other := (primary+1)%3, (primary+2)%3
	move := func(to int, modes bson.M) {
		t.Helper()
		s.until("tags move", func() error {
			var r struct {
				Config struct {
					ID       string `bson:"_id"`
					Version  int32
					Members  []bson.M
					Settings bson.M
				}
			}
			if err := s.direct(primary).Database("admin").RunCommand(t.Context(), bson.M{"replSetGetConfig": 1}).Decode(&r); err != nil {
				return err
			}
			r.Config.Version++
			for i, m := range r.Config.Members {
				m["tags"] = bson.M{}
				if i == to {
					m["tags"] = bson.M{"disk": "fast"}
				}
			}
			r.Config.Settings["getLastErrorModes"] = modes
			return s.command(s.direct(primary), bson.M{"replSetReconfig": r.Config})
		})
	}
	fast := bson.M{"fast": bson.M{"disk": 1}}
	move(away, fast)
	s.closeOne(away)
	// waiting is a write that waits for the member that is away, and returns the code of its writeConcernError.
	waiting := func(id int) chan int32 {
		done := make(chan int32, 1)
		go func() {
			var r struct {
				WriteConcernError struct{ Code int32 }
			}
			err := s.direct(primary).Database("d").RunCommand(t.Context(), bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.M{"_id": id}}},
				{Key: "writeConcern", Value: bson.M{"w": "fast", "wtimeout": 60_000}}}).Decode(&r)
			var e mongo.WriteException
			if errors.As(err, &e) && e.WriteConcernError != nil {
				r.WriteConcernError.Code = int32(e.WriteConcernError.Code)
			} else if err != nil {
				r.WriteConcernError.Code = -1
			}
			done <- r.WriteConcernError.Code
		}()
		s.until("the write is there", func() error {
			return s.direct(primary).Database("d").Collection("c").FindOne(t.Context(), bson.M{"_id": id}).Err()
		})
		return done
	}
	done := waiting(1)
	move(other, fast)
	if code := <-done; code != 0 {
		t.Errorf("the tag has moved to a member that has the write: %d", code)
	}
	move(away, fast)
	done = waiting(2)
	move(away, bson.M{})
	if code := <-done; code != 79 {
		t.Errorf("there is no such mode any more: %d", code)
	}
}
