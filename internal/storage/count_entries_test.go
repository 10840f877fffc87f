package storage

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/keystring"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/walk"
)

// TestCountEntries: positions bound the count, and a limit ends it.
func TestCountEntries(t *testing.T) {
	f := newFixture(t)
	f.createIndexes(testNS, `{key: {a: 1}, name: "a"}`)
	for i := range 30 {
		f.must(f.insert(testNS, bson.Build().Int32("_id", int32(i)).Int32("a", int32(i/3)).Doc().Text()))
	}
	f.read(testNS, func(r *Reader) error {
		d := r.Catalog().Index("a")
		at := func(n int32) []byte { return d.AppendKey(nil, 0, bson.Int32(n)) }
		for _, c := range []struct {
			low, high []byte
			limit     int64
			want      int64
		}{
			{nil, nil, 0, 30}, {at(2), at(4), 0, 6}, {at(2), layout.After(at(4)), 0, 9}, {at(8), nil, 0, 6}, {nil, at(1), 0, 3},
			{nil, nil, 7, 7}, {at(9), nil, 7, 3}, {at(4), at(2), 0, 0}, {at(20), nil, 0, 0},
		} {
			n, err := r.CountEntries(d, c.low, c.high, c.limit)
			if err != nil || n != c.want {
				t.Errorf("%x to %x, at most %d: %d %v, not %d", c.low, c.high, c.limit, n, err, c.want)
			}
		}
		return nil
	})
}

// TestCountEntriesEnds: a count ends with its context.
func TestCountEntriesEnds(t *testing.T) {
	f := newFixture(t)
	f.createIndexes(testNS, `{key: {a: 1}, name: "a"}`)
	f.must(f.insertNumbers(3 * walk.CountStep))
	ctx, cancel := context.WithCancel(context.Background())
	v, err := f.View(ctx)
	f.must(err)
	defer v.Close()
	r, _ := v.Collection(testNS)
	cancel()
	if n, err := r.CountEntries(r.Catalog().Index("a"), nil, nil, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("counted %d, %v", n, err)
	}
}

// insertNumbers adds n documents {_id: i, a: i}.
func (f *fixture) insertNumbers(n int) error {
	const batch = 10_000
	for start := 0; start < n; start += batch {
		err := f.Write(context.Background(), testNS, creating, func(w *Writer) error {
			for i := start; i < min(start+batch, n); i++ {
				if _, err := w.Insert(bson.Build().Int32("_id", int32(i)).Int32("a", int32(i)).Doc()); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// TestDistinctPrefixes leaps from value to value of a leading field, in both directions, and reads the values back.
func TestDistinctPrefixes(t *testing.T) {
	f := newFixture(t)
	f.createIndexes(testNS, `{key: {a: -1, b: 1}, name: "ab"}`)
	f.must(f.insert(testNS, `{_id: 1, a: 1, b: 1}`, `{_id: 2, a: NumberLong(1), b: 2}`, `{_id: 3, a: "x", b: 1.5}`, `{_id: 4, a: "x"}`, `{_id: 5, b: []}`))
	for _, reverse := range []bool{false, true} {
		f.read(testNS, func(r *Reader) error {
			c, err := r.ScanIndex(IndexScan{Index: r.Catalog().Index("ab"), Reverse: reverse})
			if err != nil {
				return err
			}
			defer c.Close()
			var got []string
			for c.Next() {
				values, err := c.Values(nil)
				if err != nil {
					return err
				}
				got = append(got, values[0].Text()+" "+values[1].Text())
				n, err := keystring.Skip(c.Entry().Key)
				if err != nil {
					return err
				}
				c.SeekPast(c.Entry().Key[:n])
			}
			wanted := []string{`"x" null`, `1 1`, `null undefined`}
			if reverse {
				wanted = []string{`null undefined`, `NumberLong(1) 2`, `"x" 1.5`}
			}
			if !slices.Equal(got, wanted) {
				t.Errorf("reverse %v: %q, not %q", reverse, got, wanted)
			}
			return c.Err()
		})
	}
}
