package tikv

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// times are how long operations took, and whether they failed, in the order in which they ended.
type times struct {
	mu    sync.Mutex // guards all below
	all   []took
	rests []time.Duration // p99 of each time in which nothing was disturbed
}

type took struct {
	ended time.Time
	took  time.Duration
	err   error
}

const (
	// span is what latencies are told of; they are as before when steady spans in a row are, each begun step after the one before.
	span, step = 3 * time.Second, 500 * time.Millisecond
	steady     = 5
	leastOps   = 20 // of a span, so that it tells something
	// backTimes is how many times as long as undisturbed a p99 may be to be as before.
	backTimes = 3
)

func (s *times) note(began time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.all = append(s.all, took{now, now.Sub(began), err})
}

// between are those that have ended in a stretch of time. The caller holds mu.
func (s *times) between(from, to time.Time) []took {
	at := func(when time.Time) int {
		i, _ := slices.BinarySearchFunc(s.all, when, func(o took, when time.Time) int { return o.ended.Compare(when) })
		return i
	}
	return s.all[at(from):at(to)]
}

// failed is the latency of what fails: longer than any.
const failed = time.Hour

func p99(ops []took) time.Duration {
	var all []time.Duration
	for _, o := range ops {
		if o.err != nil {
			o.took = failed
		}
		all = append(all, o.took)
	}
	if len(all) == 0 {
		return failed
	}
	slices.Sort(all)
	return all[(len(all)-1)*99/100]
}

// rest notes what just passed as undisturbed.
func (s *times) rest(long time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if p := p99(s.between(now.Add(-long), now)); p != failed {
		s.rests = append(s.rests, p)
	}
}

// usual is the median of what was undisturbed. The caller holds mu.
func (s *times) usual() time.Duration { return median(s.rests) }

func median(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(all))[len(all)/2]
}

func (s *times) quiet() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ops := s.between(time.Now().Add(-3*restTime), time.Now())
	return fmt.Sprintf("p99 of operations is %v, and %.0f are done a second", s.usual().Round(time.Millisecond), float64(len(ops))/(3*restTime).Seconds())
}

// good says whether the span that begins then is as before. The caller holds mu.
func (s *times) good(begins time.Time) bool {
	ops := s.between(begins, begins.Add(span))
	return len(ops) >= leastOps && p99(ops) <= backTimes*s.usual()
}

// isBack says whether latencies are as before by now.
func (s *times) isBack(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range steady {
		if !s.good(now.Add(-span - time.Duration(i)*step)) {
			return false
		}
	}
	return true
}

// silence is how long ago the last one succeeded.
func (s *times) silence() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range slices.Backward(s.all) {
		if o.err == nil {
			return time.Since(o.ended)
		}
	}
	return 0
}

// recovery is what clients have seen of a fault.
type recovery struct {
	back    time.Duration // from its beginning on until latencies were as before; failed if they were not
	again   time.Duration // from its end on until they were so for good
	gap     time.Duration // the longest in which nothing succeeded
	slowest time.Duration
	failed  int
	of      int
}

func (r recovery) String() string {
	return fmt.Sprintf("back after %s, and %s after its end; nothing succeeded for %v, the slowest operation took %v, %d of %d failed", seconds(r.back), seconds(r.again),
		r.gap.Round(100*time.Millisecond), r.slowest.Round(100*time.Millisecond), r.failed, r.of)
}

func seconds(d time.Duration) string {
	if d == failed {
		return "more than was waited for"
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// recovery is that of a fault that began and ended then.
func (s *times) recovery(began, ended, now time.Time) recovery {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, last := recovery{back: failed, again: failed}, began
	for _, o := range s.between(began, now) {
		r.of++
		r.slowest = max(r.slowest, o.took)
		if o.err != nil {
			r.failed++
			continue
		}
		r.gap, last = max(r.gap, o.ended.Sub(last)), o.ended
	}
	good := 0 // in a row
	for begins := began; !begins.Add(span).After(now); begins = begins.Add(step) {
		if !s.good(begins) {
			good, r.again = 0, failed
			continue
		}
		if good++; good == steady && r.back == failed {
			r.back = begins.Add(-(steady - 1) * step).Sub(began)
		}
		if r.again == failed {
			r.again = max(0, begins.Sub(ended))
		}
	}
	return r
}

// tellRecoveries logs a table of what was seen.
func tellRecoveries(t *testing.T, told map[fault][]recovery) {
	t.Helper()
	var out strings.Builder
	late, n := 0, 0
	for _, f := range slices.SortedFunc(maps.Keys(told), func(a, b fault) int { return strings.Compare(a.whom+a.what, b.whom+b.what) }) {
		var back, again, gaps []time.Duration
		for _, r := range told[f] {
			back, again, gaps = append(back, r.back), append(again, r.again), append(gaps, r.gap)
			if n++; r.back > backGoal {
				late++
			}
		}
		fmt.Fprintf(&out, "%-30s %-8s %3d times; back after %s, at worst %s; after its end %s, at worst %s; nothing succeeded for %s, at worst %s\n", f.whom, f.what, len(back),
			seconds(median(back)), seconds(slices.Max(back)), seconds(median(again)), seconds(slices.Max(again)), seconds(median(gaps)), seconds(slices.Max(gaps)))
	}
	t.Logf("%d disturbances, after %d of which it took longer than %v until operations were as before:\n%s", n, late, backGoal, out.String())
}
