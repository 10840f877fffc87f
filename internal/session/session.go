// Package session keeps account of logical sessions: which ids clients use, since when, and until when they live. It
// does not know what is done in them.
package session

import (
	"crypto/rand"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

const (
	// Timeout is how long a session lives after its last use, when nobody set another time.
	Timeout = 30 * time.Minute
	// MaxSessions is how many sessions may be alive at once.
	MaxSessions = 1_000_000
)

// Session is one logical session as it stood when it was asked for.
type Session struct {
	// ID is what it is found by; see OwnedID.
	ID                string
	Started, LastUsed time.Time
}

// Registry is the set of live sessions.
type Registry struct {
	clock clock.Clock
	ended func(ids map[string]bool)
	// Over, unless nil, is told each transaction that was committed or aborted. It is set before there are any.
	Over func(o *Open, committed bool)
	mu   struct {
		sync.Mutex
		live map[string]*live
		open map[*live]bool // those whose transaction is in progress
	}
	counts Counts
}

// NewRegistry returns an empty registry. ended is told the ids of sessions that are over, those that end together at once, so that their cursors
// go too.
func NewRegistry(c clock.Clock, ended func(ids map[string]bool)) *Registry {
	r := &Registry{clock: c, ended: ended}
	r.mu.live, r.mu.open = map[string]*live{}, map[*live]bool{}
	return r
}

// NewID is a random UUID.
func NewID() (id [16]byte) {
	_, _ = rand.Read(id[:]) // never fails
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}

// Start begins a session with an id of its own, for the user with the digest uid; "" for nobody.
func (r *Registry) Start(uid string) (id string, err error) {
	u := NewID()
	id = string(u[:]) + uid
	return id, r.Use(id, r.clock.Now())
}

// Use begins the session with the id at the time now, or keeps it alive.
func (r *Registry) Use(id string, now time.Time) error {
	_, err := r.use(id, now)
	return err
}

func (r *Registry) use(id string, now time.Time) (*live, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.mu.live[id]; s != nil {
		s.LastUsed = now
		return s, nil
	}
	if len(r.mu.live) >= MaxSessions {
		return nil, mongoerr.New(mongoerr.TooManyLogicalSessions, "cannot add session into the cache: the limit of %d is reached", MaxSessions)
	}
	s := newLive(id, now)
	r.mu.live[id] = s
	return s, nil
}

// Busy keeps the session with the id alive, if it is, because something is under way in it.
func (r *Registry) Busy(id string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.mu.live[id]; s != nil {
		s.LastUsed = now
	}
}

// Lives says whether the session with the id is alive.
func (r *Registry) Lives(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.live[id] != nil
}

// End ends the sessions with the ids; unknown ones are passed over.
func (r *Registry) End(ids ...string) {
	var over []*live
	known := map[string]bool{}
	r.mu.Lock()
	for _, id := range ids {
		if s := r.mu.live[id]; s != nil && !known[id] {
			known[id] = true
			over = append(over, s)
		}
	}
	r.mu.Unlock()
	if len(over) == 0 {
		return
	}
	r.ended(known)
	for _, s := range over {
		r.end(s)
	}
}

// Expire ends the sessions that nobody has used for so long.
func (r *Registry) Expire(idle time.Duration) {
	now := r.clock.Now()
	var old []string
	for _, s := range r.Live() {
		if now.Sub(s.LastUsed) >= idle {
			old = append(old, s.ID)
		}
	}
	r.End(old...)
}

// Live is every session alive.
func (r *Registry) Live() []Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]Session, 0, len(r.mu.live))
	for _, s := range r.mu.live {
		all = append(all, s.Session)
	}
	return all
}

// Seated is the number of sessions alive that have had a transaction or a retryable write.
func (r *Registry) Seated() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.mu.live {
		if s.seated {
			n++
		}
	}
	return n
}

// Count is the number of sessions alive.
func (r *Registry) Count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.mu.live)
}
