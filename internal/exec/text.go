package exec

import (
	"bytes"
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/keystring"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/planner"
	"github.com/ebbdb/ebb/internal/storage"
)

// textMatch holds the documents that have a word that is searched for against all of the search.
type textMatch struct {
	plan  *planner.TextMatch
	stats *Stats
	in    working
}

func (n *textMatch) work(r *reading, m *Member) (status, error) {
	if s, err := n.in.work(r, m); s != advanced || err != nil {
		return s, err
	}
	ok, err := n.plan.Index.Text().Matches(n.plan.Query, m.Doc)
	if ok && err == nil {
		return advanced, nil
	}
	n.stats.Rejected++
	return needTime, err
}

func (n *textMatch) park()        { n.in.park() }
func (n *textMatch) close() error { return n.in.close() }

// textOr adds up the scores of the words of each record. It has to see them all before it gives the first; what it keeps are
// ids and scores, and it fetches one record after the other.
type textOr struct {
	plan   *planner.TextOr
	stats  *Stats
	inputs []working
	at     int // the input that is read

	places map[string]int // of records in found
	found  []scoredID
	next   int
	reader *storage.Reader
	// parked says that what is found may have changed since.
	parked bool
}

// scoredID is a record with its score, and a key that the index has for it.
type scoredID struct {
	id    string
	key   []byte
	score float64
}

// scoredOverhead is about what a record that is found takes besides its id and key.
const scoredOverhead = 96

func (n *textOr) work(r *reading, m *Member) (status, error) {
	if n.at < len(n.inputs) {
		return needTime, n.add(r)
	}
	if n.next == len(n.found) {
		return ended, nil
	}
	at := n.found[n.next]
	n.next++
	m.Score, m.Scored = at.score, true
	return n.fetch(r, at, m)
}

// add takes one entry of one word's.
func (n *textOr) add(r *reading) error {
	var m Member
	switch s, err := n.inputs[n.at].work(r, &m); {
	case err != nil || s == needTime:
		return err
	case s == ended:
		n.at++
		return n.inputs[n.at-1].close()
	}
	n.stats.DupsTested++
	if i, again := n.places[string(m.ID)]; again {
		n.stats.DupsDropped++
		n.found[i].score += m.Score
		return nil
	}
	held := len(m.ID) + len(m.Entry.Key) + scoredOverhead
	if err := r.remember(held); err != nil {
		return err
	}
	if n.stats.Held += int64(held); n.stats.Held > maxDedupBytes {
		return mongoerr.New(mongoerr.QueryExceededMemoryLimitNoDiskUseAllowed, "a text search needs more than %d bytes to add up scores", maxDedupBytes)
	}
	id := string(m.ID)
	n.places[id] = len(n.found)
	n.found = append(n.found, scoredID{id, bytes.Clone(m.Entry.Key), m.Score})
	return nil
}

func (n *textOr) fetch(r *reading, at scoredID, m *Member) (s status, err error) {
	if n.reader == nil {
		if n.reader, err = r.reader(); err != nil {
			return ended, err
		}
	}
	scan := n.plan.Inputs[0].(*planner.IndexScan)
	rec, there, err := n.reader.GetByEntry(scan.Index.Definition, at.key, storage.RecordID(at.id))
	if !there || err != nil {
		return needTime, err
	}
	n.stats.Docs++
	r.seen.Docs++
	m.Record = rec
	ok, err := r.matches(n.plan.Filter, rec.Doc)
	if ok && err == nil && n.parked {
		ok, err = n.stillThere(rec.Doc)
	}
	if ok && err == nil {
		return advanced, nil
	}
	n.stats.Rejected++
	return needTime, err
}

// stillThere says whether a document has any of the words; it did when they were looked up.
func (n *textOr) stillThere(doc bson.Doc) (bool, error) {
	scan := n.plan.Inputs[0].(*planner.IndexScan)
	var k index.Keys
	if err := scan.Index.Keys(doc, &k); err != nil {
		return false, err
	}
	for _, in := range n.plan.Inputs {
		span := in.(*planner.IndexScan).Ranges[0]
		for i := range k.Len() {
			if key := string(k.Key(i)); key >= string(span.Low) && key < string(span.High) {
				return true, nil
			}
		}
	}
	return false, nil
}

func (n *textOr) park() {
	n.reader, n.parked = nil, true
	for _, in := range n.inputs[n.at:] {
		in.park()
	}
}

func (n *textOr) close() (err error) {
	n.reader = nil
	for _, in := range n.inputs {
		if e := in.close(); err == nil {
			err = e
		}
	}
	return err
}

// wordScore is the score in a key of a text index, behind the word that all keys of the span begin with.
func wordScore(key []byte, span planner.Range) (float64, error) {
	score, _, err := keystring.Decode(nil, key[len(span.Low):], nil, 1)
	if err != nil {
		return 0, err
	}
	return score[0].AsDouble(), nil
}

// withScore sets the score of what a search of a text index has found as metadata.
type withScore struct {
	op      *Op
	records *Records
	in      Iterator
}

// WithScore is in, which gives the records one by one: with their scores as metadata where plan finds such.
func WithScore(op *Op, plan *planner.Plan, records *Records, in Iterator) Iterator {
	if !plan.Scores() {
		return in
	}
	return &withScore{op, records, in}
}

func (w *withScore) Next(ctx context.Context) (bson.Doc, error) {
	doc, err := w.in.Next(ctx)
	if doc == nil || err != nil {
		return nil, err
	}
	w.op.Meta.Clear()
	if score, ok := w.records.Score(); ok {
		w.op.Meta.Set("textScore", bson.Double(score))
	}
	return doc, nil
}

func (w *withScore) Close() error { return w.in.Close() }
