package ebb

import (
	"errors"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// TestLargeCommitsOfThree: a commit that is too large for the log of a set is refused, nothing of it is there, and the set goes on.
func TestLargeCommitsOfThree(t *testing.T) {
	s := startThree(t, nil)
	c := s.client.Database("d").Collection("c")
	// Each of the words has an entry that holds the long text as well.
	var words bson.A
	long := strings.Repeat("y", 64<<10)
	for i := range 700 {
		words = append(words, int32(i))
	}
	for _, then := range []string{"a", "b"} {
		if _, err := c.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "long", Value: 1}, {Key: "words", Value: 1}, {Key: then, Value: 1}}}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := c.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}, {Key: "long", Value: long}, {Key: "words", Value: words}})
	var refused mongo.ServerError
	if !errors.As(err, &refused) || !refused.HasErrorCode(257) {
		t.Fatalf("%v", err)
	}
	if n, err := c.CountDocuments(t.Context(), bson.M{}); err != nil || n != 0 {
		t.Errorf("%d documents, %v", n, err)
	}
	if _, err := c.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}}); err != nil {
		t.Errorf("the set does not go on: %v", err)
	}
}
