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
// A file that has another name, in a copy of the store made of links, keeps what it holds.
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
	if info, err := d.FS.Stat(name); err == nil && names(info) == 1 {
		d.shorten(name, info.Size())
	}
	return d.gently(func() error { return d.FS.Remove(name) })
}

// shorten leaves a step's worth of a file on disk. Where it fails, what is left goes at once.
func (d *gentleDisk) shorten(name string, size int64) {
	step := max(removedAtOnce, size/maxRemovalSteps)
	for err := error(nil); err == nil && size > step; {
		size -= step
		err = d.gently(func() error { return os.Truncate(name, size) })
	}
}

func (d *gentleDisk) gently(do func() error) error {
	begin := clock.Wall().Now()
	err := do()
	d.rest(restFor(begin))
	return err
}
