package pebblekv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// tablesOf are the tables that lie in the store's directory.
func tablesOf(t *testing.T, e *Engine) (names []string) {
	t.Helper()
	all, err := e.options.FS.List(e.held.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		if strings.HasSuffix(name, ".sst") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// TestHoldFiles: while the files are held no table is made and none removed, whoever would, and afterwards all of it is done.
func TestHoldFiles(t *testing.T) {
	e, err := Open("store", Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	write := func(round int) {
		for i := range 100 {
			if err := e.db.Set(fmt.Appendf(nil, "key%03d", i), bytes.Repeat([]byte{byte(round)}, 100), pebble.NoSync); err != nil {
				t.Fatal(err)
			}
		}
	}
	for round := range 3 {
		write(round)
		if err := e.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := e.HoldFiles(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	before := tablesOf(t, e)
	if len(before) == 0 {
		t.Fatal("there are no tables")
	}
	write(9)
	flushed, err := e.db.AsyncFlush()
	if err != nil {
		t.Fatal(err)
	}
	compacted := make(chan error, 1)
	go func() { compacted <- e.db.Compact(context.Background(), []byte("a"), []byte("z"), false) }()
	for e.held.waiting() == 0 {
		select {
		case <-flushed:
			t.Fatal("a table was made")
		default:
		}
	}
	if err := e.HoldFiles(t.Context()); err != nil { // whoever waits to make a table is no hindrance
		t.Fatal(err)
	}
	e.ReleaseFiles()
	e.ReleaseFiles()
	if now := tablesOf(t, e); !slices.Equal(now, before) {
		t.Errorf("%d tables, and there were %d: %v, %v", len(now), len(before), now, before)
	}
	e.ReleaseFiles()
	<-flushed
	if err := <-compacted; err != nil {
		t.Error(err)
	}
	e.db.TestOnlyWaitForCleaning()
	e.held.wait()
	if now := tablesOf(t, e); slices.Contains(now, before[0]) {
		t.Errorf("what was merged is not removed: %v of %v", now, before)
	}
}

// TestHoldFilesGivesUp: who cannot wait leaves the store as it was.
func TestHoldFilesGivesUp(t *testing.T) {
	e, err := Open("store", Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e.held.mu.waiting-- // as if a table were under way
	if err := e.HoldFiles(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	e.held.mu.waiting++
	if e.held.keeps() {
		t.Error("files are held")
	}
	if err := e.HoldFiles(t.Context()); err != nil { // and a store whose files are held can be closed
		t.Fatal(err)
	}
	if err := e.db.Set([]byte("k"), []byte("v"), pebble.NoSync); err != nil {
		t.Fatal(err)
	}
	if _, err := e.db.AsyncFlush(); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
