package storage

import (
	"errors"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Near the end of the disk nothing is added: no document, no longer version of one, no collection, no index. What lets data go
// never asks.

// Room says whether anything may be added, in MongoDB's words.
func (s *Store) Room() error { return s.room(0) }

// room says whether so many bytes may be added, in MongoDB's words.
func (s *Store) room(bytes int) error { return explainSpace(s.engine.Room(bytes)) }

// explainSpace makes an engine's error about room MongoDB's, and leaves others as they are.
func explainSpace(err error) error {
	if err == nil {
		return nil // before space is allocated: a writer asks for each document
	}
	var space *kv.SpaceError
	if errors.As(err, &space) {
		return mongoerr.New(mongoerr.OutOfDiskSpace, "%s", space.Error())
	}
	return err
}
