package metrics

import (
	"context"
	"strings"

	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// The figures of expiry that are told of each collection.
func expiryFigures() (f struct{ lag, backlog, more, deleted, bytes, next, paused, told, left, held figure }) {
	of := []string{"db", "collection"}
	f.lag = figure{"ebb_ttl_collection_lag_seconds", "For how long the oldest document has been stored past its deadline.", of, false}
	f.backlog = figure{"ebb_ttl_collection_backlog_documents", "Documents that have expired and are not deleted yet, counted once for each rule; there are more where ebb_ttl_collection_backlog_is_more is 1.", of, false}
	f.more = figure{"ebb_ttl_collection_backlog_is_more", "Whether counting the backlog ended before its end.", of, false}
	f.deleted = figure{"ebb_ttl_collection_deleted_documents_total", "Documents deleted because they had expired, since the collection was made.", of, true}
	f.bytes = figure{"ebb_ttl_collection_reclaimed_bytes_total", "Bytes of documents deleted because they had expired, since the server started.", of, true}
	f.next = figure{"ebb_ttl_collection_next_deadline_timestamp_seconds", "The earliest deadline that is still to come, as Unix time.", of, false}
	f.paused = figure{"ebb_ttl_collection_paused", "Whether deleting is paused (collMod ttlPaused).", of, false}
	f.told = figure{"ebb_ttl_collections", "Collections with a TTL.", nil, false}
	f.left = figure{"ebb_ttl_collections_left_out", "Collections with a TTL that are not told of one by one, because there are too many.", nil, false}
	f.held = figure{"ebb_ttl_held", "Whether expiry is held up: nothing is deleted.", nil, false}
	return f
}

// expiry tells of each collection.
func (t teller) expiry(ctx context.Context, e Expiry) {
	all, left, err := e.Collections(ctx, maxCollections)
	if err != nil {
		t.fail(err)
		return
	}
	f := expiryFigures()
	seen := map[namespace.NS]bool{}
	for _, c := range all {
		db, coll := label(c.NS.DB), label(c.NS.Coll)
		ns := namespace.NS{DB: db, Coll: coll}
		if seen[ns] { // two of a name would have the scrape fail
			left++
			continue
		}
		seen[ns] = true
		t.tell(f.lag, float64(c.Lag)/1000, db, coll)
		t.tell(f.backlog, float64(c.Backlog), db, coll)
		t.tell(f.more, number(c.More), db, coll)
		t.tell(f.deleted, float64(c.Deleted), db, coll)
		t.tell(f.bytes, float64(c.Bytes), db, coll)
		t.tell(f.paused, number(c.Paused), db, coll)
		if c.Next != policy.Never {
			t.tell(f.next, float64(c.Next)/1000, db, coll)
		}
	}
	t.tell(f.told, float64(len(seen)+left))
	t.tell(f.left, float64(left))
	t.tell(f.held, number(e.Held() != ""))
}

// label is a name as the value of a label, which has to be UTF-8.
func label(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
