package oplog

import "sync/atomic"

// Timestamp is a time of MongoDB's logical clock: seconds since the epoch in the upper half, a counter within the second in the
// lower. Of two entries the later has the higher.
type Timestamp uint64

// NewTimestamp is the one of a second and a counter.
func NewTimestamp(seconds, counter uint32) Timestamp {
	return Timestamp(seconds)<<32 | Timestamp(counter)
}

// millisShift is where the milliseconds of TimestampAt are in the counter: behind them is room for 2 million entries.
const millisShift = 21

// TimestampAt is one for a moment in milliseconds since the epoch: of two moments the later has the higher.
func TimestampAt(millis int64) Timestamp {
	return NewTimestamp(uint32(millis/1000), uint32(millis%1000)<<millisShift)
}

// Millis is the moment that the timestamp is of, or a later one where so many were given out in it that the counter went on into the next:
// of TimestampAt it gives back the moment.
func (t Timestamp) Millis() int64 {
	return int64(t.Seconds())*1000 + min(int64(t.Counter()>>millisShift), 999)
}

// Seconds is the upper half.
func (t Timestamp) Seconds() uint32 { return uint32(t >> 32) }

// Counter is the lower half.
func (t Timestamp) Counter() uint32 { return uint32(t) }

// OpTime is an entry's place in the oplog: its timestamp, and the election that it is of.
type OpTime struct {
	Timestamp Timestamp
	Term      int64
}

// Clock gives each entry a higher timestamp than all before.
type Clock struct {
	last    atomic.Uint64 // that was given out; whoever orders commits calls one at a time
	visible atomic.Uint64
	heard   atomic.Uint64 // the newest that anybody has told of
}

// Take is the first of n timestamps for entries that were made at millis, in milliseconds since the epoch. Where time stands
// still or goes back the counter goes on.
func (c *Clock) Take(millis int64, n int) (first Timestamp) {
	first = max(c.Last(), Timestamp(c.heard.Load())) + 1
	if now := NewTimestamp(uint32(millis/1000), 1); now > first {
		first = now
	}
	c.last.Store(uint64(first) + uint64(n-1))
	return first
}

// Tell is a timestamp behind all that anybody knows of, for a moment at millis: no entry has it, and each that comes is later.
// Nobody is ordering a commit meanwhile.
func (c *Clock) Tell(millis int64) Timestamp {
	t := max(max(c.Last(), Timestamp(c.heard.Load()))+1, NewTimestamp(uint32(millis/1000), 1))
	c.Hear(t)
	return t
}

// Follow takes note of a timestamp that was given out before, or elsewhere.
func (c *Clock) Follow(t Timestamp) { raise(&c.last, t) }

// Last is the newest timestamp that was given out, though its entry may not be seen yet.
func (c *Clock) Last() Timestamp { return Timestamp(c.last.Load()) }

// Hear takes note of a timestamp that somebody else knows of.
func (c *Clock) Hear(t Timestamp) { raise(&c.heard, t) }

// Newest is the newest timestamp that can be read or was heard of.
func (c *Clock) Newest() Timestamp { return max(c.Visible(), Timestamp(c.heard.Load())) }

func raise(v *atomic.Uint64, t Timestamp) {
	for old := v.Load(); uint64(t) > old && !v.CompareAndSwap(old, uint64(t)); old = v.Load() {
	}
}

// Show has the entries up to t be seen.
func (c *Clock) Show(t Timestamp) { raise(&c.visible, t) }

// Visible is the timestamp of the youngest entry that can be read; 0 before the first.
func (c *Clock) Visible() Timestamp { return Timestamp(c.visible.Load()) }
