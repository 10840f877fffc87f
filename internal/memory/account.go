package memory

import "context"

const (
	// freeBytes is what an account may keep without asking: most keep less.
	freeBytes = 64 << 10
	// chunkBytes is how much is asked for at a time at most, more than is needed.
	chunkBytes = 1 << 20
)

// Account is what one operation, reply or build has taken. It is used by one goroutine at a time. The zero Account, and nil,
// belong to no Governor and take what they like.
type Account struct {
	governor      *Governor
	kind          Kind
	used, granted int64
	free          int64 // what need not be asked for
	// lent is the buffer that the account has, see Enlarge.
	lent []byte
}

// Open makes a an account of g's, which holds nothing. g may be nil.
func (a *Account) Open(g *Governor, kind Kind) {
	*a = Account{governor: g, kind: kind, free: freeBytes}
}

// OpenExact is Open for what there may be very much of: each byte is asked for.
func (a *Account) OpenExact(g *Governor, kind Kind) { *a = Account{governor: g, kind: kind} }

// Used is how many bytes the account has taken.
func (a *Account) Used() int64 {
	if a == nil {
		return 0
	}
	return a.used
}

// fits takes n bytes when they need not be asked for.
func (a *Account) fits(n int64) bool {
	if a == nil {
		return true
	}
	if a.governor != nil && a.used+n > a.granted+a.free {
		return false
	}
	a.used += n
	return true
}

// lacks is how many bytes are to be asked for n more.
func (a *Account) lacks(n int64) int64 { return a.used + n - a.free - a.granted }

// Take takes n bytes, or says that they are not there.
func (a *Account) Take(n int64) bool {
	if a.fits(n) {
		return true
	}
	lacks := a.lacks(n)
	for _, ask := range [2]int64{max(lacks, min(chunkBytes, a.used/2)), lacks} {
		if a.governor.take(a.kind, ask, a.granted+ask) {
			a.granted += ask
			a.used += n
			return true
		}
	}
	a.governor.hint(lacks)
	return false
}

// Wait is Take that waits for a bounded time, and says why it gave up.
func (a *Account) Wait(ctx context.Context, n int64) error {
	if a.fits(n) {
		return nil
	}
	lacks := a.lacks(n)
	w := &waiter{kind: a.kind, n: lacks, held: a.granted + lacks, ready: make(chan struct{})}
	if err := a.governor.wait(ctx, w); err != nil {
		return err
	}
	a.granted += lacks
	a.used += n
	return nil
}

// Refuse is the error for one who cannot go on without n bytes more, which Take did not give.
func (a *Account) Refuse(n int64) error { return a.governor.refuse(a.kind, n) }

// Charge takes n bytes that are in use already, whether they are there or not.
func (a *Account) Charge(n int64) {
	if a.fits(n) {
		return
	}
	lacks := a.lacks(n)
	a.governor.charge(a.kind, lacks)
	a.granted += lacks
	a.used += n
}

// Give gives n bytes back.
func (a *Account) Give(n int64) {
	if a == nil {
		return
	}
	a.used -= n
	if a.governor == nil {
		return
	}
	if excess := a.granted - max(0, a.used-a.free); excess > 2*chunkBytes || a.used == 0 && excess > 0 {
		a.granted -= excess
		a.governor.release(a.kind, excess)
	}
}

// Move has what the account holds counted as of another kind, without what was taken in advance.
func (a *Account) Move(kind Kind) {
	if a == nil || a.kind == kind {
		return
	}
	if a.governor != nil && a.granted > 0 {
		if excess := a.granted - max(0, a.used-a.free); excess > 0 {
			a.granted -= excess
			a.governor.release(a.kind, excess)
		}
		a.governor.move(a.kind, kind, a.granted)
	}
	a.kind = kind
}

// Short says whether memory is short; see Governor.
func (a *Account) Short() bool { return a != nil && a.governor.Short() }

// Close gives everything back. The account may be used again.
func (a *Account) Close() {
	if a != nil {
		a.giveBuffer()
		a.Give(a.used)
	}
}
