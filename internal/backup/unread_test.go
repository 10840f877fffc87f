package backup_test

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/ebbdb/ebb/internal/backup"
	"github.com/ebbdb/ebb/internal/backup/place"
	"github.com/ebbdb/ebb/internal/backup/repository"
)

var errGone = errors.New("nobody answers")

// lamePlace gives so much of objects whose names hold a text as it says, and fails then; nothing of them where it is negative.
type lamePlace struct {
	place.Place
	of    string
	bytes int64
}

func (l *lamePlace) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if !strings.Contains(name, l.of) {
		return l.Place.Get(ctx, name)
	}
	if l.bytes < 0 {
		return nil, errGone
	}
	object, err := l.Place.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(io.LimitReader(object, l.bytes), iotest.ErrReader(errGone)), object}, nil
}

// TestUnreadIsNotDamaged: what a place does not give is told as that, and never called damaged or missing; nor does anybody go on without it as if it were.
func TestUnreadIsNotDamaged(t *testing.T) {
	l := &logged{source: newSource(t), first: 1, last: 10}
	l.write(0, 500)
	made, dir := newRepository(t, l.clock)
	id := ""
	for l.last = 10; l.last < 200; l.last += 6 {
		id, _ = l.follow(made)
	}
	segments, err := filepath.Glob(filepath.Join(dir, "log", id, "*.seg"))
	if err != nil || len(segments) < 20 {
		t.Fatalf("%v, %v", segments, err)
	}
	folder, err := place.OpenFolder(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	for _, of := range []string{"backups/", "covered", filepath.Base(segments[1]), filepath.Base(segments[len(segments)-1]), largest(t, made, id)} {
		for _, bytes := range []int64{-1, 0, 10, 700} {
			p := &lamePlace{Place: folder, of: "nothing"}
			r, err := repository.Open(t.Context(), p, l.clock)
			if err != nil {
				t.Fatal(err)
			}
			p.of, p.bytes = of, bytes
			v, err := backup.Verify(t.Context(), r, nil, nil)
			if err != nil || v.FaultCount > 0 || len(v.Unread) != 1 || !strings.Contains(v.Unread[0], errGone.Error()) {
				t.Errorf("%s, %d bytes: %v, %+v", of, bytes, err, v)
			}
			if sound := of != "backups/" && len(of) != 64; sound != (len(v.Sound) == 1) {
				t.Errorf("%s, %d bytes: %v are sound", of, bytes, v.Sound)
			}
		}
	}
	p := &lamePlace{Place: folder, of: "nothing"}
	r, err := repository.Open(t.Context(), p, l.clock)
	if err != nil {
		t.Fatal(err)
	}
	p.of = ".seg"
	if v, err := backup.Verify(t.Context(), r, nil, nil); !errors.Is(err, errGone) || v.FaultCount > 0 || len(v.Sound) != 1 {
		t.Errorf("given up: %v, %+v", err, v)
	}
	for _, p.of = range []string{".seg", "backups/"} { // a follower that took another backup would ship all again
		if err := backup.Follow(t.Context(), l, r, l.clock, nil, func(backup.Following) {}); !errors.Is(err, errGone) {
			t.Errorf("followed without %s: %v", p.of, err)
		}
	}
}

// largest is the digest of the largest file of a backup.
func largest(t *testing.T, r *repository.Repository, id string) string {
	t.Helper()
	m, err := r.Manifest(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	all := m.Files[0]
	for _, f := range m.Files {
		if f.Bytes > all.Bytes {
			all = f
		}
	}
	return all.SHA256
}
