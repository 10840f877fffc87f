package dbpath

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// A data directory keeps a file that says which file it is itself: its number in its file system, when it was made, and in which file
// system it lies as far as that is told apart from its snapshots. A copy of the file says the same, and is another file; so a copy of the directory is
// recognised. The file is made anew with each start and each stop in order, so that also a copy that is put over the directory
// brings one that is not its own. A rename, another mount point, another device name and another machine leave all three as they were.
//
// What copies blocks, and not files, is not recognised: the disk of a virtual machine, a volume and its snapshot. Nor is anything on a file system whose
// numbers are not known to last.

const (
	// originFile is the file.
	originFile   = "ebb.origin"
	originFormat = "Ebb data directory origin, format 1\ninode %d\nborn %d\nfilesystem %d\n"
)

// identity is which file a file is. What is 0 is not known.
type identity struct {
	// inode is its number, and born when it was made, in nanoseconds; no copy keeps that.
	inode uint64
	born  int64
	// system is the file system, where a snapshot of one has another.
	system uint64
}

// isOther says whether another file is meant.
func (i identity) isOther(than identity) bool {
	if i.system != 0 && than.system != 0 && i.system != than.system {
		return true
	}
	if i.born != 0 && than.born != 0 {
		return i.born != than.born
	}
	return i.inode != 0 && than.inode != 0 && i.inode != than.inode
}

// Origin is what is known about where a directory comes from.
type Origin int

// What may be known.
const (
	// OriginUnknown: nobody has noted it, or it cannot be noted here.
	OriginUnknown Origin = iota
	// OriginHere: it is the directory that was used last.
	OriginHere
	// OriginCopied: it is a copy.
	OriginCopied
)

// Origin says whether the directory is the one that SetOrigin was called for, or a copy of it. A note that cannot be understood is taken for a copy's; why
// says in words what was found.
func (d *Dir) Origin() (o Origin, why string) {
	name := filepath.Join(d.path, originFile)
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return OriginUnknown, ""
	case err == nil && !info.Mode().IsRegular():
		return OriginCopied, name + " is no regular file"
	case err != nil:
		return OriginCopied, fmt.Sprintf("%s cannot be read: %v", name, cause(err))
	}
	f, err := os.Open(name)
	if err != nil {
		return OriginCopied, fmt.Sprintf("%s cannot be read: %v", name, cause(err))
	}
	defer f.Close()
	is, err := identify(f)
	if err != nil || is == (identity{}) {
		return OriginUnknown, ""
	}
	text, err := readSmall(f)
	if err != nil {
		return OriginCopied, fmt.Sprintf("%s cannot be read: %v", name, cause(err))
	}
	var was identity
	if _, err := fmt.Sscanf(string(text), originFormat, &was.inode, &was.born, &was.system); err != nil {
		return OriginCopied, name + " is not what this version of Ebb writes"
	}
	if is.isOther(was) {
		return OriginCopied, fmt.Sprintf("%s was written as another file: %s, and is %s", name, was, is)
	}
	return OriginHere, ""
}

func (i identity) String() string {
	return fmt.Sprintf("(inode %d, born %d, file system %d)", i.inode, i.born, i.system)
}

// OriginFile is where SetOrigin has noted that the directory at path is that one; empty where it has not.
func OriginFile(path string) string {
	name := filepath.Join(path, originFile)
	if _, err := os.Lstat(name); err != nil {
		return ""
	}
	return name
}

// SetOrigin notes that the directory is this one, whole or not at all. The note is renewed when the directory is released.
func (d *Dir) SetOrigin() error {
	d.noted = true
	name := filepath.Join(d.path, originFile)
	err := writeOrigin(name + ".tmp")
	if err == nil {
		err = os.Rename(name+".tmp", name)
	}
	if err == nil {
		err = syncDir(d.path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, cause(err))
	}
	return nil
}

// writeOrigin makes a new file that says which one it is.
func writeOrigin(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) { // it would not be new
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	is, err := identify(f)
	if err == nil {
		_, err = fmt.Fprintf(f, originFormat, is.inode, is.born, is.system)
	}
	return errors.Join(err, f.Sync(), f.Close())
}
