package pebblekv_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
)

// wide are the files and folders below dir, itself included, that others than their owner can get at.
func wide(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return gone(err)
		}
		info, err := e.Info()
		if err != nil {
			return gone(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			list = append(list, fmt.Sprintf("%s %v", path, info.Mode()))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// gone is err, unless that is of a file that an open store has removed meanwhile.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// fill makes files of every kind: of the log, tables, tables that were loaded.
func fill(t *testing.T, e *pebblekv.Engine) {
	t.Helper()
	txn, err := e.Begin()
	if err != nil {
		t.Fatal(err)
	}
	txn.Set([]byte("a"), []byte("1"))
	if err := txn.Commit(context.Background(), kv.Synced); err != nil {
		t.Fatal(err)
	}
	if err := e.Flush(); err != nil {
		t.Fatal(err)
	}
	keys := []string{"b", "c"}
	err = e.Load(context.Background(), func() (key, value []byte, ok bool, err error) {
		if len(keys) == 0 {
			return nil, nil, false, nil
		}
		key, keys = []byte(keys[0]), keys[1:]
		return key, key, true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Whatever the folder's mode, what the store makes in it is its owner's alone.
func TestFilesAreTheirOwnersAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	e := open(t, dir, pebblekv.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	fill(t, e)
	if list := wide(t, dir); len(list) > 0 {
		t.Errorf("others can get at %q", list)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if list := wide(t, dir); len(list) > 0 {
		t.Errorf("when it was closed others can get at %q", list)
	}
}

// What an earlier version or a copy left open to others is narrowed when the store is opened, which is said once.
func TestWideFilesAreNarrowed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	e := open(t, dir, pebblekv.Options{})
	fill(t, e)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	stranger := filepath.Join(t.TempDir(), "stranger")
	if err := os.WriteFile(stranger, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(stranger, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.Type()&fs.ModeSymlink != 0 {
			return err
		}
		return os.Chmod(path, 0o755)
	})
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	e = open(t, dir, pebblekv.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	defer e.Close()
	if err := os.Remove(filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if list := wide(t, dir); len(list) > 0 {
		t.Errorf("others can get at %q", list)
	}
	if n := strings.Count(log.String(), "now only their owner can"); n != 1 {
		t.Errorf("%d lines in\n%s", n, &log)
	}
	if info, err := os.Stat(stranger); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("a stranger's file behind a link: %v, %v", info, err)
	}
}
