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
	if err != nil {
		return err
	}
	_, given := s.opts.Parameters[ttl.HoldName]
	if !there {
		return f.holdCopy(s, given)
	}
	name := filepath.Join(s.dir.Path(), HoldFile)
	if given {
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

// holdCopy has expiry held where the data directory is a copy of the one that it was when it was used last: what is alive in it may be just
// what it was copied for.
func (f *foundation) holdCopy(s *Server, given bool) error {
	origin, why := s.dir.Origin()
	switch {
	case origin != dbpath.OriginCopied:
		return nil
	case given:
		s.log.For("TTL").Warn("The data directory is a copy; how expiry is held is as the command line says", "why", why)
		return nil
	}
	s.log.For("TTL").Warn("The data directory is a copy, so expiry is held where its last write was. Where nothing is to be held, start with --ttlHoldAt release", "why", why)
	_, err := f.params.Set(ttl.HoldName, bson.String(ttl.HoldLastWrite), parameter.Startup)
	return err
}

// tellCopiedMember is for the data directory of a member of a set with others that is a copy: nothing tells how old it is, and with it what this member has
// acknowledged since.
func (s *Server) tellCopiedMember() {
	if s.dir == nil {
		return
	}
	if origin, why := s.dir.Origin(); origin == dbpath.OriginCopied {
		s.log.For("REPL").Error("The data directory of this member of a replica set is a copy. If the member has taken part since it was made, this server has to be stopped at once: it has forgotten what it acknowledged, and may help to "+
			"elect a primary that lacks it. Its directory is to be emptied then, and it is added to the set anew. All members may be started on copies of one moment together", "why", why)
	}
}

// noteHold is called when the store holds expiry, or does not: then the file has nothing more to say, and the directory is at home.
func (d *database) noteHold(s *Server) error {
	if at, held := d.store.HeldAt(); held {
		s.log.Startup().Warn("Expiry is held: nothing that has expired since then is hidden or deleted until it is released by setParameter ttlHold: \"release\"",
			"holdAt", time.UnixMilli(at).UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	d.commands.RecordHold()
	if s.dir == nil {
		return nil
	}
	if err := s.dir.RemoveNote(HoldFile); err != nil {
		return err
	}
	s.atHome()
	return nil
}

// atHome notes that the data directory is this one. Where that cannot be done, what was noted before holds.
func (s *Server) atHome() {
	if s.dir == nil {
		return
	}
	if err := s.dir.SetOrigin(); err != nil {
		s.log.For("STORAGE").Warn("It could not be noted which directory this is; a copy of it may not be told apart, or it is taken for one again", "error", err.Error())
		return
	}
	if origin, _ := s.dir.Origin(); origin != dbpath.OriginHere {
		s.log.For("STORAGE").Info("The file system does not tell files apart for good: a copy of the data directory will not be recognised, and its expiry not be held by itself")
	}
}

// HeardPrimary implements member.Server: that primary says whether expiry is held, and not what this member was started with.
func (s memberServer) HeardPrimary() {
	if !s.foundation.expiry.Hold.Forget() {
		return
	}
	s.log.For("TTL").Warn("The replica set has a primary already, which decides whether expiry is held: this member does not hold it")
	s.atHome()
}
