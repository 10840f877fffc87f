package pebblekv

import (
	"errors"
	"io/fs"
	"log/slog"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/kv/inspect"
)

// Guard looks after the files of a Pebble store that is not an Engine's as an Engine does: what of them was synced is noted (notes), and what is missing of
// that is known when the store is opened the next time.
type Guard struct {
	dir   string
	disk  vfs.FS
	lock  *pebble.Lock
	notes *notes
}

// NewGuard reads the store in dir, or makes the directory. Files that are damaged are refused, and nothing of them is changed.
func NewGuard(dir string, disk vfs.FS, log *slog.Logger) (*Guard, error) {
	if err := makeDir(disk, dir); err != nil {
		return nil, err
	}
	lock, err := pebble.LockDirectory(dir, disk)
	if err != nil {
		return nil, err
	}
	g := &Guard{dir: dir, lock: lock}
	if g.notes, err = lookAndNote(dir, disk, log); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	g.disk = notedDisk{logDisk{FS: disk}, g.notes} // what is set aside would let it go on where another store on the disk has no room any more
	return g, nil
}

// makeDir makes a directory that is there after a power failure, too.
func makeDir(disk vfs.FS, dir string) error {
	if _, err := disk.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := disk.MkdirAll(dir, privateFolder); err != nil {
		return err
	}
	return syncDir(disk, disk.PathDir(dir))
}

func lookAndNote(dir string, disk vfs.FS, log *slog.Logger) (*notes, error) {
	report, err := inspect.Look(disk, dir)
	if err != nil {
		return nil, err
	}
	if err := report.Err(dir); err != nil {
		return nil, err
	}
	for _, w := range report.Warnings {
		log.Warn(dir + ": " + w)
	}
	return openNotes(disk, dir, report.Note)
}

// Disk is what the store is to be opened on.
func (g *Guard) Disk() vfs.FS { return g.disk }

// Open opens the store. Files of its log are not written over by later ones: what they held before would look like damage.
func (g *Guard) Open(o *pebble.Options) (*pebble.DB, error) {
	o.Lock, o.Cleaner = g.lock, cleaner{}
	return openPebble(g.dir, o)
}

// Leave ends the notes of a store whose writers never go on, and which is not closed.
func (g *Guard) Leave() error { return g.notes.close() }

// Close is called when the store is closed.
func (g *Guard) Close() error { return errors.Join(g.notes.close(), g.lock.Close()) }
