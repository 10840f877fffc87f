package index

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// TestLargeWildcardProjection reads a projection of many paths, with memory that grows with their number and not with its
// square, and finds the one that is below another.
func TestLargeWildcardProjection(t *testing.T) {
	const paths = 5000
	spec := func(last string) bson.Doc {
		b := bson.Build().String("name", "w").Object("key").Int32("$**", 1).End().Object("wildcardProjection")
		for i := range paths {
			b.Int32(fmt.Sprintf("f%d.x", i), 1)
		}
		return b.Int32(last, 1).End().Doc()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := NewParser(match.NewParser()).Parse(spec("g"), nil)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if each := (after.TotalAlloc - before.TotalAlloc) / paths; each > 8000 {
		t.Errorf("%d bytes a path", each)
	}
	if _, err := NewParser(match.NewParser()).Parse(spec("f7.x.y"), nil); !mongoerr.Is(err, 31249) {
		t.Error(err)
	}
	if _, err := NewParser(match.NewParser()).Parse(spec("f7"), nil); !mongoerr.Is(err, 31250) {
		t.Error(err)
	}
}
