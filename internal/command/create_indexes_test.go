package command

import (
	"fmt"
	"sync"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Cases C11 and C12 of the specification: who comes second finds the same index, or is refused for another TTL.
func TestRacingCreateIndexes(t *testing.T) {
	for round := range 50 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			h := newHarness(t)
			replies := make([]bson.Doc, 4)
			var all sync.WaitGroup
			for i := range replies {
				conn := h.conn(fmt.Sprint(i))
				all.Go(func() {
					seconds := 10 + i/2 // two of them agree, and two others
					replies[i] = h.sendOn(t.Context(), conn, "test", bson.MustDoc(fmt.Sprintf(
						"{createIndexes: 'c', indexes: [{key: {d: 1}, name: 'd', expireAfterSeconds: %d}]}", seconds))).Body
				})
			}
			all.Wait()
			good := 0
			for i, r := range replies {
				switch code := r.Lookup("code"); {
				case code.IsMissing():
					good++
				case code.Int32() != int32(mongoerr.IndexOptionsConflict):
					t.Errorf("reply %d: %s", i, r)
				}
			}
			if good != 2 {
				t.Errorf("%d of 4 were good, want the 2 that agree: %v", good, replies)
			}
		})
	}
}
