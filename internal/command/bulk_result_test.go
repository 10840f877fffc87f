package command

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/memory"
)

// TestLargeBulkResults: where the results are too large together, the first op that has no room for one is told as an error, and neither it nor
// those behind it run.
func TestLargeBulkResults(t *testing.T) {
	notOnTiKV(t, "TiKV takes no keys above 8 KiB")
	h := newHarness(t)
	var ops []string
	for i := range 25 {
		ops = append(ops, fmt.Sprintf(`{update: 0, filter: {_id: '%d%s'}, updateMods: {$set: {a: 1}}, upsert: true}`, i, strings.Repeat("x", 1<<20)))
	}
	reply := h.must("1", "admin", `{bulkWrite: 1, ordered: false, ops: [`+strings.Join(ops, ", ")+`], nsInfo: [{ns: 'test.c'}]}`)
	if upserted, failed := reply.Lookup("nUpserted").TruncInt64(), reply.Lookup("nErrors").TruncInt64(); upserted != 20 || failed != 1 {
		t.Errorf("%d upserted, %d errors", upserted, failed)
	}
	if n := h.must("1", "test", `{count: "c"}`).Lookup("n").TruncInt64(); n != 20 {
		t.Errorf("%d documents are there", n)
	}
}

// TestBulkResultsTakeMemory: results that wait for getMore take memory from the server's, until their cursor ends.

// TestBulkResultsTakeMemory: results that wait for getMore take memory from the server's, until their cursor ends.
func TestBulkResultsTakeMemory(t *testing.T) {
	g := memory.New(1<<30, clock.Wall(), nil)
	defer g.Close()
	s := newBulkResults(g)
	for i := range 1000 {
		s.add(bulkResult{index: i, n: 1})
	}
	if used := g.Stats().Used; used < int64(len(s.docs)) || used != s.Held() || len(s.docs) < 30_000 {
		t.Errorf("%d bytes of results, %d taken, %d held", len(s.docs), used, s.Held())
	}
	if err := s.Close(); err != nil || g.Stats().Used != 0 {
		t.Errorf("%d bytes are left: %v", g.Stats().Used, err)
	}
}
