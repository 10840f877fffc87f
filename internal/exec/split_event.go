package exec

import (
	"context"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/pipeline"
	"github.com/ebbdb/ebb/internal/resumetoken"
)

// maxEventSize is how large an event may be that is not split: what is left is for the rest of the reply.
const maxEventSize = MaxDocumentSize - 8<<10

// splitStage is $changeStreamSplitLargeEvent. An event that is too large becomes several parts, each with some of its fields, the
// small ones first, so that there are as few parts as can be.
type splitStage struct {
	op    *Op
	stage *pipeline.SplitLargeEvent
	in    Iterator

	fields []eventField // of the event at hand that are to be given
	ends   []int        // where the parts' fields end among them
	part   int          // the next
	token  resumetoken.Token
	past   bool // the part behind which the stream was resumed is passed
}

type eventField struct {
	key   string
	value bson.Value
}

// size is what the field takes in a document.
func (f *eventField) size() int { return 1 + len(f.key) + 1 + len(f.value.Data) }

func (s *splitStage) Next(ctx context.Context) (bson.Doc, error) {
	if s.part < len(s.ends) {
		return s.give()
	}
	doc, err := s.in.Next(ctx)
	if doc == nil || err != nil {
		return nil, err
	}
	skip := 0
	if s.stage.HasAfter && !s.past {
		s.past = true
		if resumetoken.Compare(s.op.changes.token, s.stage.After.Part(-1)) == 0 {
			if len(doc) <= maxEventSize {
				return nil, mongoerr.New(mongoerr.ChangeStreamFatalError, "Attempted to resume from a split event fragment, but the event in the resumed stream was not large enough to be split")
			}
			skip = s.stage.After.Fragment + 1
		}
	}
	if len(doc) <= maxEventSize {
		return doc, nil
	}
	if err := s.split(doc); err != nil {
		return nil, err
	}
	if s.part = skip; s.part >= len(s.ends) {
		if skip == len(s.ends) { // the last part was had
			return s.Next(ctx)
		}
		return nil, mongoerr.New(mongoerr.ChangeStreamFatalError, "Attempted to resume from a split event, but the resumed stream produced a different split. "+
			"Ensure that the pipeline used to resume is the same as the original")
	}
	s.op.changes.count.Split.Add(1)
	return s.give()
}

// split decides which fields go into which part.
func (s *splitStage) split(doc bson.Doc) error {
	s.fields, s.ends, s.token = s.fields[:0], s.ends[:0], s.op.changes.token
	for it := doc.Iter(); it.Next(); {
		if it.Key() != "_id" {
			s.fields = append(s.fields, eventField{it.Key(), it.Value()})
		}
	}
	if len(s.fields) == 0 {
		return mongoerr.New(7182502, "Cannot split an empty event or an event containing solely '_id' field")
	}
	slices.SortStableFunc(s.fields, func(a, b eventField) int {
		if n := a.size() - b.size(); n != 0 {
			return n
		}
		return strings.Compare(a.key, b.key)
	})
	limit := maxEventSize - len(s.token.Doc())
	for i := 0; i < len(s.fields); {
		size := len(s.head(len(s.ends), 0).Doc()) + s.fields[i].size()
		for i++; i < len(s.fields) && size+s.fields[i].size() <= limit; i++ {
			size += s.fields[i].size()
		}
		if size > limit {
			return mongoerr.New(7182500, "Splitting change event failed: fragment size %d is greater than maximum allowed fragment size %d", size, limit)
		}
		s.ends = append(s.ends, i)
	}
	return nil
}

// head begins a part.
func (s *splitStage) head(part, of int) *bson.Builder {
	return bson.Build().Document("_id", s.token.Part(part).Doc()).Object("splitEvent").Int32("fragment", int32(part+1)).Int32("of", int32(of)).End()
}

// give is the next part.
func (s *splitStage) give() (bson.Doc, error) {
	b := s.head(s.part, len(s.ends))
	from := 0
	if s.part > 0 {
		from = s.ends[s.part-1]
	}
	for _, f := range s.fields[from:s.ends[s.part]] {
		b.Value(f.key, f.value)
	}
	changes := s.op.changes
	changes.moveTo(s.token.Part(s.part))
	s.part++
	changes.parting = s.part < len(s.ends)
	return b.Doc(), nil
}

func (s *splitStage) Close() error { return s.in.Close() }
