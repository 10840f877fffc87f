package backup_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/backup"
	"github.com/ebbdb/ebb/internal/backup/place"
	"github.com/ebbdb/ebb/internal/backup/repository"
	"github.com/ebbdb/ebb/internal/checkpoint"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
)

// source is an engine as a server that is backed up.
type source struct {
	t        *testing.T
	engine   *pebblekv.Engine
	clock    *clock.Fake
	registry *checkpoint.Registry
	// before is asked before each step; or nil.
	before func(step string) error
	name   string
}

func newSource(t *testing.T) *source {
	fake := clock.NewFake(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	engine, err := pebblekv.OpenMemory(pebblekv.Options{Clock: fake, CommitKey: []byte("zz")})
	if err != nil {
		t.Fatal(err)
	}
	s := &source{t: t, name: "test", engine: engine, clock: fake, registry: checkpoint.NewRegistry(fake, engine, slog.New(slog.DiscardHandler))}
	t.Cleanup(func() {
		s.registry.Close()
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *source) write(from, to int) {
	s.t.Helper()
	txn, err := s.engine.Begin()
	if err != nil {
		s.t.Fatal(err)
	}
	for i := from; i < to; i++ {
		sum := sha256.Sum256([]byte{byte(i), byte(i >> 8)})
		txn.Set(fmt.Appendf(nil, "k%06d", i), bytes.Repeat(sum[:], 30))
	}
	if err := txn.Commit(s.t.Context(), kv.Synced); err != nil {
		s.t.Fatal(err)
	}
}

func (s *source) step(name string) error {
	if s.before == nil {
		return nil
	}
	return s.before(name)
}

func (s *source) Begin(ctx context.Context) (*backup.Checkpoint, error) {
	if err := s.step("begin"); err != nil {
		return nil, err
	}
	o, err := s.registry.Begin(ctx, "test")
	if err != nil {
		return nil, err
	}
	number, _ := o.Last()
	c := &backup.Checkpoint{ID: o.ID, At: s.clock.Now(), Commit: int64(number), Ebb: "0.1.0", Lease: checkpoint.Lease}
	for _, f := range o.Files() {
		c.Files = append(c.Files, backup.CheckpointFile{Name: f.Name, Bytes: f.Bytes})
	}
	s.clock.Advance(time.Millisecond)
	return c, nil
}

func (s *source) file(id, name string) (o *checkpoint.Open, f kv.CheckpointFile, done func(), err error) {
	o, done, err = s.registry.Use(id)
	if err != nil {
		return nil, f, nil, err
	}
	for _, f := range o.Files() {
		if f.Name == name {
			return o, f, done, nil
		}
	}
	done()
	return nil, f, nil, fs.ErrNotExist
}

func (s *source) Digest(ctx context.Context, id, name string) (string, error) {
	if err := s.step("digest " + name); err != nil {
		return "", err
	}
	o, f, done, err := s.file(id, name)
	if err != nil {
		return "", err
	}
	defer done()
	sum, err := s.registry.Digest(ctx, o, f)
	return hex.EncodeToString(sum[:]), err
}

func (s *source) Read(_ context.Context, id, name string, offset, bytes int64) ([]byte, error) {
	if err := s.step("read " + name); err != nil {
		return nil, err
	}
	o, _, done, err := s.file(id, name)
	if err != nil {
		return nil, err
	}
	defer done()
	b := make([]byte, bytes)
	n, err := o.ReadAt(name, b, offset)
	return b[:n], err
}

func (s *source) Renew(_ context.Context, id string) error {
	_, done, err := s.registry.Use(id)
	if err == nil {
		done()
	}
	return err
}

func (s *source) End(_ context.Context, id string) error { return s.registry.End(id) }

func (s *source) Name() string { return s.name }

func newRepository(t *testing.T, c clock.Clock) (r *repository.Repository, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "repository")
	p, err := place.OpenFolder(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	if r, err = repository.Create(t.Context(), p, c); err != nil {
		t.Fatal(err)
	}
	return r, dir
}

func (s *source) take(r *repository.Repository) *backup.Taken {
	s.t.Helper()
	taken, err := backup.Take(s.t.Context(), s, r, clock.Wall(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return taken
}

// keys is what a data directory's store holds.
func keys(t *testing.T, path string) map[string]string {
	t.Helper()
	e, err := pebblekv.Open(filepath.Join(path, "store"), pebblekv.Options{CommitKey: []byte("zz")})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	return content(t, e)
}

func content(t *testing.T, e kv.Engine) map[string]string {
	t.Helper()
	view, err := e.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	it, err := view.NewIter(kv.IterOptions{Lower: []byte("k"), Upper: []byte("l")})
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	all := map[string]string{}
	for it.Next() {
		v, err := it.Value()
		if err != nil {
			t.Fatal(err)
		}
		all[string(it.Key())] = string(v)
	}
	if it.Err() != nil {
		t.Fatal(it.Err())
	}
	return all
}

func restore(t *testing.T, r *repository.Repository, id, path string) error {
	t.Helper()
	m, err := r.Manifest(t.Context(), id)
	if err != nil {
		return err
	}
	return backup.Restore(t.Context(), r, backup.Restoring{Manifest: m, Path: path})
}

// TestBackups: each backup brings back what was there when it was taken, and a later one ships little more than what came.
func TestBackups(t *testing.T) {
	s := newSource(t)
	r, dir := newRepository(t, s.clock)
	s.write(0, 20_000)
	first := s.take(r)
	want := content(t, s.engine)
	if first.Shipped != first.Bytes || first.Bytes < 100_000 {
		t.Fatalf("the first backup: %+v", first.Step)
	}
	s.write(20_000, 20_100)
	second := s.take(r)
	if second.Shipped > first.Shipped/10 || second.Shipped == 0 {
		t.Errorf("the second backup has shipped %d bytes, and the first %d", second.Shipped, first.Shipped)
	}
	third := s.take(r)
	if third.Shipped > second.Shipped {
		t.Errorf("where nothing has changed %d bytes were shipped", third.Shipped)
	}
	path := filepath.Join(t.TempDir(), "data")
	if err := restore(t, r, first.Manifest.ID, path); err != nil {
		t.Fatal(err)
	}
	same(t, keys(t, path), want)
	path = filepath.Join(t.TempDir(), "data")
	if err := restore(t, r, third.Manifest.ID, path); err != nil {
		t.Fatal(err)
	}
	same(t, keys(t, path), content(t, s.engine))
	for _, tree := range []string{dir, path} {
		private(t, tree)
	}
	v, err := backup.Verify(t.Context(), r, nil, nil)
	if err != nil || len(v.Sound) != 3 || v.FaultCount != 0 {
		t.Errorf("verified: %+v, %v", v, err)
	}
}

func same(t *testing.T, got, want map[string]string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d keys, want %d", len(got), len(want))
	}
	for k, v := range want {
		if got[k] != v {
			t.Fatalf("%s has another value", k)
		}
	}
}

// private looks whether nobody but the owner gets at anything.
func private(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestBackupsThatFail leave no manifest, no checkpoint and no lock, and the next one is whole.
func TestBackupsThatFail(t *testing.T) {
	s := newSource(t)
	r, _ := newRepository(t, s.clock)
	s.write(0, 5000)
	broken := errors.New("the connection is gone")
	for _, at := range []string{"begin", "digest", "read"} {
		var n atomic.Int64 // several files are read at once
		s.before = func(step string) error {
			if strings.HasPrefix(step, at) && (n.Add(1) > 1 || at == "begin") {
				return broken
			}
			return nil
		}
		if _, err := backup.Take(t.Context(), s, r, clock.Wall(), nil); !errors.Is(err, broken) {
			t.Fatalf("%s: %v", at, err)
		}
		if ids, err := r.IDs(t.Context()); err != nil || len(ids) > 0 {
			t.Fatalf("%s: %v, %v", at, ids, err)
		}
		if open := s.registry.All(); len(open) > 0 {
			t.Fatalf("%s: %d checkpoints are open", at, len(open))
		}
	}
	s.before = nil
	taken := s.take(r)
	path := filepath.Join(t.TempDir(), "data")
	if err := restore(t, r, taken.Manifest.ID, path); err != nil {
		t.Fatal(err)
	}
	same(t, keys(t, path), content(t, s.engine))
	if _, err := backup.Prune(t.Context(), r, backup.Keep{Last: 1}); err != nil {
		t.Errorf("a lock was left: %v", err)
	}
}

// TestShippedOtherwise: a server whose files are not what it says is found out.
func TestShippedOtherwise(t *testing.T) {
	s := newSource(t)
	r, _ := newRepository(t, s.clock)
	s.write(0, 100)
	lying := lyingSource{s}
	if _, err := backup.Take(t.Context(), lying, r, clock.Wall(), nil); err == nil || !strings.Contains(err.Error(), "is damaged") {
		t.Fatal(err)
	}
}

type lyingSource struct{ *source }

func (s lyingSource) Read(ctx context.Context, id, name string, offset, n int64) ([]byte, error) {
	b, err := s.source.Read(ctx, id, name, offset, n)
	if len(b) > 0 && strings.HasSuffix(name, ".sst") {
		b[len(b)/2] ^= 1
	}
	return b, err
}

// TestConnectionLost: a connection that ends is not taken for the end of a file.
func TestConnectionLost(t *testing.T) {
	s := newSource(t)
	r, _ := newRepository(t, s.clock)
	s.write(0, 100)
	if _, err := backup.Take(t.Context(), lostSource{s}, r, clock.Wall(), nil); !errors.Is(err, errConnection) || strings.Contains(err.Error(), "is damaged") {
		t.Fatal(err)
	}
}

type lostSource struct{ *source }

var errConnection = fmt.Errorf("the connection has ended: %w", io.EOF)

func (lostSource) Read(context.Context, string, string, int64, int64) ([]byte, error) {
	return nil, errConnection
}

// TestPrune removes what is old, and content that nobody needs, and nothing else.
func TestPrune(t *testing.T) {
	s := newSource(t)
	r, _ := newRepository(t, s.clock)
	var ids []string
	for i := range 4 {
		s.write(i*1000, (i+1)*1000)
		ids = append(ids, s.take(r).Manifest.ID)
		s.clock.Advance(24 * time.Hour)
	}
	if err := s.engine.Compact(t.Context(), []byte("a"), []byte("z")); err != nil {
		t.Fatal(err)
	}
	ids = append(ids, s.take(r).Manifest.ID)
	adding, err := r.Lock(t.Context(), repository.Adding, "somebody")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Prune(t.Context(), r, backup.Keep{Last: 1}); err == nil || !strings.Contains(err.Error(), `in use by "somebody"`) {
		t.Fatalf("beside a backup: %v", err)
	}
	if err := adding.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Prune(t.Context(), r, backup.Keep{}); err == nil {
		t.Fatal("all were removed")
	}
	p, err := backup.Prune(t.Context(), r, backup.Keep{Last: 1, Within: 49 * time.Hour, Now: s.clock.Now()})
	if err != nil || len(p.Forgotten) != 2 || p.Kept != 3 {
		t.Fatalf("%+v, %v", p, err)
	}
	p, err = backup.Prune(t.Context(), r, backup.Keep{Last: 1, Now: s.clock.Now()})
	if err != nil || len(p.Forgotten) != 2 || p.Objects == 0 {
		t.Fatalf("%+v, %v", p, err)
	}
	path := filepath.Join(t.TempDir(), "data")
	if err := restore(t, r, ids[4], path); err != nil {
		t.Fatal(err)
	}
	same(t, keys(t, path), content(t, s.engine))
	if v, err := backup.Verify(t.Context(), r, nil, nil); err != nil || v.FaultCount > 0 {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestSeveralServers: each server's newest backups stay, and nobody gets the backup of a server that was not meant.
func TestSeveralServers(t *testing.T) {
	l := &logged{source: newSource(t), first: 1, last: 10}
	r, _ := newRepository(t, l.clock)
	newest := map[string]string{}
	for _, name := range []string{"one", "two", "two", "two", "three"} {
		l.name = name
		taken, err := backup.Take(t.Context(), l, r, l.clock, nil)
		if err != nil {
			t.Fatal(err)
		}
		newest[name] = taken.Manifest.ID
		l.clock.Advance(time.Second)
	}
	p, err := backup.Prune(t.Context(), r, backup.Keep{Last: 2, Now: l.clock.Now().Add(time.Hour)})
	if err != nil || len(p.Forgotten) != 1 || p.Kept != 4 {
		t.Fatalf("%+v, %v", p, err)
	}
	for name, id := range newest {
		if m, err := backup.Newest(t.Context(), r, name); err != nil || m.ID != id || len(m.Files) == 0 {
			t.Errorf("the newest of %s: %v, %v", name, m, err)
		}
		if m, err := backup.BackupFor(t.Context(), r, name, stamp(10)); err != nil || m.ID != id && name != "two" || m.Source != name || len(m.Files) == 0 {
			t.Errorf("of %s: %v, %v", name, m, err)
		}
	}
	for source, want := range map[string]string{"": "has backups of several servers: one, three, two; --source", "four": "has no backup of four, but of one, three, two"} {
		if _, err := backup.Newest(t.Context(), r, source); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the newest of %q: %v", source, err)
		}
		if _, err := backup.BackupFor(t.Context(), r, source, repository.Timestamp{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("of %q: %v", source, err)
		}
	}
}

// TestOldLock: who sweeps and is gone is in nobody's way for long.
func TestOldLock(t *testing.T) {
	s := newSource(t)
	r, _ := newRepository(t, s.clock)
	if _, err := r.Lock(t.Context(), repository.Sweeping, "who is gone"); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Take(t.Context(), s, r, clock.Wall(), nil); err == nil || !strings.Contains(err.Error(), "who is gone") {
		t.Fatalf("beside one who sweeps: %v", err)
	}
	s.clock.Advance(time.Hour)
	s.take(r)
}

// TestRestoreIsWholeOrNone: what was not finished is no data directory, and a folder that holds something is left alone.
func TestRestoreIsWholeOrNone(t *testing.T) {
	s := newSource(t)
	r, _ := newRepository(t, s.clock)
	s.write(0, 100)
	m := s.take(r).Manifest
	path := filepath.Join(t.TempDir(), "data")
	broken := errors.New("no more")
	if err := backup.Restore(t.Context(), r, backup.Restoring{Manifest: m, Path: path, Finish: func(string) error { return broken }}); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	noData(t, path)
	if err := restore(t, r, m.ID, path); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Fatalf("into what was left: %v", err)
	}
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "letter"), []byte("dear"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := restore(t, r, m.ID, full); err == nil {
		t.Fatal("a folder of somebody else's was taken")
	}
	if entries, _ := os.ReadDir(full); len(entries) != 1 {
		t.Fatalf("it holds %v", entries)
	}
}

// noData looks whether no server takes the folder for data.
func noData(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(path, "EBB")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%s is a data directory: %v", path, err)
	}
}

// TestLostContentIsShippedAgain: what earlier backups have, and is missing or cut off in the repository, stops no later backup, which mends it.
func TestLostContentIsShippedAgain(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"cut off": func(path string) error { return os.Truncate(path, 100) },
		"missing": os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			s := newSource(t)
			s.write(0, 3000)
			r, dir := newRepository(t, s.clock)
			if _, err := backup.Take(t.Context(), s, r, s.clock, nil); err != nil {
				t.Fatal(err)
			}
			paths, err := filepath.Glob(filepath.Join(dir, "objects", "*", "*"))
			if err != nil || len(paths) == 0 {
				t.Fatalf("%v, %v", paths, err)
			}
			for _, path := range paths {
				if err := spoil(path); err != nil {
					t.Fatal(err)
				}
			}
			taken, err := backup.Take(t.Context(), s, r, s.clock, nil)
			if err != nil {
				t.Fatal(err)
			}
			v, err := backup.Verify(t.Context(), r, []string{taken.Manifest.ID}, nil)
			if err != nil || v.FaultCount != 0 || len(v.Sound) != 1 {
				t.Errorf("%+v, %v", v, err)
			}
		})
	}
}

// TestContentWithoutBackup: what a backup that failed has shipped, which no manifest lists, is not shipped again.
func TestContentWithoutBackup(t *testing.T) {
	s := newSource(t)
	r, _ := newRepository(t, s.clock)
	s.write(0, 5000)
	first := s.take(r)
	if err := r.Forget(t.Context(), first.Manifest.ID); err != nil {
		t.Fatal(err)
	}
	second := s.take(r)
	if second.Shipped > first.Shipped/2 {
		t.Errorf("%d bytes are shipped, of %d that were there", second.Shipped, first.Shipped)
	}
	if v, err := backup.Verify(t.Context(), r, nil, nil); err != nil || v.FaultCount != 0 || len(v.Sound) != 1 {
		t.Errorf("%+v, %v", v, err)
	}
}
