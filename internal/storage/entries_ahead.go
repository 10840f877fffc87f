package storage

// entriesAhead are entries that an IndexCursor has read before it is asked for them: as many at first as it was told, more of a long scan.
type entriesAhead struct {
	first   int          // how many are read next, where that is not as many as can be; 0: it is
	entries []IndexEntry // with the one that is given, MaxAhead within spans are known
	places  []place      // of entries, where there are spans
	given   int
	n       int
	buf     []byte // what the entries consist of
	ended   bool
	failed  error // what ended the reading, told behind the entries before it

	room [MaxAhead - 1]IndexEntry // for entries, where there are no spans
}

// aheadGrowth is how many times as much is read next as before, until that is as much as can be.
const aheadGrowth = 8

// next makes the cursor's entry the next one.
func (a *entriesAhead) next(c *IndexCursor) bool {
	if a.given == a.n && !a.fill(c) {
		c.e = a.failed
		return false
	}
	c.current = &a.entries[a.given]
	if c.spans != nil {
		c.place = a.places[a.given]
	}
	a.given++
	return true
}

// fill reads more, and says whether there was any.
func (a *entriesAhead) fill(c *IndexCursor) bool {
	want := MaxAhead - 1
	if c.spans == nil {
		want = c.reader.MostAhead() - 1
	}
	if most := want; a.first > 0 {
		want = min(want, a.first)
		if a.first = want * aheadGrowth; a.first >= most {
			a.first = 0
		}
	}
	if need := 2 * want; c.spans == nil {
		if a.entries == nil {
			a.entries = a.room[:]
		}
		if len(a.entries) < want {
			a.entries = make([]IndexEntry, want)
		}
	} else if len(a.entries) < need { // each that is wanted may have one behind it that lies outside
		a.entries, a.places = make([]IndexEntry, need), make([]place, need)
	}
	a.given, a.n, a.buf = 0, 0, a.buf[:0]
	span := c.place.span
	for !a.ended && want > 0 && a.n < len(a.entries) {
		if !c.walk.Next() {
			a.ended = true
			break
		}
		e := &a.entries[a.n]
		if a.failed = c.walk.ReadEntry(e, c.entries, &c.room); a.failed != nil {
			a.ended = true
			break
		}
		e.Key, e.TypeBits, e.RecordID = a.keep(e.Key), a.keep(e.TypeBits), a.keep(e.RecordID)
		want--
		if c.spans != nil {
			p := c.enter(e.Key, span)
			a.places[a.n], span, a.ended = p, p.span, p.over
			if !p.inside {
				want++
			}
		}
		a.n++
	}
	return a.n > 0
}

// upcoming appends the records of the entries that have not been given, but for those outside of spans.
func (a *entriesAhead) upcoming(dst []RecordID) []RecordID {
	for i := a.given; i < a.n; i++ {
		if a.places == nil || a.places[i].inside {
			dst = append(dst, a.entries[i].RecordID)
		}
	}
	return dst
}

// isEmpty says whether there is nothing left to give, and the walk has not come to its end.
func (a *entriesAhead) isEmpty() bool { return a.given == a.n && !a.ended }

func (a *entriesAhead) keep(b []byte) []byte {
	start := len(a.buf)
	a.buf = append(a.buf, b...)
	return a.buf[start:len(a.buf):len(a.buf)]
}

// forget drops what was read: the cursor goes on elsewhere.
func (a *entriesAhead) forget() { a.given, a.n, a.ended = 0, 0, false }
