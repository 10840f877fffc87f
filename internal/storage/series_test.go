package storage

import (
	"context"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

// TestASeriesSurvives opens the store again: measurements of one moment that come later do not take the places of those
// that are there.
func TestASeriesSurvives(t *testing.T) {
	f := newFixture(t)
	_, err := f.CreateCollection(context.Background(), testNS, bson.MustDoc(`{timeseries: {timeField: "t", metaField: "m", bucketMaxSpanSeconds: 3600}}`))
	f.must(err)
	f.must(f.insert(testNS, `{_id: 1, t: new Date(5), m: "b"}`, `{_id: 2, t: new Date(5), m: "b"}`, `{_id: 3, t: new Date(-5), m: "b"}`, `{_id: 4, t: new Date(9)}`))
	f.reopen()
	f.must(f.insert(testNS, `{_id: 5, t: new Date(5), m: "b"}`, `{_id: 6, t: new Date(5), m: "b"}`, `{_id: 7, t: new Date(0), m: {x: 1}}`))
	f.reopen()
	if err := f.insert(testNS, `{_id: 8, m: "b"}`); err == nil {
		t.Error("a measurement without a time was taken")
	}

	view, err := f.View(context.Background())
	f.must(err)
	defer view.Close()
	r, _ := view.Collection(testNS)
	cursor, err := r.Scan(RecordScan{})
	f.must(err)
	defer cursor.Close()
	var ids []string
	for cursor.Next() {
		ids = append(ids, cursor.Record().Doc.Lookup("_id").String())
	}
	f.must(cursor.Err())
	if got := strings.Join(ids, " "); got != "4 3 1 2 5 6 7" {
		t.Errorf("records are %s", got)
	}
	if n, err := r.Dates().Cells(); n != 4 || err != nil {
		t.Errorf("%d cells, %v", n, err)
	}
}
