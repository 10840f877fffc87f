package tikvkv_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv/tikvtest"
)

// TestAheadAsksOnce: values that are asked for soon are fetched together, once, and kept for the next reader. One that is long, or in parts, waits until it
// is asked for by itself.
func TestAheadAsksOnce(t *testing.T) {
	c := tikvtest.New(t)
	filled := c.Open(t, tikvkv.Options{})
	const short = 15
	keys := make([][]byte, short+2)
	txn, err := filled.Begin()
	if err != nil {
		t.Fatal(err)
	}
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "k%02d", i*7%len(keys))
	}
	for i, key := range keys[:short] {
		txn.Set(key, fmt.Appendf(nil, "value %d", i))
	}
	txn.Set(keys[short], bytes.Repeat([]byte("x"), 300<<10)) // and there is none at the last
	if err := txn.Commit(context.Background(), kv.Synced); err != nil {
		t.Fatal(err)
	}
	if err := filled.Close(); err != nil {
		t.Fatal(err)
	}
	trips := c.Count()
	e := c.Open(t, tikvkv.Options{})
	for _, want := range []struct{ of, most int64 }{{of: 1, most: 1}, {most: 1}} {
		s, err := e.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		values := make([][]byte, len(keys))
		trips.Take()
		if looked, err := s.Ahead(keys, values); err != nil || looked != len(keys) {
			t.Fatal(looked, err)
		}
		if asked, _ := trips.Take(); asked < want.of || asked > want.most {
			t.Errorf("%d requests, want %d", asked, want.most)
		}
		for i, value := range values {
			if i < short && string(value) != fmt.Sprintf("value %d", i) || i >= short && value != nil {
				t.Errorf("value %d is %.20q", i, value)
			}
		}
		trips.Take()
		for _, key := range keys[:short] {
			if _, err := s.Get(key); err != nil {
				t.Fatal(err)
			}
		}
		if asked, _ := trips.Take(); asked != 0 {
			t.Errorf("%d requests for what was looked for", asked)
		}
		if value, err := s.Get(keys[short]); err != nil || len(value) != 300<<10 {
			t.Errorf("the long value has %d bytes: %v", len(value), err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// TestAheadOfLongValues: of many long values the first are fetched, about as much as one answer holds, in one request, and nothing is told behind them: who asks
// goes on there.
func TestAheadOfLongValues(t *testing.T) {
	c := tikvtest.New(t)
	e := c.Open(t, tikvkv.Options{})
	keys := make([][]byte, 100)
	txn, err := e.Begin()
	if err != nil {
		t.Fatal(err)
	}
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "k%02d", i)
		txn.Set(keys[i], bytes.Repeat([]byte{byte(i)}, 40<<10))
	}
	if err := errors.Join(txn.Commit(t.Context(), kv.Synced), e.Close()); err != nil {
		t.Fatal(err)
	}
	trips := c.Count()
	e = c.Open(t, tikvkv.Options{})
	s, err := e.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range [][]byte{keys[3], keys[80]} { // which the row cache has from now on
		if _, err := s.Get(key); err != nil {
			t.Fatal(err)
		}
	}
	for begin := 0; begin < len(keys); {
		values := make([][]byte, len(keys)-begin)
		trips.Take()
		looked, err := s.Ahead(keys[begin:], values)
		if err != nil {
			t.Fatal(err)
		}
		asked, _ := trips.Take()
		n := 0
		for n < len(values) && values[n] != nil {
			if value := values[n]; len(value) != 40<<10 || value[0] != byte(begin+n) {
				t.Fatalf("value %d has %d bytes, the first of which is %d", begin+n, len(value), value[0])
			}
			n++
		}
		if asked != 1 || n != looked || n == 0 || n > 50 || slices.ContainsFunc(values[n:], func(v []byte) bool { return v != nil }) {
			t.Fatalf("from %d on: %d requests, %d values, and others behind them", begin, asked, n)
		}
		begin += n
	}
	if err := errors.Join(s.Close(), e.Close()); err != nil {
		t.Error(err)
	}
}

// TestAheadTellsOneError: who is ended while several places are looked at hears that once.
func TestAheadTellsOneError(t *testing.T) {
	c := tikvtest.New(t)
	e := c.Open(t, tikvkv.Options{})
	s, err := e.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	ended := errors.New("the operation was ended")
	ctx, end := context.WithCancelCause(context.Background())
	end(ended)
	s.Within(ctx)
	it, err := s.NewIter(kv.IterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	it.Ahead([][]byte{[]byte("a"), []byte("b"), []byte("c")}, false)
	if it.SeekGE([]byte("b")) || it.Err() != ended {
		t.Errorf("the error is %v", it.Err())
	}
	if err := errors.Join(it.Close(), s.Close(), e.Close()); err != nil {
		t.Error(err)
	}
}
