package ttl

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/ttlchange"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// maxSampleLooked is how many entries or documents are looked at for a sample.
const maxSampleLooked = 1_000_000

// Sampled is a document that would expire by a change of TTLs.
type Sampled struct {
	ID       bson.Value
	Deadline int64
	Rule     *policy.Rule // that it would expire by
}

// WouldExpire are visible documents that have not expired by the TTLs that change, as they are, and would have: those with the earliest deadlines,
// at most so many. It finds them by keys where these tell, and reads documents elsewhere.
func WouldExpire(r *storage.Reader, changed []ttlchange.Changed, limit int) ([]Sampled, error) {
	s := sample{reader: r, changed: changed, limit: limit}
	var unread []*ttlchange.Changed
	for i := range changed {
		t := &changed[i]
		var err error
		if t.Rule.Kind != policy.Series && r.BeforeChange().HasKeysOf(&t.Rule) {
			err = s.walk(t)
		} else {
			unread = append(unread, t)
		}
		if err != nil {
			return nil, fmt.Errorf("ttl: sample of %s: %w", r.Catalog().NS, err)
		}
	}
	if len(unread) > 0 {
		if err := s.read(unread); err != nil {
			return nil, fmt.Errorf("ttl: sample of %s: %w", r.Catalog().NS, err)
		}
	}
	return s.found, nil
}

// sample gathers them, in the order of their deadlines.
type sample struct {
	reader  *storage.Reader
	changed []ttlchange.Changed
	limit   int
	found   []Sampled
	ids     []string // of found
	bytes   int
}

// walk finds what would expire by one TTL, by keys.
func (s *sample) walk(t *ttlchange.Changed) error {
	now := s.reader.View().Now()
	from := int64(-1 << 63)
	if t.Old != nil && t.Old.Seconds >= 0 && t.Old.Cell == t.Rule.Cell { // what has expired already comes first
		from = t.Rule.After(t.Old.Cut(now))
	}
	c, err := s.reader.Dates().Cursor(&t.Rule, from, now, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	for looked, taken := 0, 0; looked < maxSampleLooked && taken < s.limit; looked++ {
		there, err := c.Next()
		if !there || err != nil {
			return err
		}
		id, err := c.ID()
		if err != nil {
			return err
		}
		rec, ok, err := s.reader.Get(id)
		if err != nil {
			return err
		}
		if deadline, _ := t.Rule.Deadline(rec.Doc, rec.Modified); ok && deadline == c.Deadline() && s.take(rec, deadline, &t.Rule) {
			taken++
		}
	}
	return nil
}

// read finds what would expire by any of the TTLs, by documents.
func (s *sample) read(ts []*ttlchange.Changed) error {
	now, looked := s.reader.View().Now(), 0
	err := s.reader.BeforeChange().Each(func(rec storage.Record) error {
		if looked++; looked > maxSampleLooked {
			return errEnough
		}
		for _, t := range ts {
			if deadline, _ := t.Rule.Deadline(rec.Doc, rec.Modified); deadline <= now {
				s.take(rec, deadline, &t.Rule)
			}
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// take takes a document, unless it has expired by the TTLs as they are, or is no earlier than all that are taken.
func (s *sample) take(rec storage.Record, deadline int64, rule *policy.Rule) bool {
	now := s.reader.View().Now()
	for i := range s.changed {
		if old := s.changed[i].Old; old != nil {
			if at, _ := old.Deadline(rec.Doc, rec.Modified); at <= now {
				return false
			}
		}
	}
	i, _ := slices.BinarySearchFunc(s.found, deadline, func(f Sampled, d int64) int { return cmp.Or(cmp.Compare(f.Deadline, d), -1) })
	id := rec.Doc.Lookup("_id")
	if i == s.limit || slices.Contains(s.ids, string(rec.ID)) || s.bytes+len(id.Data) > maxSampleBytes {
		return false
	}
	s.bytes += len(id.Data)
	s.found = slices.Insert(s.found, i, Sampled{id.Clone(), deadline, rule})
	s.ids = slices.Insert(s.ids, i, string(rec.ID))
	if len(s.found) > s.limit {
		s.bytes -= len(s.found[s.limit].ID.Data)
		s.found, s.ids = s.found[:s.limit], s.ids[:s.limit]
	}
	return true
}
