package tikvkv_test

import (
	"math"
	"testing"

	"github.com/ebbdb/ebb/internal/kv/tikvkv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv/tikvtest"
)

// TestScanBackToBeginOfRegion: a scan backward whose range begins where a region does ends there. client-go asks for what lies before its first key when it
// has come to that with a full batch, and it asks the region before, which holds nothing of the range.
func TestScanBackToBeginOfRegion(t *testing.T) {
	const space = "ebb\x00" + tikvkv.DefaultKeyspace + "\x00\x04" // which tikvtest has in front of where it splits
	c := tikvtest.New(t, "k")
	store := c.Store(t)
	defer func() { _ = store.Close() }()
	txn, err := store.Begin()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"a", "k", "l"} {
		if err := txn.Set([]byte(space+key), []byte("1")); err != nil {
			t.Fatal(err)
		}
	}
	if err := txn.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	snapshot := store.GetSnapshot(math.MaxUint64)
	snapshot.SetScanBatchSize(2)
	scan, err := snapshot.IterReverse([]byte(space+"z"), []byte(space+"k"))
	if err != nil {
		t.Fatal(err)
	}
	found := ""
	for ; scan.Valid(); err = scan.Next() {
		found += string(scan.Key()[len(space):])
	}
	if err != nil || found != "lk" {
		t.Errorf("found %q, %v", found, err)
	}
}
