package storage

// entriesAhead are entries that an IndexCursor has read before it is asked for them: four at first, more of a long scan.
type entriesAhead struct {
	entries [MaxAhead - 1]IndexEntry // with the one that is given, MaxAhead are known
	given   int
	n       int
	buf     []byte // what the entries consist of
	ended   bool
	failed  error // what ended the reading, told behind the entries before it
}

// firstAhead is how many entries are read at first.
const firstAhead = 4

// next makes the cursor's entry the next one.
func (a *entriesAhead) next(c *IndexCursor) bool {
	if a.given == a.n && !a.fill(c) {
		c.e = a.failed
		return false
	}
	c.current = &a.entries[a.given]
	a.given++
	return true
}

// fill reads more, and says whether there was any.
func (a *entriesAhead) fill(c *IndexCursor) bool {
	want := firstAhead
	if a.n > 0 {
		want = len(a.entries)
	}
	a.given, a.n, a.buf = 0, 0, a.buf[:0]
	for !a.ended && a.n < want {
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
		a.n++
	}
	return a.n > 0
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
