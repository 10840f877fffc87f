package pebblekv

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/throttle"
)

// TestRemoval looks at a file's other name, and at who has it open, at each rest: what goes goes as a whole.
func TestRemoval(t *testing.T) {
	dir := t.TempDir()
	content := bytes.Repeat([]byte{1}, 8<<20)
	for name, rests := range map[string]int{"000001.sst": 1, "000002.log": 1, "MANIFEST": 0} {
		name, other := filepath.Join(dir, name), filepath.Join(dir, name+".copy")
		must(os.WriteFile(name, content, 0o600))
		must(os.Link(name, other))
		reader, err := os.Open(name)
		must(err)
		defer reader.Close()
		whole := func() {
			t.Helper()
			if left, err := os.ReadFile(other); err != nil || !bytes.Equal(left, content) {
				t.Errorf("%s: %d bytes are left, %v", other, len(left), err)
			}
		}
		rested := 0
		d := pacedDisk{vfs.Default, func(rest time.Duration) {
			if rested++; rest <= 0 || rest > removalRest.Longest {
				t.Errorf("a rest of %v", rest)
			}
			whole()
		}}
		if err := d.Remove(name); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is there: %v", name, err)
		}
		whole()
		if read, err := io.ReadAll(reader); err != nil || !bytes.Equal(read, content) {
			t.Errorf("who had %s open read %d bytes, %v", name, len(read), err)
		}
		if rested != rests {
			t.Errorf("%s: %d rests, want %d", name, rested, rests)
		}
	}
}

// TestRemovalWhileClosing has a store that closes: it does not rest.
func TestRemovalWhileClosing(t *testing.T) {
	quit := make(chan struct{})
	close(quit)
	throttle.Wait(quit, time.Hour)
}
