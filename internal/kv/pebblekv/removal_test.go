package pebblekv

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// removed is what a file's size was at each rest while it was removed; -1 once it has gone.
func removed(t *testing.T, fs vfs.FS, name string) (sizes []int64) {
	t.Helper()
	d := gentleDisk{fs, func(rest time.Duration) {
		if rest <= 0 || rest > maxRest {
			t.Errorf("a rest of %v", rest)
		}
		sizes = append(sizes, sizeLeft(fs, name))
	}}
	if err := d.Remove(name); err != nil {
		t.Fatal(err)
	}
	if _, err := fs.Stat(name); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is there: %v", name, err)
	}
	return sizes
}

// sizeLeft is the size of a file that may have lost its name, but not the process that has it open; -1 if it has gone.
func sizeLeft(fs vfs.FS, name string) int64 {
	if info, err := fs.Stat(name); err == nil {
		return info.Size()
	}
	open, _ := filepath.Glob("/proc/self/fd/*")
	for _, file := range open {
		if where, err := os.Readlink(file); err == nil && where == name+" (deleted)" {
			if info, err := os.Stat(file); err == nil {
				return info.Size()
			}
		}
	}
	return -1
}

// A large file goes by steps, each followed by a rest, and there are no more of them than that the disk counts as slow.
func TestRemoval(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux says that nobody else has a file open, and elsewhere it goes at once")
	}
	for _, size := range []int64{0, 1000, removedAtOnce, 7*removedAtOnce + 1, 3 * maxRemovalSteps * removedAtOnce} {
		name := filepath.Join(t.TempDir(), "000001.log")
		must(os.WriteFile(name, nil, 0o600))
		must(os.Truncate(name, size))
		sizes := removed(t, vfs.Default, name)
		if len(sizes) > maxRemovalSteps+1 || sizes[len(sizes)-1] != -1 {
			t.Errorf("of %d bytes are left: %d", size, sizes)
		}
		before, step := size, max(removedAtOnce, size/maxRemovalSteps)
		for _, after := range sizes {
			if before-max(after, 0) > step {
				t.Errorf("of %d bytes %d went at once", size, before-after)
			}
			before = after
		}
	}
}

// What has another name stays under it, and what is not the store's is none of ours.
func TestRemovalOfOneName(t *testing.T) {
	dir := t.TempDir()
	content := bytes.Repeat([]byte{1}, 3*removedAtOnce)
	for _, name := range []string{"000001.sst", "000002.log", "MANIFEST"} {
		name, other := filepath.Join(dir, name), filepath.Join(dir, name+".copy")
		must(os.WriteFile(name, content, 0o600))
		must(os.Link(name, other))
		if sizes := removed(t, vfs.Default, name); len(sizes) > 1 {
			t.Errorf("%s went by steps: %d", name, sizes)
		}
		if left, err := os.ReadFile(other); err != nil || !bytes.Equal(left, content) {
			t.Errorf("%s: %d bytes are left, %v", other, len(left), err)
		}
	}
}

// A copy that is made of links, or read, while a file goes is whole or is not made at all.
func TestRemovalDuringCopies(t *testing.T) {
	content := bytes.Repeat([]byte{1}, 8*removedAtOnce)
	t.Run("links", func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "000001.sst")
		must(os.WriteFile(name, content, 0o600))
		copies := 0
		d := gentleDisk{vfs.Default, func(time.Duration) {
			copies++
			other := fmt.Sprint(name, ".copy", copies)
			if err := os.Link(name, other); err != nil {
				return // it has gone
			}
			if info, err := os.Stat(other); err != nil || info.Size() != int64(len(content)) {
				t.Errorf("a link holds %v, %v", info, err)
			}
		}}
		must(d.Remove(name))
		if copies < 2 {
			t.Errorf("%d rests", copies)
		}
	})
	t.Run("readers", func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "000001.sst")
		must(os.WriteFile(name, content, 0o600))
		reader, err := os.Open(name)
		must(err)
		defer reader.Close()
		removed(t, vfs.Default, name)
		if left, err := io.ReadAll(reader); err != nil || !bytes.Equal(left, content) {
			t.Errorf("who had it open read %d bytes of %d, %v", len(left), len(content), err)
		}
	})
}

// A disk in memory has nothing to shorten, and a store that closes does not rest.
func TestRemovalInMemory(t *testing.T) {
	fs := vfs.NewMem()
	file, err := fs.Create("000001.sst", vfs.WriteCategoryUnspecified)
	must(err)
	_, err = file.Write(make([]byte, 3*removedAtOnce))
	must(err)
	must(file.Close())
	if sizes := removed(t, fs, "000001.sst"); len(sizes) != 1 {
		t.Errorf("it went by steps: %d", sizes)
	}
	quit := make(chan struct{})
	close(quit)
	restUntil(quit)(time.Hour)
}
