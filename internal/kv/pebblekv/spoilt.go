package pebblekv

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// spoilt are blocks of tables whose checksums were wrong. Pebble looks for the one bit that would make such a block whole, which
// takes a processor for about a second, each time that somebody needs it: it is read once, and refused from then on.
type spoilt struct {
	any atomic.Bool
	mu  struct {
		sync.Mutex
		blocks map[spoiltBlock]bool
	}
}

type spoiltBlock struct {
	file   string
	offset int64
}

// maxSpoilt bounds how many are known; others are slow.
const maxSpoilt = 100_000

// blockText is how Pebble tells of a block: "block 1234/5678: …".
var blockText = regexp.MustCompile(`block (\d+)/\d+: `)

// note remembers the block that an error of Pebble's tells of.
func (s *spoilt) note(info pebble.DataCorruptionInfo) {
	found := blockText.FindStringSubmatch(fmt.Sprint(info.Details))
	if found == nil {
		return
	}
	offset, err := strconv.ParseInt(found[1], 10, 64)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.blocks == nil {
		s.mu.blocks = map[spoiltBlock]bool{}
	}
	if len(s.mu.blocks) < maxSpoilt {
		s.mu.blocks[spoiltBlock{filepath.Base(info.Path), offset}] = true
		s.any.Store(true)
	}
}

func (s *spoilt) has(file string, offset int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.blocks[spoiltBlock{file, offset}]
}

// spoiltError is a Pebble's error of something damaged.
type spoiltError spoiltBlock

func (e spoiltError) Error() string {
	return fmt.Sprintf("%s: block %d/?: checksum mismatch, as before", e.file, e.offset)
}

func (e spoiltError) Is(target error) bool { return target == pebble.ErrCorruption }

// spoiltDisk refuses spoilt blocks.
type spoiltDisk struct {
	vfs.FS
	spoilt *spoilt
}

func (d spoiltDisk) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	file, err := d.FS.Open(name, o...)
	if err != nil || !strings.HasSuffix(name, ".sst") {
		return file, err
	}
	return &spoiltFile{file, d.PathBase(name), d.spoilt}, nil
}

func (d spoiltDisk) Unwrap() vfs.FS { return d.FS }

type spoiltFile struct {
	vfs.File
	name   string
	spoilt *spoilt
}

func (f *spoiltFile) ReadAt(p []byte, offset int64) (int, error) {
	if f.spoilt.any.Load() && f.spoilt.has(f.name, offset) {
		return 0, spoiltError{f.name, offset}
	}
	return f.File.ReadAt(p, offset)
}

// checkOptions names the file when what Pebble wrote of its options cannot be read. Pebble opens no store then, and nothing else
// is lost with it.
func checkOptions(disk vfs.FS, dir string, o *pebble.Options) error {
	names, err := disk.List(dir)
	if err != nil {
		return fmt.Errorf("list %s: %w", dir, err)
	}
	latest, last := "", uint64(0)
	for _, name := range names {
		text, ok := strings.CutPrefix(name, "OPTIONS-")
		if number, err := strconv.ParseUint(text, 10, 64); ok && err == nil && number >= last {
			latest, last = name, number
		}
	}
	if latest == "" {
		return nil
	}
	text, err := readAll(disk, disk.PathJoin(dir, latest))
	if err != nil {
		return fmt.Errorf("read %s: %w", latest, err)
	}
	o = o.Clone()
	o.EnsureDefaults()
	if err := o.CheckCompatibility(dir, text); err != nil {
		reason := []rune(err.Error())
		return fmt.Errorf("%s is damaged, or of another version: %q. It holds nothing but how the store was opened last: move it away to start without it",
			latest, string(reason[:min(len(reason), maxReason)]))
	}
	return nil
}

// maxReason bounds what is said of a damaged file.
const maxReason = 200

func readAll(disk vfs.FS, path string) (string, error) {
	file, err := disk.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	if info.Size() > maxOptions {
		return "", fmt.Errorf("%d bytes: %w", info.Size(), fs.ErrInvalid)
	}
	b := make([]byte, info.Size())
	_, err = file.ReadAt(b, 0)
	return string(b), err
}

// maxOptions bounds what is read of a small file.
const maxOptions = 1 << 20
