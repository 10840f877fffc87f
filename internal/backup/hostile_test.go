package backup_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/backup"
	"github.com/ebbdb/ebb/internal/backup/place"
	"github.com/ebbdb/ebb/internal/backup/repository"
	"github.com/ebbdb/ebb/internal/clock"
)

// spoiling is a repository with one backup that somebody has been at.
type spoiling struct {
	t        *testing.T
	dir      string
	manifest *repository.Manifest
}

func (s *spoiling) path(name string) string { return filepath.Join(s.dir, filepath.FromSlash(name)) }

func (s *spoiling) manifestPath() string { return s.path("backups/" + s.manifest.ID + ".json") }

// table is the path of the content of the largest table.
func (s *spoiling) table() string {
	largest := s.manifest.Files[0]
	for _, f := range s.manifest.Files {
		if f.Bytes > largest.Bytes {
			largest = f
		}
	}
	return s.path("objects/" + largest.SHA256[:2] + "/" + largest.SHA256)
}

func (s *spoiling) change(path string, how func([]byte) []byte) {
	s.t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, how(b), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// lie changes what the manifest says, and its checksum with it.
func (s *spoiling) lie(old, now string) {
	s.t.Helper()
	s.change(s.manifestPath(), func(b []byte) []byte {
		text := b[:bytes.LastIndexByte(b[:len(b)-1], '\n')+1]
		if !bytes.Contains(text, []byte(old)) {
			s.t.Fatalf("the manifest does not say %s", old)
		}
		text = bytes.Replace(text, []byte(old), []byte(now), 1)
		sum := sha256.Sum256(text)
		return append(append(bytes.Clone(text), hex.EncodeToString(sum[:])...), '\n')
	})
}

func (s *spoiling) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// TestHostileRepositories: whatever somebody has made of a repository, a restore from it is refused in words that say what is wrong, makes
// no data directory, and writes nothing elsewhere; and verify tells of it.
func TestHostileRepositories(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*spoiling)
		says  string
	}{
		{"a flipped bit in a table", func(s *spoiling) { s.change(s.table(), func(b []byte) []byte { b[len(b)/2] ^= 8; return b }) }, "is damaged: its content has the digest"},
		{"a table that ends too early", func(s *spoiling) { s.change(s.table(), func(b []byte) []byte { return b[:len(b)-1] }) }, "ends 1 bytes too early"},
		{"a table that goes on", func(s *spoiling) { s.change(s.table(), func(b []byte) []byte { return append(b, 0) }) }, "goes on behind its end"},
		{"an empty table", func(s *spoiling) { s.change(s.table(), func([]byte) []byte { return nil }) }, "too early"},
		{"a table that is missing", func(s *spoiling) { s.must(os.Remove(s.table())) }, "is missing"},
		{"a table that is a link", func(s *spoiling) {
			s.must(os.Remove(s.table()))
			s.must(os.Symlink("/etc/passwd", s.table()))
		}, "is not a file"},
		{"a table that is a folder", func(s *spoiling) {
			s.must(os.Remove(s.table()))
			s.must(os.Mkdir(s.table(), 0o700))
		}, "is not a file"},
		{"a flipped bit in the manifest", func(s *spoiling) { s.change(s.manifestPath(), func(b []byte) []byte { b[len(b)/2] ^= 1; return b }) }, "is refused: it is damaged"},
		{"half a manifest", func(s *spoiling) { s.change(s.manifestPath(), func(b []byte) []byte { return b[:len(b)/2] }) }, "is refused: it is damaged"},
		{"an empty manifest", func(s *spoiling) { s.change(s.manifestPath(), func([]byte) []byte { return nil }) }, "is refused: it is damaged"},
		{"a way up", func(s *spoiling) { s.lie(`"EBB-SYNCED"`, `"../../escaped"`) }, `"../../escaped", which is no name of a file of a store`},
		{"a way from the root", func(s *spoiling) { s.lie(`"EBB-SYNCED"`, `"/tmp/escaped"`) }, "is no name of a file"},
		{"a way in", func(s *spoiling) { s.lie(`"EBB-SYNCED"`, `"checkpoints/000001.sst"`) }, "is no name of a file"},
		{"another file", func(s *spoiling) { s.lie(`"EBB-SYNCED"`, `"ttlHoldAt"`) }, "is no name of a file"},
		{"one name twice", func(s *spoiling) { s.lie(`"EBB-SYNCED"`, `"EBB-FORMAT"`) }, "lists EBB-FORMAT twice"},
		{"no format", func(s *spoiling) { s.lie(`"EBB-FORMAT"`, `"999999.sst"`) }, "lists no EBB-FORMAT"},
		{"a negative size", func(s *spoiling) { s.lie(`"bytes": 15,`, `"bytes": -15,`) }, "says that EBB-FORMAT has -15 bytes"},
		{"a huge size", func(s *spoiling) { s.lie(`"bytes": 15,`, `"bytes": 9000000000000,`) }, "says that EBB-FORMAT has 9000000000000 bytes"},
		{"no digest", func(s *spoiling) { s.lie(`"sha256": "`, `"sha256": "../`) }, "has the digest"},
		{"a digest of something else", func(s *spoiling) { s.lie(s.manifest.Files[0].SHA256, strings.Repeat("ab", 32)) }, "is missing"},
		{"another name", func(s *spoiling) { s.lie(s.manifest.ID, "20200102T030405.678Z-1a2b") }, "it says that it is"},
		{"a later format", func(s *spoiling) { s.lie(`"format": 1`, `"format": 2`) }, "its format is 2"},
		{"fields that nobody knows", func(s *spoiling) { s.lie(`"format": 1`, `"format": 1, "run": "rm"`) }, "is no manifest"},
		{"no files", func(s *spoiling) { s.lie(`"files": [`, `"files": [], "was": [`) }, "is no manifest"},
		{"a time out of all time", func(s *spoiling) { s.lie(`"at": "2026`, `"at": "0001`) }, "as of"},
		{"a table that the list of tables has is left out", func(s *spoiling) {
			for _, f := range s.manifest.Files {
				if strings.HasSuffix(f.Name, ".sst") {
					s.lie(`"`+f.Name+`"`, `"999999.sst"`)
					return
				}
			}
			s.t.Fatal("there is no table")
		}, "is missing, a table that"},
		{"no list of tables", func(s *spoiling) {
			for _, f := range s.manifest.Files {
				if strings.HasPrefix(f.Name, "MANIFEST-") {
					s.lie(`"`+f.Name+`"`, `"MANIFEST-999999"`)
					return
				}
			}
		}, "is missing, the list of all tables"},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := newSource(t)
			r, dir := newRepository(t, src.clock)
			src.write(0, 500)
			s := &spoiling{t, dir, src.take(r).Manifest}
			c.spoil(s)
			above := t.TempDir()
			path := filepath.Join(above, "data")
			err := restore(t, r, s.manifest.ID, path)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("restored: %v, want words like %q", err, c.says)
			}
			noData(t, path)
			entries, err := os.ReadDir(above)
			if err != nil || len(entries) > 1 {
				t.Errorf("beside the data directory there is %v, %v", entries, err)
			}
			if _, err := os.Stat("/tmp/escaped"); !errors.Is(err, fs.ErrNotExist) {
				t.Error("it has escaped")
			}
			lies := strings.Contains(c.name, "list of tables") // of which only a restore can know
			if v, err := backup.Verify(t.Context(), r, nil, nil); err != nil || v.FaultCount == 0 && !lies {
				t.Errorf("verified: %+v, %v", v, err)
			}
		})
	}
}

