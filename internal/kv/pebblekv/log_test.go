package pebblekv_test

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
)

// The beginning of the store's own work is told, and its end, in turn.
func TestOnWork(t *testing.T) {
	told := make(chan bool, 1<<10)
	e := open(t, "db", pebblekv.Options{FS: vfs.NewMem(), MemTableBytes: 64 << 10, OnWork: func(goesOn bool) { told <- goesOn }})
	for n := range 1000 {
		write(t, e, func(txn kv.Txn) { txn.Set(recordKey('r', 0, n), make([]byte, 1<<10)) })
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	close(told)
	if len(told) == 0 {
		t.Fatal("nothing was told")
	}
	want := true
	for goesOn := range told {
		if goesOn != want {
			t.Fatalf("told %v, want %v", goesOn, want)
		}
		want = !want
	}
	if !want {
		t.Error("the end was not told")
	}
}
