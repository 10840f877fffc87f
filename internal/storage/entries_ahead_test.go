package storage

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/testseed"
)

// A cursor that reads ahead, now and then, gives what one gives that does not, wherever it is sent meanwhile, and tells what comes.
func TestEntriesAhead(t *testing.T) {
	f := newFixture(t)
	f.createIndexes(testNS, `{key: {a: 1}, name: "a"}`)
	for i := range 100 {
		f.must(f.insert(testNS, fmt.Sprintf(`{_id: %d, a: %d}`, i, i*i%40)))
	}
	r := rand.New(rand.NewPCG(testseed.Of(t), 0))
	f.read(testNS, func(reader *Reader) error {
		d := reader.Catalog().Index("a")
		for _, reverse := range []bool{false, true} {
			plain, err := reader.ScanIndex(IndexScan{Index: d, Reverse: reverse})
			if err != nil {
				return err
			}
			ahead, err := reader.ScanIndex(IndexScan{Index: d, Reverse: reverse, Ahead: 4})
			if err != nil {
				return err
			}
			var told []string
			most := 0
			for steps := range 2000 {
				there := plain.Next()
				if ahead.Next() != there {
					t.Fatalf("step %d: there %v", steps, there)
				}
				if there {
					got, want := describeEntry(ahead.Entry()), describeEntry(plain.Entry())
					if got != want || len(told) > 0 && told[0] != ahead.Entry().RecordID.String() {
						t.Fatalf("step %d: %s, want %s, told %v", steps, got, want, told)
					}
				}
				told = told[:0]
				for _, id := range ahead.Upcoming(nil) {
					told = append(told, id.String())
				}
				most = max(most, len(told))
				if r.IntN(10) == 0 {
					ahead.ReadAhead(r.IntN(3) > 0)
				}
				if there && r.IntN(20) > 0 {
					continue
				}
				told = told[:0]
				key := d.AppendKey(nil, 0, bson.Int32(int32(r.IntN(45))))
				if r.IntN(2) == 0 {
					plain.Seek(key)
					ahead.Seek(key)
				} else {
					plain.SeekPast(key)
					ahead.SeekPast(key)
				}
			}
			if most < 10 {
				t.Errorf("%d entries were told at most", most)
			}
			if err := plain.Close(); err != nil {
				return err
			}
			if err := ahead.Close(); err != nil {
				return err
			}
		}
		return nil
	})
}

func describeEntry(e *IndexEntry) string {
	return fmt.Sprintf("%x %x %s", e.Key, slices.Clone(e.TypeBits), e.RecordID)
}
