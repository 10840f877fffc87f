package exec

import (
	"context"
	"errors"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

// numbersTable is a table of n documents {_id: i, v: at(i)}.
func numbersTable(n int, ask func() error, at func(i int) bson.Value) *lookupTable {
	t := newLookupTable(nil, ask)
	for i := range n {
		t.docs = append(t.docs, lookupDoc{doc: bson.Build().Int32("_id", int32(i)).Doc()})
		v := at(i)
		if v.Type != bson.TypeArray {
			t.enter(v, int32(i))
			continue
		}
		for it := v.Doc().Iter(); it.Next(); {
			t.enter(it.Value(), int32(i))
		}
	}
	t.steps = 0
	return t
}

// TestLookupTableFindsOnce: a search takes steps for its values and for what the table has, not for each pair of them, and
// its result has a document once.
func TestLookupTableFindsOnce(t *testing.T) {
	const many, docs = 10_000, 1000
	same := make([]bson.Value, many)
	for i := range same {
		same[i] = bson.Int32(7)
	}
	var each []bson.Value
	for i := range many {
		each = append(each, bson.Int32(int32(i)))
	}
	for name, c := range map[string]struct {
		values []bson.Value
		at     func(int) bson.Value
		steps  int
	}{
		"one key named often":           {same, func(int) bson.Value { return bson.Int32(7) }, many + docs},
		"keys that reach all documents": {each, func(int) bson.Value { return bson.ArrayOf(each[:20]...) }, many + 20*docs},
		"a key a document":              {each, func(i int) bson.Value { return bson.Int32(int32(i)) }, many + docs},
	} {
		asked := 0
		table := numbersTable(docs, func() error { asked++; return nil }, c.at)
		for range 2 { // what a search leaves behind does not matter to the next one
			table.steps = 0
			it, err := table.find(c.values)
			if err != nil {
				t.Fatal(name, err)
			}
			n := int32(0)
			for {
				d, err := it.Next(context.Background())
				if err != nil {
					t.Fatal(name, err)
				}
				if d == nil {
					break
				}
				if got := d.Lookup("_id").Int32(); got != n {
					t.Fatalf("%s: document %d where %d should be", name, got, n)
				}
				n++
			}
			if n != docs || cap(table.result) > 2*docs {
				t.Errorf("%s: %d documents of %d, room for %d", name, n, docs, cap(table.result))
			}
			if table.steps > c.steps || table.steps < many {
				t.Errorf("%s: %d steps, not %d", name, table.steps, c.steps)
			}
		}
		if asked < many/stepsPerAsk {
			t.Errorf("%s: has asked %d times", name, asked)
		}
		stop := errors.New("stop")
		table.ask = func() error { return stop }
		if _, err := table.find(c.values); !errors.Is(err, stop) {
			t.Errorf("%s: %v after it was stopped", name, err)
		}
	}
}
