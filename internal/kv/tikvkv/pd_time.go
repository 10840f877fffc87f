package tikvkv

import (
	"slices"
	"time"
)

// pdTime is how far the time of PD's timestamps is from this process's monotonic time, as timestamps have told.
//
// A timestamp was given out between when it was asked for and when it came, so each tells two bounds. The lower one is too low by the timestamp's way and
// because PD does not move its time all the while; so the highest of late is the best, and gives way slowly, since the two clocks drift.
//
// PD's time is no clock while PD is in trouble. It stands still while PD cannot save how far it may go, for as long as its etcd looks for a member
// that answers (eight seconds were seen, with another placement driver frozen), and is right again at once after that. When another placement driver
// begins to lead it is ahead of all clocks: what the one before may have given out was saved, three seconds ahead as a rule, and it goes on from
// there, and stands still until its own clock has caught up. By the one documents would be seen again that had expired, by the other they would expire
// before their time. So a time that is ahead is not believed before it was told for longer than that lasts, and one that is behind not for a
// minute: until then time passes as it did. The first that is told goes no further than this machine's clock, where the two are not further apart
// than a lead explains, and is not behind what was committed.
//
// Invariant: what was told by mistake, or late, moves the time by no more than smallRise ahead, and not back.
type pdTime struct {
	offset int64              // milliseconds from monotonic time to that of PD's timestamps; 0 before it is known
	recent [settleTells]int64 // the lower bounds that were told last
	next   int                // which of them is told next
	behind int                // how many in a row have told a time that is behind
}

const (
	// settleTells is how many timestamps in a row have to tell what is ahead, and backTells what is behind. The lease's come every two and a half seconds.
	settleTells = 3
	backTells   = 24
	// smallRise is how much later, in milliseconds, a time may be at once: PD moves its time twenty times a second.
	smallRise = 100
	// smallFall is by how many milliseconds PD's time is behind before it is taken to be something else than slow answers.
	smallFall = 1000
)

const (
	// maxLead is how far the time of PD's timestamps may be ahead of its machine's, with something to spare (tso-save-interval is three seconds).
	maxLead = 4 * time.Second
	// maxStandstill is how far it may be behind, with much to spare.
	maxStandstill = time.Minute
)

// told is a timestamp's physical part, and by monotonic time when it was asked for and when it came.
type told struct {
	asked, came time.Duration
	physical    int64
}

// begin is told the first timestamp. wall is this machine's time when it came; committed is the time of the youngest commit, and 0 where there is none.
func (p *pdTime) begin(t told, wall time.Time, committed int64) {
	now := t.physical
	if w := wall.UnixMilli(); w < now && now-w <= maxLead.Milliseconds() {
		now = w
	}
	if committed-now <= maxStandstill.Milliseconds() {
		now = max(now, committed)
	}
	p.offset = now - t.came.Milliseconds()
	p.settle(p.offset)
}

// tell is told each other.
func (p *pdTime) tell(t told) {
	low, high := t.physical-t.came.Milliseconds(), t.physical-t.asked.Milliseconds()
	if p.offset-high > smallFall {
		if p.behind++; p.behind >= backTells { // PD's clock was set back
			p.offset = low
			p.settle(low)
		}
		return
	}
	p.behind = 0
	p.recent[p.next] = low
	p.next = (p.next + 1) % settleTells
	if low-p.offset > smallRise {
		low = slices.Min(p.recent[:])
	}
	p.offset = max(low, p.offset-1)
}

func (p *pdTime) settle(low int64) {
	p.behind = 0
	for i := range p.recent {
		p.recent[i] = low
	}
}

// at is the time at a monotonic time.
func (p *pdTime) at(monotonic time.Duration) time.Time {
	return time.UnixMilli(p.offset).Add(monotonic)
}
