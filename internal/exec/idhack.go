package exec

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/storage"
)

// idHack looks up one document by its _id.
type idHack struct {
	src  Source
	seen *Examined
	id   bson.Value
	done bool
}

func (s *idHack) next(ctx context.Context) (storage.Record, bool, error) {
	if s.done {
		return storage.Record{}, false, nil
	}
	s.done = true
	r, err := s.src.Reader(ctx)
	if err != nil {
		return storage.Record{}, false, err
	}
	rec, ok, err := r.GetByID(s.id)
	if ok {
		s.seen.Keys++
		s.seen.Docs++
	}
	return rec, ok, err
}

func (s *idHack) park()        {}
func (s *idHack) close() error { return nil }
