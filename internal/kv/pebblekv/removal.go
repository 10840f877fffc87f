package pebblekv

import (
	"os"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/clock"
)

// gentleDisk takes large files away by small steps, and rests in between. A file system that tells its disk of what is free
// (the mount option discard) keeps it busy with that: 64 MiB of log for some 18 ms, in which no commit gets there, and a
// hundred tables, which go together when what they hold has expired, for as long as they all take.
//
// The name goes first, and what is cut is a file that has no other and that nobody else has open: no copy of the store, made
// of links or read meanwhile, can get a cut file. All others go at once, and keep what they hold until nobody needs it.
type gentleDisk struct {
	vfs.FS
	rest func(time.Duration)
}

const (
	// removedAtOnce is how much goes in a step. maxRemovalSteps bounds them, so that no file takes much longer than a second.
	removedAtOnce   = 2 << 20
	maxRemovalSteps = 64
)

// Remove is vfs.FS's. Pebble removes the files of the log and the tables on a goroutine that does nothing else.
func (d *gentleDisk) Remove(name string) error {
	if !strings.HasSuffix(name, ".log") && !strings.HasSuffix(name, ".sst") {
		return d.FS.Remove(name)
	}
	file := d.openLast(name)
	if file == nil {
		return d.gently(func() error { return d.FS.Remove(name) })
	}
	err := d.gently(func() error { return d.FS.Remove(name) })
	if err == nil && isNameless(file) {
		d.shorten(file)
	}
	_ = d.gently(file.Close) // what is left of it goes with the last who has it open
	return err
}

// openLast opens a file on disk that has one name; nil if it is none, or cannot be opened.
func (d *gentleDisk) openLast(name string) *os.File {
	info, err := d.FS.Stat(name)
	if err != nil || names(info) != 1 || info.Size() <= removedAtOnce {
		return nil
	}
	file, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return nil
	}
	return file
}

// isNameless says whether nobody else has the file nor can come to have it: it is under no name any more, which is for good,
// and nobody else has it open.
func isNameless(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && names(info) == 0 && isOurs(file)
}

// shorten leaves a step's worth of a file. Where it fails, what is left goes at once.
func (d *gentleDisk) shorten(file *os.File) {
	info, err := file.Stat()
	if err != nil {
		return
	}
	size := info.Size()
	step := max(removedAtOnce, size/maxRemovalSteps)
	for err == nil && size > step {
		size -= step
		err = d.gently(func() error { return file.Truncate(size) })
	}
}

func (d *gentleDisk) gently(do func() error) error {
	begin := clock.Wall().Now()
	err := do()
	d.rest(restFor(begin))
	return err
}
