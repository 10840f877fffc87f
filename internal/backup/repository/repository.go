// Package repository is a repository of backups: the files of stores, each once and under the digest of its content; a manifest for each
// backup, which lists its files; and segments of oplogs. It believes nothing that it reads. It knows neither where backups are taken nor what
// a store is.
package repository

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/backup/place"
	"github.com/ebbdb/ebb/internal/clock"
)

// The names of objects.
const (
	markerName   = "EBB-BACKUP"
	markerText   = "Ebb backup repository, format 1\n"
	objectPrefix = "objects/"
	backupPrefix = "backups/"
	lockPrefix   = "locks/"
	manifestEnd  = ".json"
)

const (
	// maxBackups bounds how many are listed.
	maxBackups = 100_000
	// maxObjects bounds how many objects are looked at for what is there, and for what nobody needs.
	maxObjects = 10_000_000
	// maxSmall bounds what is read of small objects.
	maxSmall = 64 << 10
)

// Repository is one.
type Repository struct {
	place place.Place
	clock clock.Clock
}

// Create opens a repository, or makes one in an empty place.
func Create(ctx context.Context, p place.Place, c clock.Clock) (*Repository, error) {
	r, err := Open(ctx, p, c)
	if !errors.Is(err, place.ErrNotFound) {
		return r, err
	}
	switch name, err := p.Any(ctx); {
	case err != nil:
		return nil, err
	case name != "":
		return nil, fmt.Errorf("%s is not a repository of backups, for it has no %s, and not empty: it holds %q", p, markerName, name)
	}
	if err := p.Put(ctx, markerName, strings.NewReader(markerText), int64(len(markerText))); err != nil {
		return nil, err
	}
	return &Repository{p, c}, nil
}

// Open opens a repository.
func Open(ctx context.Context, p place.Place, c clock.Clock) (*Repository, error) {
	b, err := place.ReadSmall(ctx, p, markerName, maxSmall)
	if errors.Is(err, place.ErrNotFound) {
		return nil, fmt.Errorf("%s is not a repository of backups: %w", p, err)
	}
	if err != nil {
		return nil, err
	}
	if string(b) != markerText {
		return nil, fmt.Errorf("%s is not a repository of backups that this version of Ebb knows: its %s says %q", p, markerName, b[:min(len(b), 100)])
	}
	return &Repository{p, c}, nil
}

// String is where it lies.
func (r *Repository) String() string { return r.place.String() }

// NewID is the name of a backup as of a moment.
func NewID(at time.Time) string {
	var b [2]byte
	_, _ = rand.Read(b[:]) // never fails
	return at.UTC().Format("20060102T150405.000Z") + "-" + hex.EncodeToString(b[:])
}

// IDs are the names of all backups, oldest first.
func (r *Repository) IDs(ctx context.Context) (ids []string, err error) {
	err = r.place.List(ctx, backupPrefix, func(o place.Object) error {
		id, ok := strings.CutSuffix(strings.TrimPrefix(o.Name, backupPrefix), manifestEnd)
		if !ok || CheckID(id) != nil {
			return nil
		}
		if len(ids) == maxBackups {
			return fmt.Errorf("%s has more than %d backups", r.place, maxBackups)
		}
		ids = append(ids, id)
		return nil
	})
	slices.Sort(ids)
	return ids, err
}

// Manifest reads that of a backup.
func (r *Repository) Manifest(ctx context.Context, id string) (*Manifest, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	b, err := place.ReadSmall(ctx, r.place, backupPrefix+id+manifestEnd, maxManifestBytes)
	if errors.Is(err, place.ErrNotFound) {
		return nil, place.Faultf("%s has no backup %s", r.place, id)
	}
	if err != nil {
		return nil, err
	}
	m, err := decodeManifest(id, b)
	if err != nil {
		return nil, place.Faultf("the manifest of backup %s in %s is refused: %w", id, r.place, err)
	}
	return m, nil
}

