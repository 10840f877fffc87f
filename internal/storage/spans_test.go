package storage

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/testseed"
)

// TestSpans: a cursor that has spans gives what lies in them, in order, and one entry between those that lie apart, however much it reads
// ahead, wherever it is parked, sent elsewhere, and in a transaction with writes of its own.
func TestSpans(t *testing.T) {
	f := newFixture(t)
	f.createIndexes(testNS, `{key: {a: 1}, name: "a"}`)
	for i := range 300 {
		f.must(f.insert(testNS, fmt.Sprintf(`{_id: %d, a: %d}`, i, i*i%97)))
	}
	rng := rand.New(rand.NewPCG(testseed.Of(t), 0))
	check := func(reader *Reader) error {
		for range 60 {
			s := newSpansCase(rng, reader)
			want, err := s.walk(rng, reader, 0, false)
			if err != nil {
				return err
			}
			if !s.leaps {
				s.compareAll(t, reader, want)
			}
			for _, ahead := range []int{0, 1, 4, MaxAhead} {
				for _, parks := range []bool{false, true} {
					got, err := s.walk(rng, reader, ahead, parks)
					if err != nil {
						return err
					}
					if strings.Join(got, "\n") != strings.Join(want, "\n") {
						t.Fatalf("%v, ahead %d, parks %v:\n%s\nwant\n%s", s, ahead, parks, strings.Join(got, "\n"), strings.Join(want, "\n"))
					}
				}
			}
		}
		return nil
	}
	f.read(testNS, check)
	txn, err := f.Begin(context.Background())
	f.must(err)
	defer txn.Rollback()
	w, err := txn.Writer(testNS)
	f.must(err)
	for i := range 60 {
		f.must(insertInto(w, fmt.Sprintf(`{_id: %d, a: %d}`, 1000+i, i*i%101)))
	}
	for i := range 40 {
		rec, there, err := w.GetByID(bson.Int32(int32(i * 7)))
		if f.must(err); there {
			f.must(w.Delete(rec))
		}
	}
	f.must(check(w.Reader))
}

func insertInto(w *Writer, doc string) error {
	_, err := w.Insert(bson.MustDoc(doc))
	return err
}

// spansCase is a scan of some spans of an index.
type spansCase struct {
	index   *index.Definition
	spans   [][2][]byte // in the index's order
	reverse bool
	leaps   bool // past the other entries of some keys
}

func newSpansCase(rng *rand.Rand, reader *Reader) *spansCase {
	s := &spansCase{index: reader.Catalog().Index("a"), reverse: rng.IntN(2) == 0, leaps: rng.IntN(3) == 0}
	var ends []int
	for range 2 + rng.IntN(40) {
		ends = append(ends, rng.IntN(110)-5)
	}
	slices.Sort(ends)
	ends = slices.Compact(ends)
	key := func(i int) []byte { return s.index.AppendKey(nil, 0, bson.Int32(int32(i))) }
	for i := range ends {
		width := 1
		if i+1 < len(ends) && rng.IntN(3) == 0 {
			width = rng.IntN(ends[i+1]-ends[i]) + 1
		}
		s.spans = append(s.spans, [2][]byte{key(ends[i]), key(ends[i] + width)})
	}
	if rng.IntN(5) == 0 {
		s.spans[0][0] = nil
	}
	if rng.IntN(5) == 0 {
		s.spans[len(s.spans)-1][1] = nil
	}
	return s
}

func (s *spansCase) at(i int) (low, high []byte) {
	if s.reverse {
		i = len(s.spans) - 1 - i
	}
	return s.spans[i][0], s.spans[i][1]
}

// walk tells each entry that the cursor gives.
func (s *spansCase) walk(rng *rand.Rand, reader *Reader, ahead int, parks bool) (out []string, err error) {
	spans := &Spans{N: len(s.spans), At: s.at, Ahead: ahead}
	scan := IndexScan{Index: s.index, Low: s.spans[0][0], High: s.spans[len(s.spans)-1][1], Reverse: s.reverse, Ahead: ahead, Spans: spans}
	for parked := true; parked; {
		parked = false
		c, err := reader.ScanIndex(scan)
		if err != nil {
			return nil, err
		}
		var told []RecordID
		for c.Next() {
			e := c.Entry()
			if c.Inside() && len(told) > 0 && told[0].String() != e.RecordID.String() {
				return nil, fmt.Errorf("%s, where %s was told", e.RecordID, told[0])
			}
			out = append(out, fmt.Sprintf("%s span %d inside %v", describeEntry(e), c.Span(), c.Inside()))
			if c.IsOver() {
				break
			}
			told = told[:0]
			for _, id := range c.Upcoming(nil) {
				told = append(told, id.Clone())
			}
			switch {
			case s.leaps && c.Inside() && e.Key[len(e.Key)-1]%4 == 0:
				told = told[:0]
				c.SeekPast(slices.Clone(e.Key))
			case !parks || !c.Inside():
			case rng.IntN(8) == 0:
				spans.First, parked = c.Span(), true
				scan.After = &IndexPosition{Key: slices.Clone(e.Key), RecordID: e.RecordID.Clone()}
			case rng.IntN(8) == 0:
				c.ReadAhead(rng.IntN(2) == 0)
			}
			if parked {
				break
			}
		}
		if err := c.Err(); err != nil {
			return nil, err
		}
		if err := c.Close(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// compareAll wants those that are inside to be all that lie in spans.
func (s *spansCase) compareAll(t *testing.T, reader *Reader, told []string) {
	t.Helper()
	c, err := reader.ScanIndex(IndexScan{Index: s.index, Reverse: s.reverse})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var want, got []string
	for c.Next() {
		e := c.Entry()
		for _, span := range s.spans {
			if (span[0] == nil || string(e.Key) >= string(span[0])) && (span[1] == nil || string(e.Key) < string(span[1])) {
				want = append(want, describeEntry(e))
			}
		}
	}
	for _, line := range told {
		if entry, _, inside := strings.Cut(line, " span "); inside && strings.HasSuffix(line, "true") {
			got = append(got, entry)
		}
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Fatalf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
