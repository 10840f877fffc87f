package inspect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Spoilt are blocks of tables whose checksums were wrong, or that could not be read. Pebble looks for the one bit that would make a block
// whole, which takes a processor time that grows with its size, each time that somebody needs it: for one of 8 KiB well below a second, for
// one of a large document 20 seconds a megabyte. So a block is read once, and refused from then on; and that of a large one is known by its
// checksum before Pebble sees it.
type Spoilt struct {
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

// Note remembers the block of a file that an error of Pebble's tells of.
func (s *Spoilt) Note(file string, err error) {
	found := blockText.FindStringSubmatch(fmt.Sprint(err))
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
		s.mu.blocks[spoiltBlock{file, offset}] = true
		s.any.Store(true)
	}
}

func (s *Spoilt) has(file string, offset int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.blocks[spoiltBlock{file, offset}]
}

// HasFile says whether a block of a file is known to be damaged.
func (s *Spoilt) HasFile(file string) bool {
	if !s.any.Load() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for b := range s.mu.blocks {
		if b.file == file {
			return true
		}
	}
	return false
}

// Guard is a table's file whose spoilt blocks are refused.
func (s *Spoilt) Guard(file vfs.File, name string) vfs.File { return &guarded{file, name, s} }

type guarded struct {
	vfs.File
	name   string
	spoilt *Spoilt
}

func (f *guarded) ReadAt(p []byte, offset int64) (int, error) {
	if f.spoilt.any.Load() && f.spoilt.has(f.name, offset) {
		return 0, spoiltError{f.name, offset}
	}
	n, err := f.File.ReadAt(p, offset)
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, syscall.EIO): // nobody reads more of a table than it had when it was made
		return n, damagedBlock{f.name, offset, len(p), err.Error()}
	case err == nil && len(p) > searchedBytes && !isSumRight(p):
		return n, damagedBlock{f.name, offset, len(p), "checksum mismatch"}
	}
	return n, err
}

// searchedBytes is up to which size Pebble looks itself at a block's checksum. All that it reads of a table in larger pieces are blocks with
// their trailers.
const searchedBytes = 16 << 10

// isSumRight says whether a block has the checksum that ends it, of the kind that Ebb's tables have.
func isSumRight(block []byte) bool {
	body, sum := block[:len(block)-4], binary.LittleEndian.Uint32(block[len(block)-4:])
	return checksum(body) == sum
}

// damagedBlock is an error of something damaged, for Pebble, in whose words for a block it is.
type damagedBlock struct {
	file   string
	offset int64
	bytes  int
	why    string
}

func (e damagedBlock) Error() string {
	return fmt.Sprintf("%s: block %d/%d: %s", e.file, e.offset, e.bytes, e.why)
}

func (e damagedBlock) Is(target error) bool { return target == pebble.ErrCorruption }

// spoiltError is one of something damaged, for Pebble.
type spoiltError spoiltBlock

func (e spoiltError) Error() string {
	return fmt.Sprintf("%s: block %d: damaged, as before", e.file, e.offset)
}

func (e spoiltError) Is(target error) bool { return target == pebble.ErrCorruption }
