package ebbtest_test

import (
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/ebbdb/ebb/ebbtest"
)

// TestSetTemporary: a member that begins to lead drops temporary collections, on all. One that starts as a secondary does not.
func TestSetTemporary(t *testing.T) {
	s := startSet(t)
	names := func(i int) ([]string, error) {
		return s.directs[i].Database("d").ListCollectionNames(t.Context(), bson.D{})
	}
	has := func(i, want int) {
		t.Helper()
		s.until("it has what the set has", func() error {
			got, err := names(i)
			if err == nil && len(got) != want {
				err = fmt.Errorf("there are %v, want %d", got, want)
			}
			return err
		})
	}
	for _, name := range []string{"temporary", "lasting"} {
		if err := s.client.Database("d").RunCommand(t.Context(), bson.D{{Key: "create", Value: name}, {Key: "temp", Value: name == "temporary"}}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	s.Settle()
	was := s.Primary()
	other := s.others(was)[0]
	s.Stop(other)
	s.Start(other)
	s.Settle()
	if p := s.Primary(); p != was {
		t.Skip("another member has begun to lead")
	}
	for i := range ebbtest.Members {
		has(i, 2)
	}
	s.Isolate(was)
	has(s.Primary(), 1)
	s.Heal()
	s.Settle()
	for i := range ebbtest.Members {
		has(i, 1)
	}
}
