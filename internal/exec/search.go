package exec

import (
	"context"
	"errors"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fulltext"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Searching is the leaf of $search and $searchMeta. At the first Next it shows all documents of the collection to the search, in one view. Then
// it reads those that were found one by one, in the order of their scores: in the same view for as long as it is not parked, and later as they
// are then, without those that are gone.
type Searching struct {
	op     *Op
	name   string
	search *fulltext.Search
	scan   func(context.Context) (Iterator, error)
	in     Iterator // the collection; nil when it is through
	src    Source
	meta   bool
	looked bool
	done   bool
	held   holding
	buf    []byte
}

// OpenSearch begins a search for a stage of the name among the documents that scan opens, which are those of src. It gives those that are found, or
// with meta what is known of all of them.
func OpenSearch(ctx context.Context, op *Op, name string, search *fulltext.Search, scan func(context.Context) (Iterator, error), src Source, meta bool) (*Searching, error) {
	in, err := scan(ctx)
	if err != nil {
		return nil, err
	}
	return &Searching{op: op, name: name, search: search, scan: scan, in: in, src: src, meta: meta, held: holding{op: op}}, nil
}

// SearchMeta sets $$SEARCH_META for the stages of op, and those inside of them.
func (op *Op) SearchMeta(d bson.Doc) {
	if op.Env == nil {
		op.Env = op.newEnv()
	}
	op.Env.SearchMeta = d.Value().Clone()
}

// Next implements Iterator.
func (s *Searching) Next(ctx context.Context) (bson.Doc, error) {
	if s.done {
		return nil, nil
	}
	if !s.looked {
		s.looked = true
		if err := s.look(ctx); err != nil {
			s.end()
			return nil, err
		}
	}
	if !s.meta {
		return s.next(ctx)
	}
	s.op.Meta.Clear()
	s.end()
	return s.op.Env.SearchMeta.Doc(), nil
}

// look shows the search what there is, twice where what is found depends on what all documents hold.
func (s *Searching) look(ctx context.Context) error {
	for {
		if err := s.show(ctx); err != nil {
			return err
		}
		if !s.search.Again() {
			break
		}
		in, err := s.scan(ctx)
		if err != nil {
			return err
		}
		s.in = in
	}
	if err := s.search.Finish(); err != nil {
		return err
	}
	s.op.SearchMeta(s.search.Meta())
	return interrupted(ctx)
}

// show shows the search each document.
func (s *Searching) show(ctx context.Context) error {
	in := s.in
	s.in = nil
	err := Each(ctx, in, func(d bson.Doc) error {
		n, err := s.search.Add(d)
		if err != nil {
			return err
		}
		return s.held.hold(ctx, int64(n), func() error {
			return mongoerr.New(mongoerr.QueryExceededMemoryLimitNoDiskUseAllowed, "Exceeded memory limit for %s, which cannot spill", s.name)
		})
	})
	return errors.Join(err, in.Close())
}

// next is the next result that is still there.
func (s *Searching) next(ctx context.Context) (bson.Doc, error) {
	for {
		if err := interrupted(ctx); err != nil {
			return nil, err
		}
		id, ok := s.search.Next()
		if !ok {
			s.end()
			return nil, nil
		}
		reader, err := s.src.Reader(ctx)
		if err != nil {
			return nil, err
		}
		rec, ok, err := reader.GetByID(id)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if err := s.op.carry(ctx, len(rec.Doc)); err != nil {
			return nil, err
		}
		s.buf = append(reusable(s.buf)[:0], rec.Doc...)
		doc, known := s.search.Result(s.buf)
		if doc == nil {
			continue // the document no longer has what was found
		}
		s.tell(known)
		return doc, nil
	}
}

// tell sets what is known of a result as its metadata.
func (s *Searching) tell(known fulltext.Metadata) {
	m := &s.op.Meta
	m.Clear()
	m.Set("searchScore", bson.Double(known.Score))
	m.Set("score", bson.Double(known.Score))
	for _, k := range []struct {
		name  string
		value bson.Value
	}{
		{"searchHighlights", known.Highlights}, {"searchScoreDetails", known.Details}, {"scoreDetails", known.Details},
		{"searchSequenceToken", known.SequenceToken}, {"searchRootDocumentId", known.Root},
	} {
		if !k.value.IsMissing() {
			m.Set(k.name, k.value)
		}
	}
}

func (s *Searching) end() {
	s.done, s.search = true, nil
	s.held.empty()
}

// Close implements Iterator.
func (s *Searching) Close() error {
	s.end()
	if s.in == nil {
		return nil
	}
	in := s.in
	s.in = nil
	return in.Close()
}
