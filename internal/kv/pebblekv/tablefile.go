package pebblekv

import (
	"bufio"
	"errors"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// tableBufferBytes is how much of a table goes to the disk at once. Pebble writes a table block by block, and each write asks the
// disk for its free space besides (room.fits): with blocks of 8 KiB that was a twelfth of the CPU time of loading documents.
const tableBufferBytes = 128 << 10

// tableDisk gathers what is written to tables.
type tableDisk struct{ vfs.FS }

func (d tableDisk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := d.FS.Create(name, category)
	if err != nil || !isTable(name) {
		return file, err
	}
	return &tableFile{File: file, buffer: bufio.NewWriterSize(file, tableBufferBytes)}, nil
}

// Unwrap is vfs.FS's.
func (d tableDisk) Unwrap() vfs.FS { return d.FS }

// tableFile is a table that is being written, from its beginning to its end. Nobody reads it before it is closed. An error of the
// disk is told at one of the next writes, or at the sync, and at all that come after it.
type tableFile struct {
	vfs.File
	buffer *bufio.Writer
}

// Write is vfs.File's.
func (f *tableFile) Write(p []byte) (int, error) { return f.buffer.Write(p) }

// Sync is vfs.File's.
func (f *tableFile) Sync() error {
	if err := f.buffer.Flush(); err != nil {
		return err
	}
	return f.File.Sync()
}

// SyncData is vfs.File's.
func (f *tableFile) SyncData() error {
	if err := f.buffer.Flush(); err != nil {
		return err
	}
	return f.File.SyncData()
}

// SyncTo is vfs.File's.
func (f *tableFile) SyncTo(length int64) (fullSync bool, err error) {
	if err := f.buffer.Flush(); err != nil {
		return false, err
	}
	return f.File.SyncTo(length)
}

// Close is vfs.File's.
func (f *tableFile) Close() error { return errors.Join(f.buffer.Flush(), f.File.Close()) }
