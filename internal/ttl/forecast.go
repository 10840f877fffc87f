package ttl

import (
	"fmt"
	"slices"

	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/due"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// MaxForecastKeys is how many keys a forecast of one collection walks for each rule, and one of many for all.
const MaxForecastKeys = 10_000_000

// Horizon is what a forecast is about: the time from Now to Until in Buckets of the same length. Times are milliseconds
// since the epoch.
type Horizon struct {
	Now, Until int64
	Buckets    int
	// Keys is how many keys may be walked for each rule; below 0 none.
	Keys int64
}

// ends are the ends of the buckets; each begins where the one before ends. There are fewer where a millisecond is too long.
func (h Horizon) ends() []int64 {
	length := h.Until - h.Now
	n := min(int64(h.Buckets), length)
	ends := make([]int64, n)
	for i := range n {
		ends[i] = h.Now + length/n*(i+1) + length%n*(i+1)/n
	}
	return ends
}

// Forecast is when the documents of a collection expire by one of its rules. Each counts once, hidden ones too.
type Forecast struct {
	// Index, Field, Seconds, Hides and Inert are as in Status.
	Index, Field string
	Seconds      int64
	Hides        bool
	Inert        string

	// Ends are the ends of the buckets. Counts[i] is how many documents expire after the end of the one before, or after now,
	// and not after Ends[i].
	Ends, Counts []int64
	// Backlog are those that have expired and are still stored, Later those that expire after the last bucket, Never those
	// that the rule gives no deadline.
	Backlog, Later, Never int64
	// First and Last are the earliest and the latest deadline; policy.Never when there is none.
	First, Last int64

	Walked due.Walked
	// CountedTo is the time up to which all is counted, when not all was walked; policy.Never where that can be said of none.
	CountedTo int64
}

// Forecasts says when the documents expire, by each rule. It reads keys, and no document; all is the server's ttlHideExpired.
func Forecasts(r *storage.Reader, h Horizon, all bool) (documents int64, out []Forecast, err error) {
	if documents, err = r.Stored(); err != nil {
		return 0, nil, err
	}
	for i := range r.Rules().All() {
		rule := &r.Rules().All()[i]
		f := Forecast{Index: rule.Name(), Field: rule.Field(), Seconds: rule.Seconds, Hides: rule.Hides(all)}
		if err := f.count(r, rule, h, documents); err != nil {
			return 0, nil, fmt.Errorf("ttl: forecast of %s: %w", r.Catalog().NS, err)
		}
		out = append(out, f)
	}
	for _, d := range r.Catalog().Indexes {
		if _, ok := policy.ForIndex(d); d.TTL && !ok {
			out = append(out, Forecast{Index: d.Name, Field: d.Fields[0].Path, Seconds: int64(d.ExpireAfterSeconds), Inert: inert(d)})
		}
	}
	return documents, out, nil
}

func (f *Forecast) count(r *storage.Reader, rule *policy.Rule, h Horizon, documents int64) (err error) {
	f.Ends = h.ends()
	f.Counts = make([]int64, len(f.Ends))
	f.First, f.Last, f.CountedTo = policy.Never, policy.Never, policy.Never
	dated, last := int64(0), int64(0)
	f.Walked, err = r.Dates().Deadlines(rule, max(h.Keys, 0), func(deadline int64) {
		if dated == 0 || deadline > last {
			last = deadline
		}
		dated++
		f.First = min(f.First, deadline)
		f.add(deadline, h.Now)
	})
	switch {
	case err != nil || dated == 0 && !f.Walked.All:
		return err
	case f.Walked.All:
		f.Never = documents - dated
		if dated > 0 {
			f.Last = last
		}
	case rule.Kind == policy.Series:
		f.First = policy.Never // only that of the first meta values
	default:
		f.CountedTo = last - 1
	}
	return nil
}

func (f *Forecast) add(deadline, now int64) {
	if deadline <= now {
		f.Backlog++
		return
	}
	i, _ := slices.BinarySearch(f.Ends, deadline)
	if i == len(f.Ends) {
		f.Later++
		return
	}
	f.Counts[i]++
}
