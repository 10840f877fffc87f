package pebblekv

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/inspect"
)

// failure remembers the first error after which the store cannot keep its promises, and the first table that was found damaged,
// since when it takes no more writes: what they build on may be what cannot be read.
type failure struct {
	log    *slog.Logger
	hook   func(error)
	err    atomic.Pointer[error]
	damage atomic.Pointer[string]
	spoilt inspect.Spoilt
	stuck  atomic.Bool // a goroutine of Pebble's has stopped for good, and may hold its locks

	mu struct {
		sync.Mutex
		files map[string]bool // damaged ones that were logged
	}
}

func (f *failure) set(err error) {
	if !f.err.CompareAndSwap(nil, &err) {
		return
	}
	f.log.Error("store: failed; no more writes are taken", "err", err)
	if f.hook != nil {
		go f.hook(err) // not here: the caller may hold locks of Pebble's
	}
}

// get is nil while all is well, or something stored is damaged.
func (f *failure) get() error {
	if err := f.err.Load(); err != nil {
		return fmt.Errorf("%w: %w", errFailed, *err)
	}
	return nil
}

// damaged notes a damaged file. Each is logged once.
func (f *failure) damaged(info pebble.DataCorruptionInfo) {
	f.spoilt.Note(filepath.Base(info.Path), info.Details)
	text := fmt.Sprintf("%s: %v", info.Path, info.Details)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.files[info.Path] || len(f.mu.files) >= maxDamagedFiles {
		return
	}
	if f.mu.files == nil {
		f.mu.files = map[string]bool{}
	}
	f.mu.files[info.Path] = true
	f.log.Error("store: a file is damaged. What needs it fails; all else can be read, and no more writes are taken. See 'ebb check' and 'ebb salvage'", "damage", text)
	f.damage.CompareAndSwap(nil, &text)
}

// maxDamagedFiles bounds how many are logged.
const maxDamagedFiles = 1000

// writable is nil while new writes may come in.
func (f *failure) writable() error {
	if err := f.get(); err != nil {
		return err
	}
	return f.sound()
}

// sound is nil while nothing is known to be damaged.
func (f *failure) sound() error {
	if text := f.damage.Load(); text != nil {
		return fmt.Errorf("%w, because a file of it is damaged: %s", kv.ErrReadOnly, *text)
	}
	return nil
}

// reading wraps an error of a read of Pebble's. One that met something damaged names the file.
func reading(what string, err error) error {
	switch info := pebble.ExtractDataCorruptionInfo(err); {
	case info != nil:
		return fmt.Errorf("pebblekv: %s: %w: %s: %v", what, kv.ErrCorrupt, info.Path, info.Details)
	case pebble.IsCorruptionError(err):
		return fmt.Errorf("pebblekv: %s: %w: %w", what, kv.ErrCorrupt, err)
	}
	return fmt.Errorf("pebblekv: %s: %w", what, err)
}
