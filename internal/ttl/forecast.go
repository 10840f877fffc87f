package ttl

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/due"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// MaxForecastKeys is how many keys a forecast of one collection walks for each rule, and one of many for all.
const MaxForecastKeys = 10_000_000

// Horizon is what a forecast is about: the time from Now to Until in Buckets of the same length, or in those that Ends are the ends of,
// of which Until is the last. Times are milliseconds since the epoch.
type Horizon struct {
	Now, Until int64
	Buckets    int
	Ends       []int64
	// Keys is how many keys may be walked for each rule; below 0 none. As many documents are read where keys do not tell.
	Keys int64
}

// ends are the ends of the buckets; each begins where the one before ends. There are fewer where a millisecond is too long.
func (h Horizon) ends() []int64 {
	if h.Ends != nil {
		return h.Ends
	}
	length := h.Until - h.Now
	n := min(int64(h.Buckets), length)
	ends := make([]int64, n)
	for i := range n {
		ends[i] = h.Now + length/n*(i+1) + length%n*(i+1)/n
	}
	return ends
}

// Tally is how many documents expire in which bucket.
type Tally struct {
	// Backlog are those that have expired and are still stored, Later those that expire after the last bucket.
	Backlog, Later int64
	// Counts[i] is how many documents expire after the end of the bucket before, or after now, and not after the end of this one.
	Counts []int64
}

// Forecast is when the documents of a collection expire by one of its rules. Each counts once, hidden ones too.
type Forecast struct {
	Rule *policy.Rule // nil where it is Inert
	// Index, Field, Seconds, Hides and Inert are as in Status.
	Index, Field string
	Seconds      int64
	Hides        bool
	Inert        string

	// Ends are the ends of the buckets.
	Ends []int64
	Tally
	// Reasons are the parts of the tally by what the deadlines count from (policy.Rule.Basis), in the order in which they were met.
	Reasons []Reason
	// Never are the documents that the rule gives no deadline.
	Never int64
	// First and Last are the earliest and the latest deadline; policy.Never when there is none.
	First, Last int64

	Walked due.Walked
	// Documents is how many documents were read, because keys do not tell.
	Documents int64
	// CountedTo is the time up to which all is counted, when not all was walked; policy.Never where that can be said of none.
	CountedTo int64

	dated, last int64
}

// Reason is a part of a forecast.
type Reason struct {
	Basis string
	Tally
}

// Forecasts says when the documents expire, by each rule. It reads keys, and no document; all is the server's ttlHideExpired.
func Forecasts(r *storage.Reader, h Horizon, all bool) (documents int64, out []Forecast, err error) {
	return ForecastsAs(r, r.Catalog(), h, all)
}

// ForecastsAs says when the documents would expire if the collection were next, which has other TTLs. Where the keys there are do not tell it
// reads documents.
func ForecastsAs(r *storage.Reader, next *catalog.Collection, h Horizon, all bool) (documents int64, out []Forecast, err error) {
	if documents, err = r.Stored(); err != nil {
		return 0, nil, err
	}
	rules := next.ExpiryRules().All()
	var unread []*Forecast // those of which keys do not tell
	for i := range rules {
		rule := &rules[i]
		f := &Forecast{Rule: rule, Index: rule.Name(), Field: rule.Field(), Seconds: rule.Seconds, Hides: rule.Hides(all)}
		f.begin(h)
		out = append(out, Forecast{})
		if !r.BeforeChange().HasKeysOf(rule) {
			unread = append(unread, f)
		} else if err := f.walk(r, h, documents); err != nil {
			return 0, nil, fmt.Errorf("ttl: forecast of %s: %w", next.NS, err)
		}
		out[i] = *f
	}
	if len(unread) > 0 {
		if err := read(r, unread, h, documents); err != nil {
			return 0, nil, fmt.Errorf("ttl: forecast of %s: %w", next.NS, err)
		}
		for _, f := range unread {
			i := slices.IndexFunc(out, func(o Forecast) bool { return o.Rule == f.Rule })
			out[i] = *f
		}
	}
	for _, d := range next.Indexes {
		if _, ok := policy.ForIndex(d); d.TTL && !ok {
			out = append(out, Forecast{Index: d.Name, Field: d.Fields[0].Path, Seconds: int64(d.ExpireAfterSeconds), Inert: inert(d)})
		}
	}
	return documents, out, nil
}

func (f *Forecast) begin(h Horizon) {
	f.Ends = h.ends()
	f.Counts = make([]int64, len(f.Ends))
	f.First, f.Last, f.CountedTo = policy.Never, policy.Never, policy.Never
}

// walk counts keys.
func (f *Forecast) walk(r *storage.Reader, h Horizon, documents int64) (err error) {
	f.Walked, err = r.Dates().DeadlinesAs(f.Rule, max(h.Keys, 0), func(deadline int64, basis string) { f.add(deadline, basis, h.Now) })
	switch {
	case err != nil || f.dated == 0 && !f.Walked.All:
		return err
	case f.Walked.All:
		f.end(documents)
	case f.Rule.Kind == policy.Series:
		f.First = policy.Never // only that of the first meta values
	default:
		f.CountedTo = f.last - 1
	}
	return nil
}

// errEnough ends a reading of documents.
var errEnough = errors.New("enough was read")

// read counts documents.
func read(r *storage.Reader, forecasts []*Forecast, h Horizon, documents int64) error {
	n := int64(0)
	err := r.Unhidden().BeforeChange().Each(func(rec storage.Record) error {
		if n == max(h.Keys, 0) {
			return errEnough
		}
		n++
		for _, f := range forecasts {
			if deadline, _ := f.Rule.Deadline(rec.Doc, rec.Modified); deadline != policy.Never {
				f.add(deadline, f.Rule.Basis(rec.Doc), h.Now)
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	for _, f := range forecasts {
		f.Documents = n
		if f.Walked.All = err == nil; f.Walked.All {
			f.end(documents)
		} else {
			f.First = policy.Never // only that of what was read
		}
	}
	return nil
}

// end is where all was counted.
func (f *Forecast) end(documents int64) {
	f.Never = documents - f.dated
	if f.dated > 0 {
		f.Last = f.last
	}
}

func (f *Forecast) add(deadline int64, basis string, now int64) {
	if f.dated == 0 || deadline > f.last {
		f.last = deadline
	}
	f.dated++
	f.First = min(f.First, deadline)
	bucket := overdue
	if deadline > now {
		bucket, _ = slices.BinarySearch(f.Ends, deadline)
	}
	f.Tally.add(bucket)
	i := slices.IndexFunc(f.Reasons, func(r Reason) bool { return r.Basis == basis })
	if i < 0 {
		i = len(f.Reasons)
		f.Reasons = append(f.Reasons, Reason{Basis: basis, Tally: Tally{Counts: make([]int64, len(f.Ends))}})
	}
	f.Reasons[i].add(bucket)
}

// overdue is the bucket of what has expired.
const overdue = -1

func (t *Tally) add(bucket int) {
	switch {
	case bucket == overdue:
		t.Backlog++
	case bucket == len(t.Counts):
		t.Later++
	default:
		t.Counts[bucket]++
	}
}

// SameTTL says whether two forecasts are by the same TTL.
func (f *Forecast) SameTTL(o *Forecast) bool {
	return f.Index == o.Index && f.Field == o.Field && f.Seconds == o.Seconds && f.Inert == o.Inert
}
