package dbpath

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// listing is the names in dir, so that a test can say that nothing was touched.
func listing(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestClaimMakesMarksAndLocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	d, err := Claim(path)
	if err != nil {
		t.Fatal(err)
	}
	if d.Path() != path || d.Unclean() {
		t.Errorf("path %s, unclean %v", d.Path(), d.Unclean())
	}
	if got := read(t, filepath.Join(path, markerFile)); got != "Ebb data directory, format 1\n" {
		t.Errorf("marker %q", got)
	}
	if got := read(t, filepath.Join(path, lockFile)); strings.TrimSpace(got) != strconv.Itoa(os.Getpid()) || len(got) != maxPIDDigits+1 {
		t.Errorf("lock %q", got)
	}

	_, err = Claim(path)
	var inUse *InUseError
	if !errors.As(err, &inUse) || inUse.PID != os.Getpid() || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Errorf("a second claim: %v", err)
	}

	if err := d.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := Claim(path)
	if err != nil {
		t.Fatal(err)
	}
	if again.Unclean() {
		t.Error("unclean after a release")
	}
	again.lock.Close() // as the kernel does when a process dies
	third, err := Claim(path)
	if err != nil {
		t.Fatal(err)
	}
	defer third.Release()
	if !third.Unclean() {
		t.Error("clean after a death")
	}
}

// What could not be opened is left as unclean as it was found.
func TestAbandon(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	for _, held := range []string{"", "4711\n"} {
		d, err := Claim(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Release(); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(path, lockFile), held)
		for range 2 {
			if d, err = Claim(path); err != nil {
				t.Fatal(err)
			}
			if d.Unclean() != (held != "") {
				t.Errorf("held by %q: unclean %v", held, d.Unclean())
			}
			if err := d.Abandon(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestClaimTakesWhatIsEmptyOrHalfMade(t *testing.T) {
	for _, leftover := range []string{"", lockFile, markerFile + ".tmp", "lost+found"} {
		path := t.TempDir()
		if leftover != "" {
			write(t, filepath.Join(path, leftover), "")
		}
		d, err := Claim(path)
		if err != nil {
			t.Errorf("with %q: %v", leftover, err)
			continue
		}
		if err := d.Release(); err != nil {
			t.Error(err)
		}
	}
}

func TestClaimLeavesForeignDirectoriesAlone(t *testing.T) {
	path := t.TempDir()
	write(t, filepath.Join(path, "WiredTiger"), "WiredTiger")
	write(t, filepath.Join(path, lockFile), "")
	before := listing(t, path)
	if _, err := Claim(path); err == nil || !strings.Contains(err.Error(), `"WiredTiger"`) {
		t.Errorf("claimed: %v", err)
	}
	if after := listing(t, path); after != before {
		t.Errorf("it held %s and holds %s", before, after)
	}
}

func TestClaimRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	write(t, file, "x")
	marked := func(text string) string {
		path := t.TempDir()
		write(t, filepath.Join(path, markerFile), text)
		return path
	}
	for path, want := range map[string]string{
		file:                                     "is not a directory",
		filepath.Join(file, "below"):             "not a directory",
		marked("Ebb data directory, format 2\n"): "has format 2, as EBB says, and this version of Ebb knows up to 1",
		marked("Ebb data directory, format x\n"): "is not the marker of an Ebb data directory",
		marked("something else"):                 "is not the marker of an Ebb data directory",
		marked(""):                               "is not the marker of an Ebb data directory",
	} {
		if _, err := Claim(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
}

func TestClaimNeedsToWrite(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere; cmd/ebb tests it as another user")
	}
	path := t.TempDir()
	if err := os.Chmod(path, 0o500); err != nil {
		t.Fatal(err)
	}
	if _, err := Claim(path); err == nil || !strings.Contains(err.Error(), "is not writable: permission denied") {
		t.Errorf("got %v", err)
	}
	if _, err := Claim(filepath.Join(path, "below")); err == nil || !strings.Contains(err.Error(), "cannot be made: permission denied") {
		t.Errorf("got %v", err)
	}
}
