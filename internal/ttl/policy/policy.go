// Package policy is the rule of expiry, as a pure function: a document, its last modification and the collection's
// indexes → when it expires, by which rule, or why it does not. It knows nothing of stores, clocks or sweeps.
//
// A document is expired from its deadline on, in milliseconds: deadline ≤ now. Several rules on one collection: the
// earliest deadline counts. A rule hides when what expired by it is invisible before it is deleted.
package policy

import (
	"math"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/index"
)

// Never is the deadline of what does not expire.
const Never = int64(math.MaxInt64)

// Kind is what a rule counts from.
type Kind uint8

const (
	// Field counts from the dates in an indexed field: MongoDB's TTL index.
	Field Kind = iota
	// Modified counts from the document's last modification and honours its ttl: a TTL index on _ts.
	Modified
	// Clustered counts from a date in _id: expireAfterSeconds of a clustered collection.
	Clustered
	// Series counts from the time of a measurement: expireAfterSeconds of a time-series collection.
	Series
)

// Rule says when documents expire by one TTL index, or by the collection's own TTL. The zero Rule is of no use.
type Rule struct {
	Kind Kind
	// Index is the TTL index, nil for Clustered and Series.
	Index *index.Definition
	// Seconds is the TTL; negative on Modified for no default.
	Seconds int64
	// Cell is how many seconds long the cells are whose measurements expire together, counted from the cell's end: what
	// a bucket is in MongoDB. 0 outside of time series.
	Cell int64
	// Grace is what is not deleted yet, though it is due.
	Grace Grace

	path      fieldpath.Path
	timeField string // of Series
}

// ForIndex is the rule of a TTL index. ok is false when the index never expires anything: it has no TTL, or is of a kind
// that keeps no dates (hashed, text, 2d, 2dsphere, wildcard).
func ForIndex(d *index.Definition) (r Rule, ok bool) {
	switch {
	case !d.TTL || len(d.Fields) != 1:
		return Rule{}, false
	case d.Kind == index.Deadline:
		return Rule{Kind: Modified, Index: d, Seconds: int64(d.ExpireAfterSeconds)}, true
	case d.Kind == index.Ordered:
		return Rule{Kind: Field, Index: d, Seconds: int64(d.ExpireAfterSeconds), path: fieldpath.Split(d.Fields[0].Path)}, true
	}
	return Rule{}, false
}

// ForClustered is the rule of a clustered collection with a TTL.
func ForClustered(seconds int64) Rule {
	return Rule{Kind: Clustered, Seconds: seconds, path: fieldpath.Split("_id")}
}

// ForSeries is the rule of a time-series collection with a TTL.
func ForSeries(timeField string, seconds, cell int64) Rule {
	return Rule{Kind: Series, Seconds: seconds, Cell: cell, path: fieldpath.Split(timeField), timeField: timeField}
}

// Hides says whether what expired by r is invisible at once; all is the server's ttlHideExpired.
func (r *Rule) Hides(all bool) bool {
	if r.Index == nil {
		return all
	}
	return r.Index.Hides(all)
}

// Name is the index's name, "" for Clustered and Series.
func (r *Rule) Name() string {
	if r.Index == nil {
		return ""
	}
	return r.Index.Name
}

// Field is the path of what r counts from.
func (r *Rule) Field() string {
	switch {
	case r.Index != nil:
		return r.Index.Fields[0].Path
	case r.Kind == Series:
		return r.timeField
	}
	return "_id"
}

// Basis is what of the document makes it expire by r, in a word: its date ("index", "clustered", "timeseries"), its last modification
// ("_ts"), or how long it says itself that it lives from then on ("ttl").
func (r *Rule) Basis(doc bson.Doc) string {
	switch r.Kind {
	case Modified:
		if o, _ := Override(doc); o == Valid {
			return OverrideField
		}
		return "_ts"
	case Clustered:
		return "clustered"
	case Series:
		return "timeseries"
	}
	return "index"
}

