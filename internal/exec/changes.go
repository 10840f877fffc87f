package exec

import (
	"bytes"
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/changestream"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/resumetoken"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/logwatch"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// ChangeSource is where a change stream reads: the view that its operation reads in now.
type ChangeSource interface {
	View(ctx context.Context) (*storage.View, error)
}

// Changes is the leaf of a change stream. It reads the oplog behind the place where it stands, skips what it is not about, and makes
// events of the rest. Its end is none: Next looks again once the operation was parked. Of a stream whose watch was told nothing there
// is nothing to read: its place moves on by itself.
type Changes struct {
	op    *Op
	src   ChangeSource
	spec  *changestream.Spec
	watch *logwatch.Watch
	count *changestream.Counts
	seen  *Examined
	turns *turns

	// at is the place of the entry that was read last: all up to there is done with, but for what parts has.
	at oplog.Timestamp
	// reaches is how far back the oplog has to reach, so that nothing is missing behind at.
	reaches oplog.Timestamp
	view    *storage.View // that it reads in; nil when it is parked
	upTo    oplog.Timestamp
	cursor  *storage.RecordCursor
	parts   parts
	resume  resuming
	// entry and index are the place of the operation at hand: that of its entry, and its number in there.
	entry oplog.Timestamp
	index int
	// current is the event of that operation, until the next.
	current changestream.Event
	// ending is the event with which the stream ends, if it is next; done says that it has ended.
	ending      bson.Doc
	endingToken resumetoken.Token
	done        bool

	token     resumetoken.Token
	written   bson.Doc // the token as a document, if isWritten
	isWritten bool
	doc       bson.Builder
	// parting says that parts of the event in doc are still to be given.
	parting bool
}

// resuming is how a stream finds the event behind which it goes on.
type resuming struct {
	on, found bool
	// behind is the token of that event, as a whole.
	behind resumetoken.Token
	// split says that the event itself is given, for $changeStreamSplitLargeEvent to go on within it.
	split bool
}

// OpenChanges begins a stream, and has count tell of it. Close gives the watch back.
func OpenChanges(op *Op, src ChangeSource, spec *changestream.Spec, watch *logwatch.Watch, count *changestream.Counts, seen *Examined) *Changes {
	s := &Changes{op: op, src: src, spec: spec, watch: watch, count: count, seen: seen, turns: op.turns()}
	s.token.Set(spec.Start)
	op.changes = s
	if spec.Expanded {
		count.Expanded.Add(1)
	}
	if !spec.HasStart {
		s.at = watch.Visible()
		s.reaches = s.at
		s.token.Set(resumetoken.HighWaterMark(uint64(s.at) + 1))
		return s
	}
	start := oplog.Timestamp(spec.Start.Time)
	s.at, s.reaches = max(start, 1)-1, start
	if spec.Start.IsEvent {
		s.resume = resuming{on: true, behind: spec.Start.Part(-1), split: spec.Start.Fragment >= 0}
	}
	return s
}

// Token is where a stream goes on behind what was given so far, until it goes on.
func (s *Changes) Token() bson.Doc {
	if !s.isWritten {
		s.written, s.isWritten = s.token.DocOn(s.written), true
	}
	return s.written
}

// moveTo has the stream go on behind a token.
func (s *Changes) moveTo(t resumetoken.Token) {
	s.token.Set(t)
	s.isWritten = false
}

// Tailing says whether events may come behind the end that Next has met.
func (s *Changes) Tailing() bool { return !s.done }

// Next implements Iterator.
func (s *Changes) Next(ctx context.Context) (bson.Doc, error) {
	for {
		if err := interrupted(ctx); err != nil {
			return nil, err
		}
		s.turns.step()
		switch {
		case s.ending != nil:
			doc := s.ending
			s.ending, s.done = nil, true
			s.moveTo(s.endingToken)
			return doc, nil
		case s.done:
			return nil, nil
		}
		event, ok, err := s.next(ctx)
		if err != nil {
			return nil, err
		}
		if event == nil {
			if !ok {
				return nil, nil
			}
			continue
		}
		if doc, err := s.pass(ctx, event); doc != nil || err != nil {
			return doc, err
		}
	}
}

// next is the event of the next operation; nil where it is of no interest. It is not ok at the end of the oplog.
func (s *Changes) next(ctx context.Context) (event *changestream.Event, ok bool, err error) {
	if s.parts.on {
		return s.nextPart(ctx)
	}
	if s.cursor == nil {
		if more, err := s.open(ctx); !more || err != nil {
			return nil, false, err
		}
	}
	if !s.cursor.Next() {
		if err := s.cursor.Err(); err != nil {
			return nil, false, err
		}
		s.at = max(s.at, s.upTo)
		s.stand()
		return nil, false, letGo(&s.cursor)
	}
	rec := s.cursor.Record()
	n, ok := rec.ID.Sequence()
	if !ok || oplog.Timestamp(n) > s.upTo { // another view need not have it yet
		s.at = max(s.at, s.upTo)
		s.stand()
		return nil, false, letGo(&s.cursor)
	}
	s.seen.Docs++
	s.at = oplog.Timestamp(n)
	s.reaches = s.at
	op, ns := changestream.Head(rec.Doc)
	if op == "c" && ns == "admin.$cmd" {
		if _, last, several := changestream.ApplyOps(rec.Doc); several {
			if last { // the entries before it have what is the first part of the transaction
				err = s.beginParts(rec.Doc)
			}
			return nil, true, err
		}
	}
	entry := changestream.EntryOf(rec.Doc, false)
	s.entry, s.index = s.at, 0
	event, err = s.event(&entry, rec.Doc, 0)
	return event, true, err
}

// open begins to read behind at, unless there is nothing to be read.
func (s *Changes) open(ctx context.Context) (more bool, err error) {
	visible := s.watch.Visible()
	if s.watch.Last() <= s.at {
		s.at = max(s.at, visible)
		s.stand()
		return false, nil
	}
	r, err := s.oplog(ctx, visible)
	if err != nil {
		return false, err
	}
	s.cursor, err = r.Scan(storage.RecordScan{After: layout.SequenceID(uint64(s.at))})
	return err == nil, err
}

// oplog is the oplog's reader in the view of now, in which all entries up to visible are; it has to reach back far enough.
func (s *Changes) oplog(ctx context.Context, visible oplog.Timestamp) (*storage.Reader, error) {
	view, err := s.src.View(ctx)
	if err != nil {
		return nil, err
	}
	r, ok := view.Collection(catalog.OplogNS)
	if !ok {
		return nil, historyLost()
	}
	if view == s.view {
		return r, nil
	}
	s.view, s.upTo = view, visible
	return r, s.checkReach(r)
}

// checkReach fails where entries that the stream has not read are gone. Before the first entry of all, the set's initiation, there
// was nothing.
func (s *Changes) checkReach(r *storage.Reader) error {
	c, err := r.Scan(storage.RecordScan{})
	if err != nil {
		return err
	}
	defer c.Close()
	if !c.Next() {
		if err := c.Err(); err != nil {
			return err
		}
		return historyLost()
	}
	first := c.Record()
	if n, _ := first.ID.Sequence(); oplog.Timestamp(n) <= s.reaches {
		return nil
	}
	if o := first.Doc.Lookup("o"); o.Type == bson.TypeObject {
		if msg := o.Doc().Lookup("msg"); msg.Type == bson.TypeString && msg.Str() == "initiating set" {
			return nil
		}
	}
	return historyLost()
}

func historyLost() error {
	return mongoerr.New(mongoerr.ChangeStreamHistoryLost, "Resume of change stream was not possible, as the resume point may no longer be in the oplog.")
}

// stand moves the token up to where the stream stands, at the end of the oplog.
func (s *Changes) stand() {
	if mark := resumetoken.HighWaterMark(uint64(s.at)); resumetoken.Compare(mark, s.token) > 0 {
		s.moveTo(mark)
	}
}

// event is that of an operation; nil where the stream is not about it.
func (s *Changes) event(entry *changestream.Entry, op bson.Doc, index int) (*changestream.Event, error) {
	if !s.current.Read(s.spec, entry, op, index) { // not the event behind which a stream is resumed either: that must be one of its own
		return nil, nil
	}
	if s.resume.on {
		if pass, err := s.surpasses(&s.current); !pass || err != nil {
			return nil, err
		}
	}
	return &s.current, nil
}

// surpasses says whether the event is one behind that with which the stream is resumed.
func (s *Changes) surpasses(event *changestream.Event) (bool, error) {
	r := &s.resume
	order := resumetoken.Compare(event.Token, r.behind)
	if order < 0 && r.behind.FromInvalidate && resumetoken.Compare(event.Token.Invalidate(), r.behind) == 0 {
		order = 0 // and this invalidate was had
	}
	switch {
	case order < 0:
		return false, nil
	case order == 0:
		r.found = true
		if event.Invalidates && !r.behind.FromInvalidate {
			s.endBehind(event)
		}
		if r.split && s.spec.Splits {
			r.on = false
			return true, nil
		}
		if !r.split {
			return false, nil
		}
		fallthrough
	case !r.found:
		return false, mongoerr.New(mongoerr.ChangeStreamFatalError, "cannot resume stream; the resume token was not found. %s", event.Token.Doc())
	}
	r.on = false
	return true, nil
}

// pass gives an event that the stream is about. What it makes of it is nil where that is none for clients.
func (s *Changes) pass(ctx context.Context, event *changestream.Event) (bson.Doc, error) {
	if event.Invalidates {
		s.endBehind(event)
	}
	full, before, err := s.images(ctx, event)
	if err != nil {
		return nil, err
	}
	s.moveTo(event.Token)
	doc := event.Document(s.begin(), s.Token(), full, before)
	return doc, s.op.carry(ctx, len(doc))
}

// endBehind has the stream end behind an event.
func (s *Changes) endBehind(event *changestream.Event) {
	s.ending, s.endingToken = event.Invalidate(bson.Build()), event.Token.Invalidate()
}

// begin is what the next event is built in.
func (s *Changes) begin() *bson.Builder {
	s.doc.Reset(s.doc.Buffer()[:0])
	return &s.doc
}

// Park implements Parker.
func (s *Changes) Park() {
	s.turns.rest()
	s.parts.park()
	s.current = changestream.Event{} // it refers to its entry, which may be large
	_ = letGo(&s.cursor)             // a cursor that is given back early has nothing to say
	s.view = nil
	if s.parting {
		return
	}
	if s.doc.Cap() > largeDocument { // a stream lives long, and most events are small
		s.doc = bson.Builder{}
	}
	if cap(s.written) > largeDocument {
		s.written, s.isWritten = nil, false
	}
	s.op.rest()
}

// Close implements Iterator.
func (s *Changes) Close() error {
	s.Park()
	s.done = true
	s.watch.Close()
	return nil
}

// Inserted is closed when something has happened that the stream is about.
func (s *Changes) Inserted() <-chan struct{} { return s.watch.Next() }

// WithTokens gives what a stream's stages make of its events; their _id, the tokens, must be what they were.
func WithTokens(changes *Changes, in Iterator) Iterator { return &withTokens{changes, in} }

type withTokens struct {
	changes *Changes
	in      Iterator
}

// Next implements Iterator.
func (w *withTokens) Next(ctx context.Context) (bson.Doc, error) {
	doc, err := w.in.Next(ctx)
	if mongoerr.Is(err, mongoerr.BSONObjectTooLarge) {
		w.changes.count.TooLarge.Add(1)
	}
	if doc == nil || err != nil {
		return nil, err
	}
	id := doc.Lookup("_id")
	if id.Type == bson.TypeObject && bytes.Equal(id.Data, w.changes.Token()) {
		return doc, nil
	}
	found := "{}"
	if !id.IsMissing() {
		found = bson.Build().Value("_id", id).Doc().String()
	}
	return nil, mongoerr.New(mongoerr.ChangeStreamFatalError, "Encountered an event whose _id field, which contains the resume token, was modified by the pipeline. "+
		"Modifying the _id field of an event makes it impossible to resume the stream from that point. Only transformations that retain the unmodified _id field are allowed. "+
		"Expected: %s but found: %s", bson.Build().Document("_id", w.changes.Token()).Doc(), found)
}

// Close implements Iterator.
func (w *withTokens) Close() error { return w.in.Close() }
