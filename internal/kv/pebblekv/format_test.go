package pebblekv_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
)

func TestOpenRefuses(t *testing.T) {
	cases := []struct {
		name string
		make func(t *testing.T, disk vfs.FS)
		want string // in the error; "" opens
	}{
		{"an empty directory", func(*testing.T, vfs.FS) {}, ""},
		{"a fresh volume", func(t *testing.T, disk vfs.FS) { mkdir(t, disk, "db/lost+found") }, ""},
		{"a crash while the format was written", func(t *testing.T, disk vfs.FS) { writeFile(t, disk, "db/EBB-FORMAT", "") }, ""},
		{"somebody's files", func(t *testing.T, disk vfs.FS) { writeFile(t, disk, "db/holiday.jpg", "x") },
			`db is not an Ebb store and not empty: it holds "holiday.jpg"`},
		{"a foreign Pebble store", foreignPebble, "db is not an Ebb store and not empty"},
		{"a newer format", func(t *testing.T, disk vfs.FS) { writeFile(t, disk, "db/EBB-FORMAT", "ebb pebblekv 4\n") },
			"db has store format 4, this Ebb knows format 3: use the Ebb that wrote it"},
		{"another engine", func(t *testing.T, disk vfs.FS) { writeFile(t, disk, "db/EBB-FORMAT", "ebb other 1\n") },
			`db is not an Ebb store: its EBB-FORMAT says "ebb other 1\n"`},
		{"a newer Pebble", newerPebble, "unknown format major version 999999"},
		{"an open store", func(t *testing.T, disk vfs.FS) {
			e := open(t, "db", pebblekv.Options{FS: disk})
			t.Cleanup(func() { e.Close() })
		}, "db is in use by another Ebb"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			disk := vfs.NewMem()
			mkdir(t, disk, "db")
			c.make(t, disk)
			e, err := pebblekv.Open("db", pebblekv.Options{FS: disk})
			if err == nil {
				defer e.Close()
			}
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Fatalf("open: %v, want %q", err, c.want)
			}
		})
	}
}

func mkdir(t *testing.T, disk vfs.FS, path string) {
	t.Helper()
	if err := disk.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

func writeFile(t *testing.T, disk vfs.FS, path, text string) {
	t.Helper()
	file, err := disk.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(file, text); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

func foreignPebble(t *testing.T, disk vfs.FS) {
	db, err := pebble.Open("db", &pebble.Options{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// newerPebble makes one of our stores look as if a later Pebble had raised its format.
func newerPebble(t *testing.T, disk vfs.FS) {
	if err := open(t, "db", pebblekv.Options{FS: disk}).Close(); err != nil {
		t.Fatal(err)
	}
	names, err := disk.List("db")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, "marker.format-version.") {
			if err := disk.Rename("db/"+name, "db/marker.format-version.999999.999999"); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatal("no format marker found")
}

func TestTooLarge(t *testing.T) {
	e, err := pebblekv.OpenMemory(pebblekv.Options{MaxTxnBytes: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	txn, err := e.Begin()
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 { // the same key again and again stays one write
		txn.Set([]byte("key"), make([]byte, 100))
	}
	for i := range 40 {
		txn.Set(fmt.Append(nil, "key", i), make([]byte, 100))
	}
	if txn.Size() > 10_000 {
		t.Fatalf("size is %d", txn.Size())
	}
	if err := txn.Commit(context.Background(), kv.Synced); err != nil {
		t.Fatal(err)
	}
	txn, err = e.Begin()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		txn.Set(fmt.Append(nil, "other", i), make([]byte, 100))
	}
	if err := txn.Commit(context.Background(), kv.Synced); !errors.Is(err, kv.ErrTooLarge) {
		t.Fatalf("commit: %v, want %v", err, kv.ErrTooLarge)
	}
}

// TestSizesOfMembers: a member of a set takes smaller transactions than an engine alone, and says so.
func TestSizesOfMembers(t *testing.T) {
	e := open(t, "db", pebblekv.Options{FS: vfs.NewMem(), CommitKey: []byte("number")})
	e.Observe(still(1000))
	write := func() error {
		txn, err := e.Begin()
		if err != nil {
			t.Fatal(err)
		}
		for i := range pebblekv.MaxReplicatedBytes >> 20 {
			txn.Set(fmt.Append(nil, i), make([]byte, 1<<20))
		}
		return txn.Commit(t.Context(), kv.Synced)
	}
	if most := e.Capabilities().MaxTxnBytes; most <= 2*pebblekv.MaxReplicatedBytes {
		t.Errorf("alone it takes %d bytes", most)
	}
	if err := write(); err != nil {
		t.Errorf("alone: %v", err)
	}
	e.Lead(nowhere{})
	if most := e.Capabilities().MaxTxnBytes; most != pebblekv.MaxReplicatedBytes {
		t.Errorf("a member takes %d bytes", most)
	}
	if err := write(); !errors.Is(err, kv.ErrTooLarge) {
		t.Errorf("a member: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
