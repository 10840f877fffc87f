package command

import (
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/operation"
)

// TestUnderway: the oldest operations are told of, and how many more there are.
func TestUnderway(t *testing.T) {
	k := clock.NewFake(time.Unix(1000, 0))
	s := &Server{Ops: operation.NewRegistry(k)}
	if told := s.Underway(); len(told) != 0 {
		t.Error(told)
	}
	for range maxTold + 2 {
		s.Ops.Start(t.Context(), &operation.Operation{NS: "d.c", Command: bson.MustDoc(`{aggregate: "c"}`)})
	}
	s.Ops.Start(t.Context(), &operation.Operation{})
	k.Advance(3 * time.Second)
	told := s.Underway()
	if len(told) != maxTold+1 || told[0] != "aggregate of d.c (opid 1, 3 s)" || !strings.HasPrefix(told[maxTold], "3 more") {
		t.Errorf("%q", told)
	}
}
