package dbpath

import (
	"os"

	"golang.org/x/sys/unix"
)

// lasting are file systems on which a file keeps its number, and when it was made, over all mounts. FUSE, for one, may give new numbers with
// each.
var lasting = map[int64]bool{
	unix.EXT4_SUPER_MAGIC: true, unix.XFS_SUPER_MAGIC: true, unix.BTRFS_SUPER_MAGIC: true, zfsMagic: true, unix.F2FS_SUPER_MAGIC: true,
	unix.TMPFS_MAGIC: true, unix.OVERLAYFS_SUPER_MAGIC: true, unix.NFS_SUPER_MAGIC: true, unix.CEPH_SUPER_MAGIC: true,
}

const zfsMagic = 0x2fc12fc1

// identify finds out which file f is.
func identify(f *os.File) (i identity, err error) {
	var system unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &system); err != nil {
		return i, err
	}
	kind := int64(uint32(system.Type)) // some architectures have it narrower, and with a sign
	if !lasting[kind] {
		return i, nil
	}
	var s unix.Statx_t
	err = unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_INO|unix.STATX_BTIME, &s)
	if err != nil { // an old kernel, or who lets through no call that he does not know
		var s unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &s); err != nil {
			return i, err
		}
		i.inode = s.Ino
	} else {
		i.inode = s.Ino
		if s.Mask&unix.STATX_BTIME != 0 {
			i.born = s.Btime.Sec*1e9 + int64(s.Btime.Nsec)
		}
	}
	if kind == unix.BTRFS_SUPER_MAGIC || kind == zfsMagic { // elsewhere it may be a device's number, which does not last, or is the snapshot's, too
		i.system = uint64(uint32(system.Fsid.Val[0]))<<32 | uint64(uint32(system.Fsid.Val[1]))
	}
	return i, nil
}
