// Package patience is how long a login has to wait, by how often logins from its address and of its user have failed lately, and how many
// of an address wait at once. It knows neither passwords nor connections, and reads no clock.
//
// Waits alone slow down who tries one password after the other. Who tries on many connections at once has all of them wait side by side, so
// an address has MaxWaiting places, and a login that has to wait takes one first: MaxWaiting guesses in Most is what an address has at
// best. A user has no such places: whoever guesses from elsewhere would take them all, and keep the user out.
package patience

import (
	"context"
	"crypto/sha256"
	"net/netip"
	"sync"
	"time"
)

const (
	// Free is how many failures cost nothing.
	Free = 5
	// Least is how long one waits after one failure more. Each further one doubles it, up to Most.
	Least, Most = 100 * time.Millisecond, 2 * time.Second
	// Forgiven is how long it takes until one failure less counts.
	Forgiven = 10 * time.Second
	// MaxFailures is how many count at most, so that all are forgiven some minutes after the last.
	MaxFailures = 20
	// Trusted is how long a user who has logged in from an address does not wait for what others do.
	Trusted = time.Hour
	// MaxWaiting is how many logins from an address wait at once. The others stand in line for that.
	MaxWaiting = 16
	// MaxKept is how many addresses, users, and pairs of them are kept at once.
	MaxKept = 10_000
)

// Register keeps count. The zero value is ready.
type Register struct {
	mu struct {
		sync.Mutex
		kept map[key]entry
		// waiting are the addresses from which logins wait, or are in line for that.
		waiting map[key]*places
	}
}

// places are those of an address. There are none of one that nobody waits at.
type places struct {
	taken chan struct{}
	users int // who wait and who are in line; guarded by the Register
}

// key is a digest of an address, a user, or both: so none takes more room than another.
type key [16]byte

// entry is what is known: how many failures counted at a time, and when the last login succeeded.
type entry struct {
	failures  int
	at        time.Time
	succeeded time.Time
}

// Who is who logs in, and from where.
type Who struct{ address, user, pair key }

// From is a user at an address. Of an IPv6 address its network counts, since whoever has one address there has them all.
func From(address netip.Addr, user string) Who {
	if address = address.Unmap(); address.Is6() {
		if network, err := address.WithZone("").Prefix(64); err == nil {
			address = network.Addr()
		}
	}
	digest := func(kind, what string) (k key) {
		sum := sha256.Sum256([]byte(kind + "\x00" + what))
		copy(k[:], sum[:])
		return k
	}
	from := address.String()
	return Who{digest("address", from), digest("user", user), digest("pair", from+"\x00"+user)}
}

// Wait is how long a login has to wait before anybody looks at whether it succeeds. Who has logged in from there lately, and did not fail
// since, waits for nobody.
func (r *Register) Wait(w Who, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if pair, ok := r.mu.kept[w.pair]; ok && now.Sub(pair.succeeded) < Trusted && pair.counts(now) <= Free {
		return 0
	}
	address, user := r.mu.kept[w.address], r.mu.kept[w.user]
	return delay(max(address.counts(now), user.counts(now)))
}

// Enter takes a place for a login that has to wait, as soon as its address has one that is free. It is left when the login has waited. The
// error is ctx's.
func (r *Register) Enter(ctx context.Context, w Who) (leave func(), err error) {
	p := r.placesOf(w.address)
	select {
	case p.taken <- struct{}{}:
		return func() {
			<-p.taken
			r.leave(w.address, p)
		}, nil
	case <-ctx.Done():
		r.leave(w.address, p)
		return nil, context.Cause(ctx)
	}
}

func (r *Register) placesOf(address key) *places {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.mu.waiting[address]
	if p == nil {
		if r.mu.waiting == nil {
			r.mu.waiting = map[key]*places{}
		}
		p = &places{taken: make(chan struct{}, MaxWaiting)}
		r.mu.waiting[address] = p
	}
	p.users++
	return p
}

func (r *Register) leave(address key, p *places) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.users--; p.users == 0 {
		delete(r.mu.waiting, address)
	}
}

func delay(failures int) time.Duration {
	if failures <= Free {
		return 0
	}
	return min(Least<<min(failures-Free-1, MaxFailures), Most)
}

// counts is how many failures are not forgiven yet.
func (e entry) counts(now time.Time) int {
	return max(e.failures-int(max(now.Sub(e.at), 0)/Forgiven), 0)
}

// Failed takes note of a login that has failed.
func (r *Register) Failed(w Who, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range [...]key{w.address, w.user, w.pair} {
		e := r.mu.kept[k]
		e.failures, e.at = min(e.counts(now)+1, MaxFailures), now
		r.keep(k, e, now)
	}
}

// Succeeded takes note of one that has not.
func (r *Register) Succeeded(w Who, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keep(w.pair, entry{succeeded: now, at: now}, now)
}

// keep makes room first where there is none: what tells nothing any more goes, and if that is little, half of the rest.
func (r *Register) keep(k key, e entry, now time.Time) {
	if r.mu.kept == nil {
		r.mu.kept = map[key]entry{}
	}
	if _, there := r.mu.kept[k]; !there && len(r.mu.kept) >= MaxKept {
		for k, e := range r.mu.kept {
			if e.counts(now) == 0 && now.Sub(e.succeeded) >= Trusted {
				delete(r.mu.kept, k)
			}
		}
		for k := range r.mu.kept {
			if len(r.mu.kept) <= MaxKept/2 {
				break
			}
			delete(r.mu.kept, k)
		}
	}
	r.mu.kept[k] = e
}