// TestOtherFolders: what is no repository, or of another version, is neither read nor written.
func TestOtherFolders(t *testing.T) {
	for name, text := range map[string]string{"EBB-BACKUP": "Ebb backup repository, format 2\n", "letter": "dear", ".hidden": "x", "a name with spaces": "x", "notes.txt~": "x"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := place.OpenFolder(dir, true)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := repository.Create(context.Background(), p, clock.Wall()); err == nil || !strings.Contains(err.Error(), "is not a repository of backups") {
			t.Errorf("%s: %v", name, err)
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 1 {
			t.Errorf("%s: it holds %v", name, entries)
		}
		_ = p.Close()
	}
}

// TestEmptyFolders: a folder of which a file system has something, or a write that was cut off, is empty. What a repository has of others
// stays through a prune.
func TestEmptyFolders(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "lost+found"), 0o700), os.WriteFile(filepath.Join(dir, "EBB-BACKUP.0~"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	p, err := place.OpenFolder(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := repository.Create(t.Context(), p, clock.Wall()); err != nil {
		t.Fatal(err)
	}
	const notes = "notes.txt~"
	if err := os.WriteFile(filepath.Join(dir, notes), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.Clean(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, stays := range map[string]bool{notes: true, "EBB-BACKUP.0~": false} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != stays {
			t.Errorf("%s: %v", name, err)
		}
	}
}
