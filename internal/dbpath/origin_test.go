package dbpath

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// claimed is a directory that was used once, and released.
func claimed(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data")
	d, err := Claim(path)
	if err != nil {
		t.Fatal(err)
	}
	if o, why := d.Origin(); o != OriginUnknown {
		t.Errorf("a new directory comes from %v: %s", o, why)
	}
	if err := d.SetOrigin(); err != nil {
		t.Fatal(err)
	}
	if o, _ := d.Origin(); o == OriginUnknown {
		t.Skip("the file system of the temporary directory does not tell files apart for good")
	}
	if err := d.Release(); err != nil {
		t.Fatal(err)
	}
	return path
}

// origin is what a directory says at its next use, which ends in order or not.
func origin(t *testing.T, path string) (Origin, string) {
	t.Helper()
	d, err := Claim(path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.lock.Close()
	return d.Origin()
}

func copyFiles(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(to, 0o700); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries { // over what is there, as cp does
		in, err := os.Open(filepath.Join(from, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out, err := os.Create(filepath.Join(to, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(out, in); err != nil {
			t.Fatal(err)
		}
		info, err := in.Stat()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(out.Name(), info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
		in.Close()
		out.Close()
	}
}

// TestOrigin: a copy is told apart from the directory it is of, and the directory is itself after whatever is done to it as a whole.
func TestOrigin(t *testing.T) {
	path := claimed(t)
	if o, why := origin(t, path); o != OriginHere {
		t.Errorf("the directory itself: %v %s", o, why)
	}
	moved := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.Rename(path, moved); err != nil {
		t.Fatal(err)
	}
	if o, why := origin(t, moved); o != OriginHere {
		t.Errorf("renamed: %v %s", o, why)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(moved, link); err != nil {
		t.Fatal(err)
	}
	if o, why := origin(t, link); o != OriginHere {
		t.Errorf("by a link: %v %s", o, why)
	}
	copied := filepath.Join(t.TempDir(), "copied")
	copyFiles(t, moved, copied)
	if o, why := origin(t, copied); o != OriginCopied || !strings.Contains(why, "was written as another file") {
		t.Errorf("copied: %v %q", o, why)
	}
	// Whoever uses a copy makes it his own, and its copies are copies.
	d, err := Claim(copied)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.SetOrigin(); err != nil {
		t.Fatal(err)
	}
	if err := d.Release(); err != nil {
		t.Fatal(err)
	}
	if o, why := origin(t, copied); o != OriginHere {
		t.Errorf("a copy that was used: %v %s", o, why)
	}
	again := filepath.Join(t.TempDir(), "again")
	copyFiles(t, copied, again)
	if o, _ := origin(t, again); o != OriginCopied {
		t.Errorf("a copy of a copy: %v", o)
	}
}

// TestOriginPutBack: an older copy that is put over the files of the directory itself is recognised, also where no file is made for it.
func TestOriginPutBack(t *testing.T) {
	path, saved := claimed(t), filepath.Join(t.TempDir(), "saved")
	copyFiles(t, path, saved)
	d, err := Claim(path) // it is used, and stopped in order or not
	if err != nil {
		t.Fatal(err)
	}
	if err := d.SetOrigin(); err != nil {
		t.Fatal(err)
	}
	d.lock.Close()
	copyFiles(t, saved, path)
	if o, _ := origin(t, path); o != OriginCopied {
		t.Errorf("put back over it: %v", o)
	}
}

// TestOriginRefused: a note that is not ours is a copy's, and nothing is read of what is no file.
func TestOriginRefused(t *testing.T) {
	for name, spoil := range map[string]func(name string) error{
		"empty": func(name string) error { return os.WriteFile(name, nil, 0o600) },
		"of another": func(name string) error {
			return os.WriteFile(name, []byte("Ebb data directory origin, format 2\n"), 0o600)
		},
		"large":       func(name string) error { return os.WriteFile(name, make([]byte, 1<<20), 0o600) },
		"a directory": func(name string) error { return os.Mkdir(name, 0o700) },
		"a link":      func(name string) error { return os.Symlink("/dev/zero", name) },
	} {
		path := claimed(t)
		file := filepath.Join(path, originFile)
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if o, why := origin(t, path); o != OriginUnknown {
			t.Errorf("%s: without a note it comes from %v: %s", name, o, why)
		}
		if err := spoil(file); err != nil {
			t.Fatal(err)
		}
		if o, why := origin(t, path); o != OriginCopied || !strings.Contains(why, originFile) {
			t.Errorf("%s: %v %q", name, o, why)
		}
	}
}

func TestIdentity(t *testing.T) {
	for _, x := range []struct {
		is, was identity
		other   bool
	}{
		{identity{1, 2, 3}, identity{1, 2, 3}, false},
		{identity{9, 2, 3}, identity{1, 2, 3}, false}, // a number that does not last
		{identity{1, 9, 3}, identity{1, 2, 3}, true},  // a number that was given again
		{identity{1, 2, 9}, identity{1, 2, 3}, true},  // a snapshot of the file system
		{identity{1, 2, 0}, identity{1, 2, 3}, false},
		{identity{9, 0, 0}, identity{1, 2, 0}, true}, // a kernel that does not tell when
		{identity{1, 0, 0}, identity{1, 2, 0}, false},
		{identity{}, identity{1, 2, 3}, false},
	} {
		if got := x.is.isOther(x.was); got != x.other {
			t.Errorf("%v and %v: %v", x.is, x.was, got)
		}
	}
}
