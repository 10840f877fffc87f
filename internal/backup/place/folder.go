package place

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Nobody but its owner reads what is backed up.
const (
	privateFile   fs.FileMode = 0o600
	privateFolder fs.FileMode = 0o700
)

// partSuffix is of files that are not whole yet. No name of an object ends with it.
const partSuffix = "~"

// Folder is a place in the file system.
type Folder struct{ root *os.Root }

// OpenFolder opens a folder; create makes it where it is missing.
func OpenFolder(path string, create bool) (*Folder, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if create {
		if err := os.MkdirAll(path, privateFolder); err != nil {
			return nil, fmt.Errorf("make the folder of backups: %w", err)
		}
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open the folder of backups: %w", err)
	}
	return &Folder{root}, nil
}

// Close is for who needs it no more.
func (f *Folder) Close() error { return f.root.Close() }

// String is Place's.
func (f *Folder) String() string { return f.root.Name() }

// Put is Place's.
func (f *Folder) Put(_ context.Context, name string, r io.Reader, bytes int64) error {
	if err := CheckName(name); err != nil {
		return err
	}
	path := filepath.FromSlash(name)
	if err := f.root.MkdirAll(filepath.Dir(path), privateFolder); err != nil {
		return err
	}
	part, err := f.newPart(path)
	if err != nil {
		return err
	}
	n, err := io.Copy(part, io.LimitReader(r, bytes))
	if err == nil && n != bytes {
		err = io.ErrUnexpectedEOF
	}
	if err = errors.Join(err, part.Sync(), part.Close()); err == nil {
		err = f.root.Rename(f.relative(part), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, errors.Join(err, ignoreMissing(f.root.Remove(f.relative(part)))))
	}
	return f.syncFolders(filepath.Dir(path))
}

// maxParts is how many may write an object of one name at once.
const maxParts = 100

func (f *Folder) newPart(path string) (*os.File, error) {
	for i := 0; ; i++ {
		part, err := f.root.OpenFile(fmt.Sprintf("%s.%d%s", path, i, partSuffix), os.O_WRONLY|os.O_CREATE|os.O_EXCL, privateFile)
		if err == nil || !errors.Is(err, fs.ErrExist) || i == maxParts {
			return part, err
		}
	}
}

// relative is a file's path within the root.
func (f *Folder) relative(file *os.File) string {
	path, err := filepath.Rel(f.root.Name(), file.Name())
	if err != nil {
		return file.Name()
	}
	return path
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// syncFolders makes durable that a file is in a folder, and the folder in those above.
func (f *Folder) syncFolders(path string) error {
	for {
		dir, err := f.root.Open(path)
		if err != nil {
			return err
		}
		if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
			return fmt.Errorf("sync %s: %w", path, err)
		}
		if path == "." {
			return nil
		}
		path = filepath.Dir(path)
	}
}

// Get is Place's.
func (f *Folder) Get(_ context.Context, name string) (io.ReadCloser, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	info, err := f.root.Lstat(filepath.FromSlash(name)) // before it is opened: who opens a pipe waits for its writer
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: %w", name, ErrNotFound)
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, Faultf("%s in %s is not a file", name, f)
	}
	return f.root.Open(filepath.FromSlash(name))
}

// Stat is Place's.
func (f *Folder) Stat(_ context.Context, name string) (Object, error) {
	if err := CheckName(name); err != nil {
		return Object{}, err
	}
	info, err := f.root.Lstat(filepath.FromSlash(name))
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return Object{}, fmt.Errorf("%s: %w", name, ErrNotFound)
	}
	if err != nil {
		return Object{}, err
	}
	return Object{Name: name, Bytes: info.Size(), Written: info.ModTime()}, nil
}

// List is Place's. What is no object is passed over.
func (f *Folder) List(ctx context.Context, prefix string, each func(Object) error) error {
	from := "."
	if at := strings.LastIndexByte(prefix, '/'); at > 0 {
		from = prefix[:at]
	}
	return fs.WalkDir(f.root.FS(), from, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !e.Type().IsRegular() || !strings.HasPrefix(path, prefix) || CheckName(path) != nil:
			return nil
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return each(Object{Name: path, Bytes: info.Size(), Written: info.ModTime()})
	})
}

// lostAndFound is a folder that file systems have.
const lostAndFound = "lost+found"

// Any is Place's. What a Put has left that was cut off counts for nothing.
func (f *Folder) Any(context.Context) (string, error) {
	entries, err := fs.ReadDir(f.root.FS(), ".")
	for _, e := range entries {
		if name := e.Name(); name != lostAndFound && !isPart(name) {
			return name, nil
		}
	}
	return "", err
}

// isPart says whether a file is one that Put makes, by its path.
func isPart(path string) bool {
	of, ok := strings.CutSuffix(path, partSuffix)
	dot := max(strings.LastIndexByte(of, '.'), 0)
	_, err := strconv.ParseUint(strings.TrimPrefix(of[dot:], "."), 10, 32)
	return ok && err == nil && CheckName(of[:dot]) == nil
}

// Delete is Place's.
func (f *Folder) Delete(_ context.Context, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	return ignoreMissing(f.root.Remove(filepath.FromSlash(name)))
}

// Clean is Place's.
func (f *Folder) Clean(ctx context.Context) error {
	return fs.WalkDir(f.root.FS(), ".", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return ignoreMissing(err)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case e.Type().IsRegular() && isPart(path):
			return ignoreMissing(f.root.Remove(path))
		}
		return nil
	})
}