// HasBackup says whether there is a backup.
func (r *Repository) HasBackup(ctx context.Context, id string) (bool, error) {
	if err := CheckID(id); err != nil {
		return false, err
	}
	_, err := r.place.Stat(ctx, backupPrefix+id+manifestEnd)
	if errors.Is(err, place.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Add adds a backup, all of whose files are there.
func (r *Repository) Add(ctx context.Context, m *Manifest) error {
	m.Format = manifestFormat
	if err := m.check(m.ID); err != nil {
		return fmt.Errorf("the manifest would be refused: %w", err)
	}
	b, err := m.encode()
	if err != nil {
		return err
	}
	return r.place.Put(ctx, backupPrefix+m.ID+manifestEnd, bytes.NewReader(b), int64(len(b)))
}

// Forget removes a backup, and the oplog behind it. Its files stay until Sweep.
func (r *Repository) Forget(ctx context.Context, id string) error {
	if err := CheckID(id); err != nil {
		return err
	}
	if err := r.place.Delete(ctx, backupPrefix+id+manifestEnd); err != nil {
		return err
	}
	return r.forgetLog(ctx, id)
}

// objectName is where content lies.
func objectName(sum string) string { return objectPrefix + sum[:2] + "/" + sum }

// Put keeps content under its digest. What is read must have it.
func (r *Repository) Put(ctx context.Context, f File, content io.Reader) error {
	checked := &checkedReader{r: content, hash: sha256.New(), left: f.Bytes, want: f.SHA256, name: f.Name}
	return r.place.Put(ctx, objectName(f.SHA256), checked, f.Bytes)
}

// Has says whether content is there, as large as it should be.
func (r *Repository) Has(ctx context.Context, f File) (bool, error) {
	o, err := r.place.Stat(ctx, objectName(f.SHA256))
	if errors.Is(err, place.ErrNotFound) {
		return false, nil
	}
	return err == nil && o.Bytes == f.Bytes, err
}

// Contents are the sizes of all content that is there, by digest. What a backup has left that failed, and no other has, is among it.
func (r *Repository) Contents(ctx context.Context) (map[string]int64, error) {
	sizes := map[string]int64{}
	err := r.place.List(ctx, objectPrefix, func(o place.Object) error {
		sum := o.Name[strings.LastIndexByte(o.Name, '/')+1:]
		if !digest.MatchString(sum) || o.Name != objectName(sum) {
			return nil
		}
		if len(sizes) == maxObjects {
			return fmt.Errorf("%s has more than %d objects", r.place, maxObjects)
		}
		sizes[strings.Clone(sum)] = o.Bytes
		return nil
	})
	return sizes, err
}

// Get reads a file of a backup. What is read fails at its end where it is not what the manifest says.
func (r *Repository) Get(ctx context.Context, f File) (io.ReadCloser, error) {
	body, err := r.place.Get(ctx, objectName(f.SHA256))
	if errors.Is(err, place.ErrNotFound) {
		return nil, place.Faultf("%s is missing in %s, the content of %s", objectName(f.SHA256), r.place, f.Name)
	}
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{&checkedReader{r: body, hash: sha256.New(), left: f.Bytes, want: f.SHA256, name: f.Name}, body}, nil
}

// checkedReader reads so many bytes of a digest, or fails.
type checkedReader struct {
	r    io.Reader
	hash hash.Hash
	left int64
	want string
	name string
}

// Read reports what is wrong together with the last byte, so that nobody who reads all of it misses that.
func (c *checkedReader) Read(p []byte) (n int, err error) {
	if c.left > 0 {
		n, err = c.r.Read(p[:min(int64(len(p)), c.left)])
		c.hash.Write(p[:n])
		c.left -= int64(n)
	}
	switch {
	case err == io.EOF && c.left > 0: // one that wraps it is of a connection, and says nothing of the content
		return n, place.Faultf("%s is damaged: it ends %d bytes too early", c.name, c.left)
	case err != nil && err != io.EOF:
		return n, err
	case c.left > 0:
		return n, nil
	}
	if got := hex.EncodeToString(c.hash.Sum(nil)); got != c.want {
		return n, place.Faultf("%s is damaged: its content has the digest %s and should have %s", c.name, got, c.want)
	}
	var one [1]byte
	if more, _ := io.ReadFull(c.r, one[:]); more > 0 {
		return n, place.Faultf("%s is damaged: it goes on behind its end", c.name)
	}
	return n, io.EOF
}

// Sweep removes content that no backup has. Nobody may add backups meanwhile.
func (r *Repository) Sweep(ctx context.Context, needed map[string]bool) (removed int, freed int64, err error) {
	var dead []place.Object
	n := 0
	err = r.place.List(ctx, objectPrefix, func(o place.Object) error {
		if n++; n > maxObjects {
			return fmt.Errorf("%s has more than %d objects", r.place, maxObjects)
		}
		if !needed[o.Name[strings.LastIndexByte(o.Name, '/')+1:]] {
			dead = append(dead, o)
		}
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	for _, o := range dead {
		if err := r.place.Delete(ctx, o.Name); err != nil {
			return removed, freed, err
		}
		removed, freed = removed+1, freed+o.Bytes
	}
	return removed, freed, r.place.Clean(ctx)
}
