// Package smalldisk is a disk in memory that can be full, for tests of what stores do then. It counts what files take, and
// knows nothing of what is in them.
package smalldisk

import (
	"io/fs"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/kv/crashdisk"
)

// blockBytes is what a file takes at least, and in steps of what it grows.
const blockBytes = 4096

// Disk is a vfs.FS of so many bytes. A write that does not fit writes what does, and fails with ENOSPC.
type Disk struct {
	vfs.FS
	mem *crashdisk.Disk

	mu struct {
		sync.Mutex
		capacity, used, peak int64
		full                 int // writes that did not fit
		files                map[string]*inode
	}
}

// inode is a file under any of its names.
type inode struct{ taken, links int64 }

// New is an empty disk.
func New(capacity int64) *Disk { return over(crashdisk.New(), capacity) }

func over(mem *crashdisk.Disk, capacity int64) *Disk {
	d := &Disk{FS: mem, mem: mem}
	d.mu.capacity, d.mu.files = capacity, map[string]*inode{}
	return d
}

// Crash is the disk as a power cut leaves it, which loses up to so many percent of what was not synced. What was set aside for
// files is forgotten. A removal that the power cut undoes leaves no more files than there is room for: a disk gives the blocks of a file to others when its
// removal is on the disk.
func (d *Disk) Crash(lostPercent int, rng *rand.Rand) (*Disk, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	left := over(&crashdisk.Disk{MemFS: d.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100 - lostPercent, RNG: rng})}, d.mu.capacity)
	err := left.count("")
	left.mu.capacity = max(left.mu.capacity, left.mu.used)
	return left, err
}

// count finds what there is below dir. The disk is nobody else's yet.
func (d *Disk) count(dir string) error {
	names, err := d.mem.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		path := name
		if dir != "" {
			path = d.PathJoin(dir, name)
		}
		info, err := d.mem.Stat(path)
		if err != nil {
			return err
		}
		if info.IsDir() {
			if err := d.count(path); err != nil {
				return err
			}
			continue
		}
		n := &inode{taken: blocks(info.Size()), links: 1}
		d.mu.files[path] = n
		d.mu.used += n.taken
	}
	return nil
}

// Resize gives the disk another size, smaller than what it holds, too.
func (d *Disk) Resize(capacity int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.capacity = capacity
}

// Used is what the files take now, and took at most.
func (d *Disk) Used() (now, peak int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.used, d.mu.peak
}

// Refused is how often something did not fit.
func (d *Disk) Refused() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.full
}

func blocks(n int64) int64 { return max(1, (n+blockBytes-1)/blockBytes) * blockBytes }

// grow gives a file room up to end, or as far as there is room, which it returns.
func (d *Disk) grow(n *inode, end int64) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	more := blocks(end) - n.taken
	if more <= 0 {
		return end
	}
	if free := max(0, d.mu.capacity-d.mu.used); more > free {
		d.mu.full++
		more = free / blockBytes * blockBytes
	}
	n.taken += more
	if n.links > 0 {
		d.mu.used += more
		d.mu.peak = max(d.mu.peak, d.mu.used)
	}
	return min(end, n.taken)
}

// forget takes a name away. The caller holds mu.
func (d *Disk) forget(name string) {
	n := d.mu.files[name]
	if n == nil {
		return
	}
	delete(d.mu.files, name)
	if n.links--; n.links == 0 {
		d.mu.used -= n.taken
	}
}

func (d *Disk) name(name string, n *inode) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.setName(name, n)
}

// setName gives a file a name. The caller holds mu.
func (d *Disk) setName(name string, n *inode) {
	d.forget(name)
	n.links++
	if n.links == 1 {
		d.mu.used += n.taken
	}
	d.mu.files[name] = n
}

func (d *Disk) node(name string) *inode {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.files[name]
}

// Create is vfs.FS's.
func (d *Disk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	n := &inode{links: 1}
	if d.grow(n, 1) < 1 {
		return nil, syscall.ENOSPC
	}
	f, err := d.mem.Create(name, category)
	if err != nil {
		d.mu.Lock()
		d.mu.used -= n.taken
		d.mu.Unlock()
		return nil, err
	}
	d.mu.Lock()
	d.mu.used, n.links = d.mu.used-n.taken, 0
	d.mu.Unlock()
	d.name(name, n)
	return &file{File: f, disk: d, node: n}, nil
}

// ReuseForWrite is vfs.FS's.
func (d *Disk) ReuseForWrite(from, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := d.Rename(from, name); err != nil {
		return nil, err
	}
	return d.OpenReadWrite(name, category)
}

// OpenReadWrite is vfs.FS's, for files that there are.
func (d *Disk) OpenReadWrite(name string, category vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	n := d.node(name)
	if n == nil {
		return nil, fs.ErrNotExist
	}
	f, err := d.mem.OpenReadWrite(name, category, o...)
	if err != nil {
		return nil, err
	}
	return &file{File: f, disk: d, node: n}, nil
}

// Link is vfs.FS's.
func (d *Disk) Link(from, name string) error {
	if err := d.mem.Link(from, name); err != nil {
		return err
	}
	d.name(name, d.node(from))
	return nil
}

// Rename is vfs.FS's.
func (d *Disk) Rename(from, name string) error {
	if err := d.mem.Rename(from, name); err != nil {
		return err
	}
	if from == name {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for path, n := range maps.Clone(d.mu.files) { // from may be a folder
		if rest, below := strings.CutPrefix(path, from+"/"); below {
			d.forget(path)
			d.setName(name+"/"+rest, n)
		} else if path == from {
			d.forget(path)
			d.setName(name, n)
		}
	}
	return nil
}

// Remove is vfs.FS's.
func (d *Disk) Remove(name string) error {
	if err := d.mem.Remove(name); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget(name)
	return nil
}

// RemoveAll is vfs.FS's.
func (d *Disk) RemoveAll(name string) error {
	if err := d.mem.RemoveAll(name); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for path := range d.mu.files {
		if path == name || strings.HasPrefix(path, name+"/") {
			d.forget(path)
		}
	}
	return nil
}

// GetDiskUsage is vfs.FS's.
func (d *Disk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return vfs.DiskUsage{
		AvailBytes: uint64(max(0, d.mu.capacity-d.mu.used)), TotalBytes: uint64(d.mu.capacity), UsedBytes: uint64(d.mu.used),
	}, nil
}

// Unwrap is vfs.FS's.
func (d *Disk) Unwrap() vfs.FS { return d.mem }

type file struct {
	vfs.File
	disk *Disk
	node *inode
	at   int64
}

func (f *file) Write(p []byte) (int, error) {
	fits := min(int64(len(p)), max(0, f.disk.grow(f.node, f.at+int64(len(p)))-f.at))
	n, err := f.File.Write(p[:fits])
	f.at += int64(n)
	if err == nil && n < len(p) {
		err = syscall.ENOSPC
	}
	return n, err
}

func (f *file) WriteAt(p []byte, at int64) (int, error) {
	fits := min(int64(len(p)), max(0, f.disk.grow(f.node, at+int64(len(p)))-at))
	n, err := f.File.WriteAt(p[:fits], at)
	if err == nil && n < len(p) {
		err = syscall.ENOSPC
	}
	return n, err
}

func (f *file) Preallocate(at, length int64) error {
	if f.disk.grow(f.node, at+length) < at+length {
		return syscall.ENOSPC
	}
	return nil
}

// Fd is none, as of all files in memory.
func (f *file) Fd() uintptr { return vfs.InvalidFd }
