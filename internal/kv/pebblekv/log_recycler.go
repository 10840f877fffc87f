package pebblekv

import (
	"errors"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// logRecycler keeps one file of the log that is no longer needed, and the next one is written over it. To remove a file of 64 MiB holds
// up every sync of the file system for tens of milliseconds where that tells its disk what is free (the mount option discard).
//
// Pebble's own recycling leaves in the file what was deleted, or has expired, until it is written over. Here nothing is left: the file
// system is told that all of it is zeros (zeroRange). It writes none for that, and frees nothing.
//
// Invariants: a file that has another name, which a checkpoint or a backup may have given it, is never written over: it is renamed
// first, so that nobody gives it one from then on, and then looked at. Its zeros are on stable storage before it is used. What a
// process that ended has left is removed at the next start.
type logRecycler struct {
	disk vfs.FS // where nobody waits for room
	path string // of the spare
	most int64  // bytes that it may take
	zero func(file vfs.File, most int64) (size int64, err error)
	// isHeld says whether somebody copies the files one by one: they keep their names then. isScarce says whether room is.
	isHeld, isScarce func() bool

	state       atomic.Int32 // who changes it from one that rests to spareBusy has the spare, and all below, to himself
	size        int64        // of the spare
	unsupported bool         // the file system cannot do that
}

// The states of the spare.
const (
	noSpare = iota
	spareBusy
	spareReady
)

// logSpareFile is in the store's directory.
const logSpareFile = "EBB-LOG-SPARE"

// errUnfit is of a file that has other names, or is too large to be kept.
var errUnfit = errors.New("pebblekv: the file is not to be written over")

// clear removes what was left, unless another file has taken its place meanwhile.
func (r *logRecycler) clear() error {
	if !r.state.CompareAndSwap(noSpare, spareBusy) {
		return nil
	}
	defer r.state.Store(noSpare)
	if _, err := r.disk.Stat(r.path); err != nil {
		return nil
	}
	return r.disk.Remove(r.path)
}

// keep makes a file of the log the spare, and says whether it did; otherwise it is to be removed.
func (r *logRecycler) keep(name string) bool {
	if r.isScarce() || !r.state.CompareAndSwap(noSpare, spareBusy) {
		return false
	}
	after := int32(noSpare)
	defer func() { r.state.Store(after) }()
	if r.unsupported || r.wipe(name) != nil {
		return false
	}
	after = spareReady
	return true
}

// wipe renames a file and makes it zeros. Where it cannot, the file has its name back.
func (r *logRecycler) wipe(name string) (err error) {
	if err := r.disk.Rename(name, r.path); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.disk.Rename(r.path, name))
		}
	}()
	if err := syncDir(r.disk, r.disk.PathDir(r.path)); err != nil {
		return err
	}
	file, err := r.disk.OpenReadWrite(r.path, "pebble-wal")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if r.size, err = r.zero(file, r.most); err != nil {
		r.unsupported = !errors.Is(err, errUnfit)
		return err
	}
	return file.Sync()
}

// take gives the spare a name and opens it; nil when there is none to be had. It holds zeros up to size.
func (r *logRecycler) take(disk vfs.FS, name string, category vfs.DiskWriteCategory) (file vfs.File, size int64) {
	if r.isHeld() || !r.state.CompareAndSwap(spareReady, spareBusy) {
		return nil, 0
	}
	defer r.state.Store(noSpare)
	file, err := disk.ReuseForWrite(r.path, name, category)
	if err != nil {
		return nil, 0 // the log makes its file as ever, in the place of what has the name
	}
	return file, r.size
}

// isLog says whether a file is of the log.
func isLog(name string) bool { return strings.HasSuffix(name, ".log") }
