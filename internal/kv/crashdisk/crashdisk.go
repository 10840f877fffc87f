// Package crashdisk is a disk in memory that can be copied at any moment as a loss of power would leave it, for tests of what stores
// find afterwards. It knows nothing of what the files hold.
package crashdisk

import (
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Disk is a crashable vfs.MemFS whose files may be linked while it is copied.
type Disk struct {
	*vfs.MemFS
	// linking: Pebble's MemFS (v2.1.7) locks twice for reading when it links a file. It would wait for good if somebody waited
	// in between to copy the disk.
	linking sync.RWMutex
}

// New is an empty disk.
func New() *Disk { return &Disk{MemFS: vfs.NewCrashableMem()} }

// Link is vfs.FS's.
func (d *Disk) Link(oldname, newname string) error {
	d.linking.RLock()
	defer d.linking.RUnlock()
	return d.MemFS.Link(oldname, newname)
}

// CrashClone is what a loss of power would leave now.
func (d *Disk) CrashClone(cfg vfs.CrashCloneCfg) *vfs.MemFS {
	d.linking.Lock()
	defer d.linking.Unlock()
	return d.MemFS.CrashClone(cfg)
}
