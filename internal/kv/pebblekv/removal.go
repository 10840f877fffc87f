package pebblekv

import (
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/throttle"
)

// pacedDisk rests after each log file and table that it removes. A file system that tells its disk of what is free (the mount
// option discard) keeps it busy with that, and a hundred tables go together when what they hold has expired: commits must get
// to the disk in between. A file goes as a whole. It is never cut, so a copy made of links, or a reader, keeps all of it.
type pacedDisk struct {
	vfs.FS
	rest func(time.Duration)
}

// removalRest is how long it rests after each: nobody waits for a removal.
var removalRest = throttle.Rest{Factor: 20, Longest: 20 * time.Millisecond}

// Remove is vfs.FS's. Pebble removes the files of the log and the tables on a goroutine that does nothing else.
func (d pacedDisk) Remove(name string) error {
	if !isLog(name) && !strings.HasSuffix(name, ".sst") {
		return d.FS.Remove(name)
	}
	begin := clock.Wall().Now()
	err := d.FS.Remove(name)
	d.rest(removalRest.After(clock.Since(clock.Wall(), begin)))
	return err
}
