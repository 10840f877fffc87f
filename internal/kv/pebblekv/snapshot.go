package pebblekv

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/rowcache"
)

// snapshot is a kv.Snapshot.
type snapshot struct {
	view *view
	rows *rowcache.Cache
}

// From so many keys on GetMany walks one iterator instead of looking each key up anew.
const manyKeys = 4

func (s *snapshot) Get(key []byte) ([]byte, error) {
	hash := s.rows.Hash(key)
	if value, ok := s.rows.Get(hash, key, s.view.at); ok {
		return value, nil
	}
	value, closer, err := find(s.view.s, key)
	if err != nil {
		return nil, err
	}
	kept, ok := s.rows.Offer(hash, key, value, s.view.at)
	if !ok {
		kept = append(make([]byte, 0, len(value)), value...)
	}
	return kept, done(closer)
}

// probing asks the filters of the last level too, which Pebble's Get does not: it takes most keys to be somewhere, and then
// they are there. Without them each key that is nowhere costs a block of a table.
var probing = pebble.IterOptions{UseL6Filters: true}

func (s *snapshot) Probe(key []byte) (value []byte, err error) {
	it, err := s.view.s.NewIter(&probing)
	if err != nil {
		return nil, reading("probe", err)
	}
	defer func() {
		if closing := it.Close(); closing != nil {
			err = reading("probe", closing)
		}
	}()
	if !it.SeekPrefixGE(key) || !bytes.Equal(it.Key(), key) {
		return nil, kv.ErrNotFound
	}
	if value, err = it.ValueAndErr(); err != nil {
		return nil, reading("probe", err)
	}
	return append(make([]byte, 0, len(value)), value...), nil
}

// find is the value of key, good until done.
func find(r pebble.Reader, key []byte) ([]byte, io.Closer, error) {
	value, closer, err := r.Get(key)
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		return nil, nil, kv.ErrNotFound
	case err != nil:
		return nil, nil, reading("get", err)
	}
	return value, closer, nil
}

func done(c io.Closer) error {
	if err := c.Close(); err != nil {
		return reading("get", err)
	}
	return nil
}

func (s *snapshot) Ahead(keys, values [][]byte) (int, error) {
	s.rows.GetMany(keys, values, s.view.at)
	return len(keys), nil
}

func (s *snapshot) GetMany(keys [][]byte) ([][]byte, error) {
	values := make([][]byte, len(keys))
	if len(keys) >= manyKeys {
		return values, s.walk(keys, values)
	}
	for i, key := range keys {
		value, err := s.Get(key)
		if err != nil && !errors.Is(err, kv.ErrNotFound) {
			return nil, err
		}
		values[i] = value
	}
	return values, nil
}

// walk looks the keys up in order, where each seek can start from where the last one ended.
func (s *snapshot) walk(keys, values [][]byte) (err error) {
	order := make([]int, len(keys))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return bytes.Compare(keys[a], keys[b]) })
	it, err := s.view.s.NewIter(nil)
	if err != nil {
		return reading("get many", err)
	}
	defer func() {
		if closing := it.Close(); err == nil && closing != nil {
			err = reading("get many", closing)
		}
	}()
	at := seeker{it: it}
	if len(keys) < walkedKeys {
		at.seeks = len(keys)
	}
	for _, i := range order {
		if !at.seek(keys[i]) {
			if it.Error() != nil {
				return nil // Close gives it
			}
			continue
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return reading("get many", err)
		}
		values[i] = append(make([]byte, 0, len(value)), value...)
	}
	return nil
}

// seeker looks up keys that ascend. Where they are neighbours it goes from one to the next, which costs a fraction of a seek;
// else it seeks, with the filters. Now and then it tries whether they have become neighbours.
type seeker struct {
	it      *pebble.Iterator
	walking bool // the iterator was put where it is without filters, and may go on
	seeks   int  // until walking is tried again
	pause   int  // how many there are the next time
	walked  int  // keys since steps was looked at
	steps   int  // of the iterator, those over deleted keys included
}

const (
	// walkedKeys is how many keys at least are worth the try.
	walkedKeys = 50
	// neighbours: a key that lies farther behind the last than so many is sought.
	neighbours = 4
	// fewestSeeks and mostSeeks bound seeker.pause, which doubles with each try in vain.
	fewestSeeks, mostSeeks = 32, 1024
	// After each walkedAtOnce keys the steps are counted; where they are more than mostSteps for each, because many keys between
	// were deleted, seeks are cheaper.
	walkedAtOnce, mostSteps = 8, 16
)

// seek says whether key is there; then the iterator stands on it.
func (s *seeker) seek(key []byte) bool {
	if s.walking {
		if there, near := s.walk(key); near {
			return there
		}
		s.walking, s.pause = false, min(max(2*s.pause, fewestSeeks), mostSeeks)
		s.seeks = s.pause
	}
	if s.seeks > 0 {
		s.seeks--
		return s.it.SeekPrefixGE(key) && bytes.Equal(s.it.Key(), key)
	}
	s.walking = s.it.SeekGE(key)
	return s.walking && bytes.Equal(s.it.Key(), key)
}

// walk goes on to key, or to where it would be; near is false when that is too far.
func (s *seeker) walk(key []byte) (there, near bool) {
	if s.walked++; s.walked%walkedAtOnce == 0 {
		before := s.steps
		if s.steps = s.it.Stats().ForwardStepCount[pebble.InternalIterCall]; s.steps-before > walkedAtOnce*mostSteps {
			return false, false
		}
	}
	for n := 0; ; n++ {
		if order := bytes.Compare(s.it.Key(), key); order >= 0 {
			return order == 0, true
		}
		if n == neighbours || !s.it.Next() {
			return false, false
		}
	}
}

func (s *snapshot) Counter(key []byte) (int64, error) { return counter(s.view.s, key) }

// counter reads a counter's sum: its key holds 8 bytes, big-endian two's complement, or is absent.
func counter(r pebble.Reader, key []byte) (int64, error) {
	value, closer, err := find(r, key)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return 0, nil
	case err != nil:
		return 0, err
	case len(value) != 8:
		return 0, errors.Join(fmt.Errorf("pebblekv: counter %x holds %d bytes, want 8", key, len(value)), done(closer))
	}
	return int64(binary.BigEndian.Uint64(value)), done(closer)
}

func (s *snapshot) NewIter(o kv.IterOptions) (kv.Iterator, error) {
	if o.Upper != nil && bytes.Compare(o.Lower, o.Upper) > 0 {
		o.Upper = o.Lower // Pebble wants bounds in order; this is as empty
	}
	it := s.view.spares.take(o.Lower)
	if it != nil {
		it.SetBounds(o.Lower, o.Upper)
	} else {
		var err error
		if it, err = s.view.s.NewIter(&pebble.IterOptions{LowerBound: o.Lower, UpperBound: o.Upper}); err != nil {
			return nil, reading("iterate", err)
		}
	}
	return &iterator{it: it, view: s.view, began: startOf(o.Lower)}, nil
}

// Within is kv.Snapshot's: reading means waiting for nobody.
func (s *snapshot) Within(context.Context) {}

// Share is kv.Snapshot's.
func (s *snapshot) Share() kv.Snapshot { return s.share() }

func (s *snapshot) share() *snapshot {
	s.view.refs.Add(1)
	return &snapshot{s.view, s.rows}
}

func (s *snapshot) Close() error {
	if s.view == nil {
		return errSnapshotClosed
	}
	s.view.release()
	s.view = nil
	return nil
}

var errSnapshotClosed = errors.New("pebblekv: the snapshot is closed already")
