package tikvkv

import (
	"slices"
	"testing"
	"time"
)

// TestPDTime: what timestamps tell, in milliseconds, and what time is taken to be then. PD's clock is right but for what is said.
func TestPDTime(t *testing.T) {
	type tell struct{ asked, came, physical, want int64 }
	const start = int64(1_000_000)
	for _, c := range []struct {
		name            string
		wall, committed int64 // of the first
		tells           []tell
	}{
		{"as it should be", start, 0, []tell{{0, 0, start, start}, {2500, 2510, start + 2500, start + 2509}, {5000, 5010, start + 5005, start + 5008}}},
		{"an answer that is late", start, 0, []tell{{0, 0, start, start}, {2500, 5500, start + 2500, start + 5499}, {7500, 7501, start + 7500, start + 7500}}},
		// Another placement driver leads: its time is three seconds ahead, and stands still until it is right.
		{"a lead", start, 0, []tell{{0, 0, start, start}, {2500, 2500, start + 5500, start + 2500}, {5000, 5000, start + 5500, start + 5000}, {7500, 7500, start + 7500, start + 7500}}},
		{"a lead that is told first", start, 0, []tell{{0, 0, start + 3000, start}, {2500, 2500, start + 3000, start + 2500}, {5000, 5000, start + 5000, start + 5000}}},
		{"and something was committed by that time", start, start + 1000, []tell{{0, 0, start + 3000, start + 1000}}},
		{"and something was committed later than that", start, start + 9000, []tell{{0, 0, start + 3000, start + 9000}}},
		{"and something was committed by another clock", start, 2 * start, []tell{{0, 0, start + 3000, start}}},
		// PD cannot save how far it may go.
		{"a time that stands still", start, 0, []tell{{0, 0, start, start}, {2500, 2500, start, start + 2500}, {5000, 5000, start, start + 5000}, {7500, 7500, start + 7500, start + 7500}}},
		// Three times, which no lead is.
		{"a clock that is set forward", start, 0, []tell{{0, 0, start, start}, {2500, 2500, start + 62500, start + 2500}, {5000, 5000, start + 65000, start + 5000}, {7500, 7500, start + 67500, start + 67500}}},
		{"a clock that is set back", start, 0, slices.Concat([]tell{{0, 0, start, start}}, slices.Repeat([]tell{{2500, 2510, start - 57500, start + 2510}}, backTells-1),
			[]tell{{2500, 2510, start - 57500, start - 57500}})},
		{"a machine whose clock is another", 5 * start, 0, []tell{{0, 0, start, start}}},
		{"a machine whose clock is far behind", 0, 0, []tell{{0, 0, start, start}}},
		{"a clock that runs slower", start, 0, []tell{{0, 0, start, start}, {2500, 2500, start + 2490, start + 2499}, {5000, 5000, start + 4980, start + 4998}}},
	} {
		var p pdTime
		for i, tell := range c.tells {
			one := told{time.Duration(tell.asked) * time.Millisecond, time.Duration(tell.came) * time.Millisecond, tell.physical}
			if i == 0 {
				p.begin(one, time.UnixMilli(c.wall), c.committed)
			} else {
				p.tell(one)
			}
			if got := p.at(one.came).UnixMilli(); got != tell.want {
				t.Errorf("%s: told %+v it is %d, want %d", c.name, tell, got, tell.want)
			}
		}
	}
}
