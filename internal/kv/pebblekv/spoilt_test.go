package pebblekv

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// That none are merged is not logged each time that Pebble tries, which it does at once again: the damage was.
func TestNoMergingIsToldOnce(t *testing.T) {
	var told strings.Builder
	log := slog.New(slog.NewTextHandler(&told, nil))
	events(log, &failure{log: log}, nil, nil).BackgroundError(fmt.Errorf("creating object 000008: %w", errMerging("000001.sst")))
	if told.Len() > 0 {
		t.Error(told.String())
	}
}

// From when a table is known to be damaged no compaction ends well, not even one that is under way; what is flushed does; and the
// damaged table stays.
func TestNoMergingOfDamage(t *testing.T) {
	fs := vfs.NewMem()
	f := &failure{log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	disk := spoiltDisk{fs, f}
	begun, err := disk.Create("000007.sst", "pebble-compaction")
	must(err)
	_, err = begun.Write([]byte("before"))
	must(err)
	f.damaged(pebble.DataCorruptionInfo{Path: "db/000001.sst", Details: errors.New("block 10/20: checksum mismatch")})
	_, err = begun.Write([]byte("after"))
	for _, err := range []error{err, begun.Sync(), begun.SyncData()} {
		if !errors.Is(err, pebble.ErrCorruption) {
			t.Errorf("a compaction goes on: %v", err)
		}
	}
	if _, err := disk.Create("000008.sst", "pebble-compaction"); !errors.Is(err, pebble.ErrCorruption) {
		t.Errorf("a compaction begins: %v", err)
	}
	flushed, err := disk.Create("000009.sst", "pebble-memtable-flush")
	must(err)
	must(flushed.Sync())
	kept := &keepDisk{FS: fs, isSpoilt: f.spoilt.HasFile}
	kept.letGo()
	for name, stays := range map[string]bool{"000001.sst": true, "000002.sst": false} {
		file, err := fs.Create(name, vfs.WriteCategoryUnspecified)
		must(err)
		must(errors.Join(file.Close(), kept.Remove(name)))
		if _, err := fs.Stat(name); (err == nil) != stays {
			t.Errorf("%s: %v", name, err)
		}
	}
}
