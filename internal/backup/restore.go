package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/backup/repository"
	"github.com/ebbdb/ebb/internal/dbpath"
	"github.com/ebbdb/ebb/internal/kv/inspect"
)

// Nobody but its owner reads what is restored.
const (
	privateFile   fs.FileMode = 0o600
	privateFolder fs.FileMode = 0o700
)

// A backup is restored in a folder of its own within the data directory, which is no data directory before it is whole: then it is moved to
// its place, and marked last. So a server never takes half of a backup for data, whenever the restore ends.

const (
	// partFolder is where a backup is before it is whole. It is a data directory of its own.
	partFolder = "restore.part"
	// storeFolder is the store's place in a data directory.
	storeFolder = "store"
)

// Restoring says how a backup is restored.
type Restoring struct {
	Manifest *repository.Manifest
	// Path is the data directory that is made, which must be missing or empty.
	Path     string
	Progress Progress
	// Finish is called when the files are there, with a data directory that holds them, and does there what is left to do; nil: nothing.
	Finish func(part string) error
	// Leave is called with the data directory before it is marked; nil: nothing is left in it.
	Leave func(path string) error
}

// Restore makes a backup a data directory.
func Restore(ctx context.Context, r *repository.Repository, x Restoring) (err error) {
	dir, err := dbpath.ClaimEmpty(x.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Release()) }()
	part := filepath.Join(dir.Path(), partFolder)
	err = x.part(ctx, r, part)
	if err == nil {
		err = os.Rename(filepath.Join(part, storeFolder), filepath.Join(dir.Path(), storeFolder))
	}
	if err == nil && x.Leave != nil {
		err = x.Leave(dir.Path())
	}
	if err == nil {
		err = os.RemoveAll(part)
	}
	if err == nil {
		err = syncFolder(dir.Path())
	}
	if err != nil {
		return fmt.Errorf("restore backup %s: %w; %s is no data directory, and may be emptied", x.Manifest.ID, err, dir.Path())
	}
	return dir.Mark()
}

func (x *Restoring) part(ctx context.Context, r *repository.Repository, part string) error {
	dir, err := dbpath.ClaimEmpty(part)
	if err != nil {
		return err
	}
	store := filepath.Join(part, storeFolder)
	err = Fetch(ctx, r, x.Manifest, store, x.Progress)
	if err == nil {
		err = look(store)
	}
	if err == nil {
		err = dir.Mark()
	}
	if err := errors.Join(err, dir.Release()); err != nil || x.Finish == nil {
		return err
	}
	return x.Finish(part)
}

// look looks whether the files are a store: a manifest may lie about what belongs together.
func look(store string) error {
	report, err := inspect.Look(vfs.Default, store)
	if err != nil {
		return err
	}
	if report.Fresh {
		return errors.New("the backup holds no store")
	}
	return report.Err(store)
}

// Fetch puts the files of a backup into a folder, which it makes. Each is checked against the manifest on its way. The folder is not a
// store before Fetch has returned.
func Fetch(ctx context.Context, r *repository.Repository, m *repository.Manifest, dir string, p Progress) (err error) {
	if err := os.Mkdir(dir, privateFolder); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	var files, bytes atomic.Int64
	err = each(ctx, len(m.Files), func(ctx context.Context, i int) error {
		f := m.Files[i]
		if err := fetch(ctx, r, f, root); err != nil {
			return err
		}
		step := Step{Files: int(files.Add(1)), TotalFiles: len(m.Files), Bytes: bytes.Add(f.Bytes), TotalBytes: m.Bytes()}
		if p != nil {
			p(step)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return syncFolder(dir)
}

func fetch(ctx context.Context, r *repository.Repository, f repository.File, root *os.Root) error {
	content, err := r.Get(ctx, f)
	if err != nil {
		return err
	}
	defer content.Close()
	file, err := root.OpenFile(f.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, privateFile)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("restore %s: %w", f.Name, err)
	}
	return nil
}

func syncFolder(path string) error {
	dir, err := os.Open(filepath.Clean(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