// Deadline is when doc, modified last at the millisecond modified, expires by r; when that is Never, why.
func (r *Rule) Deadline(doc bson.Doc, modified int64) (deadline int64, why Reason) {
	switch r.Kind {
	case Modified:
		return r.fromModified(doc, modified)
	case Clustered:
		return r.fromID(doc)
	case Series:
		return r.fromDates(doc)
	default:
		if !r.Index.Covers(doc) {
			return Never, OutsidePartialFilter
		}
		return r.fromDates(doc)
	}
}

// Cut is the latest date that has expired by r at now: date + TTL ≤ now, without overflow; in cells, the last moment of
// the latest that is over for so long.
func (r *Rule) Cut(now int64) int64 {
	cut := subtract(now, r.Seconds)
	if r.Cell == 0 {
		return cut
	}
	start := CellStart(cut, r.Cell)
	return max(start, math.MinInt64+1) - 1
}

// After is when something dated date expires by r's TTL.
func (r *Rule) After(date int64) int64 {
	if r.Cell > 0 {
		date = add(CellStart(date, r.Cell), r.Cell)
	}
	return add(date, r.Seconds)
}

// CellStart is the beginning of the cell that date lies in; cells are counted from 1970.
func CellStart(date, seconds int64) int64 {
	cell := millis(seconds)
	into := date % cell
	if into < 0 {
		into += cell
	}
	if date < math.MinInt64+into {
		return math.MinInt64
	}
	return date - into
}

// Date is the date in doc that a Field rule counts from: the earliest. ok is false when doc has none, or is outside of what
// the index covers, so that it never expires by r.
func (r *Rule) Date(doc bson.Doc) (millis int64, ok bool) {
	if !r.Index.Covers(doc) {
		return 0, false
	}
	millis, ok, _ = r.earliest(doc)
	return millis, ok
}

func (r *Rule) earliest(doc bson.Doc) (earliest int64, found bool, why Reason) {
	earliest, why = Never, NoSuchField
	r.path.Walk(doc, fieldpath.Elements, func(v bson.Value, _ int) bool {
		switch {
		case v.Type == bson.TypeDate:
			found, earliest = true, min(earliest, v.Millis())
		case !v.IsMissing():
			why = NotADate
		}
		return false
	})
	return earliest, found, why
}

func (r *Rule) fromDates(doc bson.Doc) (int64, Reason) {
	earliest, found, why := r.earliest(doc)
	if !found {
		return Never, why
	}
	if r.Cell > 0 {
		earliest = add(CellStart(earliest, r.Cell), r.Cell)
	}
	return deadline(earliest, r.Seconds)
}

func (r *Rule) fromID(doc bson.Doc) (int64, Reason) {
	id := doc.Lookup("_id")
	switch {
	case id.Type != bson.TypeDate:
		return Never, NotADate
	case id.Millis() < 0:
		return Never, BeforeEpoch
	}
	return deadline(id.Millis(), r.Seconds)
}

func (r *Rule) fromModified(doc bson.Doc, modified int64) (int64, Reason) {
	override, ttl := Override(doc)
	switch {
	case override == Forever:
		return Never, TTLMinusOne
	case override == Valid:
		return deadline(modified, int64(ttl))
	case r.Seconds < 0:
		return Never, NoDefault
	}
	return deadline(modified, r.Seconds)
}

// deadline is date + seconds, Never when that is past the end of time.
func deadline(date, seconds int64) (int64, Reason) {
	d := add(date, seconds)
	if d == Never {
		return Never, PastTheEndOfTime
	}
	return d, Expires
}

func add(date, seconds int64) int64 {
	span := millis(seconds)
	switch {
	case span > 0 && date > math.MaxInt64-span:
		return math.MaxInt64
	case span < 0 && date < math.MinInt64-span:
		return math.MinInt64
	}
	return date + span
}

func subtract(date, seconds int64) int64 { return add(date, -seconds) }

func millis(seconds int64) int64 {
	const most = math.MaxInt64 / 1000
	return min(max(seconds, -most), most) * 1000
}
