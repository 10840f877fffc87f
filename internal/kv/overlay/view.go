package overlay

import "github.com/ebbdb/ebb/internal/kv"

// View reads a snapshot as its own writes leave it. It is the reading half, and the noting half, of a kv.Txn.
type View struct {
	Writes
	Snapshot kv.Reader
}

// Get is kv.Reader's.
func (v *View) Get(key []byte) ([]byte, error) { return v.get(key, v.Snapshot.Get) }

// Probe is kv.Reader's.
func (v *View) Probe(key []byte) ([]byte, error) { return v.get(key, v.Snapshot.Probe) }

func (v *View) get(key []byte, below func([]byte) ([]byte, error)) ([]byte, error) {
	op, written := v.Lookup(key)
	switch {
	case !written:
		return below(key)
	case op.Delete:
		return nil, kv.ErrNotFound
	default:
		return op.Value, nil
	}
}

// GetMany is kv.Reader's.
func (v *View) GetMany(keys [][]byte) ([][]byte, error) {
	if v.Len() == 0 {
		return v.Snapshot.GetMany(keys)
	}
	values := make([][]byte, len(keys))
	var below [][]byte
	var places []int
	for i, key := range keys {
		op, written := v.Lookup(key)
		switch {
		case !written:
			below, places = append(below, key), append(places, i)
		case !op.Delete:
			values[i] = op.Value
		}
	}
	if len(below) == 0 {
		return values, nil
	}
	found, err := v.Snapshot.GetMany(below)
	if err != nil {
		return nil, err
	}
	for i, place := range places {
		values[place] = found[i]
	}
	return values, nil
}

// Ahead is kv.Reader's. It tells nothing of what was written, which is at hand.
func (v *View) Ahead(keys, values [][]byte) (looked int, err error) {
	if v.Len() == 0 {
		return v.Snapshot.Ahead(keys, values)
	}
	var below [][]byte
	var places []int
	for i, key := range keys {
		if !v.Wrote(key) {
			below, places = append(below, key), append(places, i)
		}
	}
	if len(below) == 0 {
		return len(keys), nil
	}
	found := make([][]byte, len(below))
	if looked, err = v.Snapshot.Ahead(below, found); err != nil {
		return 0, err
	}
	for i, place := range places[:looked] {
		values[place] = found[i]
	}
	if looked < len(below) {
		return places[looked], nil
	}
	return len(keys), nil
}

// Counter is kv.Reader's.
func (v *View) Counter(key []byte) (int64, error) {
	n, err := v.Snapshot.Counter(key)
	return n + v.Added(key), err
}

// NewIter is kv.Reader's.
func (v *View) NewIter(o kv.IterOptions) (kv.Iterator, error) {
	below, err := v.Snapshot.NewIter(o)
	if err != nil {
		return nil, err
	}
	if !v.touches(o) {
		return below, nil
	}
	return newIterator(&v.Writes, below, o), nil
}
