package ebb

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/dbpath"
	"github.com/ebbdb/ebb/internal/parameter"
	"github.com/ebbdb/ebb/internal/ttl"
)

// HoldFile is a file in a data directory that holds expiry from the next start on: who copies or restores a directory writes it. It has a
// value of --ttlHoldAt: a date, "lastWrite", or "release". The start keeps the hold in the store, where a restart does not end it, and removes the file.
const HoldFile = "ttlHoldAt"

// HoldDirectory has a server that is started on a data directory hold expiry at a time: what was alive then can be read, and nothing is
// deleted, until somebody releases it. Nobody may have the directory open.
func HoldDirectory(path string, at time.Time) error {
	return dbpath.WriteNote(path, HoldFile, at.UTC().Format(time.RFC3339Nano))
}

// ReleaseDirectory has a server that is started on a data directory let expiry go on, also where the store holds it. Nobody may have the
// directory open.
func ReleaseDirectory(path string) error { return dbpath.WriteNote(path, HoldFile, ttl.HoldRelease) }

// readHold takes up the hold that the data directory asks for. What the command line says stands above it.
func (f *foundation) readHold(s *Server) error {
	if s.dir == nil {
		return nil
	}
	value, there, err := s.dir.Note(HoldFile)
	if err != nil || !there {
		return err
	}
	name := filepath.Join(s.dir.Path(), HoldFile)
	if _, given := s.opts.Parameters[ttl.HoldName]; given {
		s.log.For("TTL").Warn("The data directory asks for expiry to be held, and the command line says something else, which stands", "file", name, "value", value)
		return nil
	}
	if _, err := f.params.Set(ttl.HoldName, bson.String(value), parameter.Startup); err != nil {
		return fmt.Errorf("%s says when expiry is held: %w", name, err)
	}
	if value == ttl.HoldRelease {
		s.log.For("TTL").Warn("The data directory asks for expiry to be released", "file", name)
		return nil
	}
	s.log.For("TTL").Warn("The data directory asks for expiry to be held", "file", name, "value", value)
	return nil
}

// noteHold is called when the store holds expiry, or does not: then the file has nothing more to say.
func (d *database) noteHold(s *Server) error {
	if at, held := d.store.HeldAt(); held {
		s.log.Startup().Warn("Expiry is held: nothing that has expired since then is hidden or deleted until it is released by setParameter ttlHold: \"release\"",
			"holdAt", time.UnixMilli(at).UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	d.commands.RecordHold()
	if s.dir == nil {
		return nil
	}
	return s.dir.RemoveNote(HoldFile)
}
