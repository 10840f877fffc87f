package ebbtest_test

// times are what the truth knows of time: what the machine's clock shows, whether that is believed, and where expiry is held.
type times struct {
	now int64 // what the clock shows
	ran int64 // for how long time has passed, which nobody can set
	// believed is the last moment that was, suspect the first that was not, while there is one.
	believed, suspect moment
	suspects          bool
	// fresh: since the server was started no moment was believed yet.
	fresh bool
	// high is the latest time that was believed, where the clock was turned back by less than a minute since: what was hidden stays
	// so until it is there again.
	high int64
	// seen is the latest time that was believed, unless the clock was corrected since; noted is what the folder knew of it when
	// the server was started, or 0.
	seen, noted int64
	// holdAt is where the clock of expiry stands still while holds.
	holdAt int64
	holds  bool
}

// moment is what the clock showed when so much time had passed.
type moment struct{ now, ran int64 }

func (m moment) at(ran int64) int64 { return m.now + ran - m.ran }

// In milliseconds, as the server parameters are by default.
const (
	maxClockStep = 3_600_000
	clockSettle  = 60_000
	smallStep    = 60_000
)

func timesAt(now int64) times {
	return times{now: now, believed: moment{now, 0}, seen: now}
}

// expected is what the clock should show.
func (t *times) expected() int64 { return t.believed.at(t.ran) }

// passes has time pass.
func (t *times) passes(millis int64) {
	t.now, t.ran = t.now+millis, t.ran+millis
	t.look()
}

// isSet has somebody set the clock.
func (t *times) isSet(millis int64) {
	t.now += millis
	t.look()
}

// look decides whether the clock is believed.
func (t *times) look() {
	if t.now-t.expected() <= maxClockStep {
		t.believe()
		return
	}
	if away := t.now - t.suspect.at(t.ran); !t.suspects || max(away, -away) > maxClockStep {
		t.suspect, t.suspects = moment{t.now, t.ran}, true
	}
	if t.ran-t.suspect.ran >= clockSettle {
		t.believe()
	}
}

func (t *times) believe() {
	was := t.expected() // as far as hiding may have come
	if t.fresh {
		was = t.seen
	}
	if behind := was - t.now; behind > 0 && behind < smallStep {
		t.high = max(t.high, was)
	}
	if t.high-t.now >= smallStep {
		t.high = 0
	}
	if t.now > t.seen || t.seen-t.now >= smallStep {
		t.seen = t.now
	}
	t.seen = max(t.seen, t.high)
	t.believed, t.suspects, t.fresh = moment{t.now, t.ran}, false, false
}

// restart is a start of the server, which knows what its folder does.
func (t *times) restart() {
	t.noted, t.high, t.suspects, t.fresh = t.seen, 0, false, true
	t.believed = moment{t.seen, t.ran}
	t.look()
}

// modifiedAt is when what is written counts as modified.
func (t *times) modifiedAt() int64 {
	if t.high-t.now < smallStep {
		return max(t.now, t.high)
	}
	return t.now
}

// hiding is the time that hiding goes by.
func (t *times) hiding() int64 {
	at := t.modifiedAt()
	if t.holds {
		at = min(at, t.holdAt)
	}
	return at
}

// heldUp says whether nothing is deleted anywhere because of the time.
func (t *times) heldUp() bool { return t.holds || t.suspects }
