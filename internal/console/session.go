package console

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/command"
)

const (
	// maxSessions is how many browsers may have one; who comes beyond that takes the place of who has been away longest.
	maxSessions = 1000
	// sessionIdle is after how long without a request a session ends.
	sessionIdle = time.Hour
	// cookieName is what the name of the session's cookie begins with. Its path is that of the interface, so that it goes along with nothing else.
	cookieName, cookiePath = "ebb_console_", "/api"
)

// session is one browser. What it does is done as whoever has logged in.
type session struct {
	id, token string
	running   chan struct{}
	// used is guarded by the sessions, as is login: a connection whose user the session's requests act as; nil for nobody's.
	used  time.Time
	login *command.Conn
	user  *identity
}

// identity is who has logged in.
type identity struct{ Name, DB string }

// sessions are those that are open.
type sessions struct {
	clock clock.Clock
	// cookie is the name of their cookies. It is this server's alone: browsers send the cookies of a host to each of its ports.
	cookie string
	mu     struct {
		sync.Mutex
		open map[string]*session
	}
}

func newSessions(c clock.Clock) *sessions {
	s := &sessions{clock: c, cookie: cookieName + rand.Text()[:8]}
	s.mu.open = map[string]*session{}
	return s
}

// begin opens a session, of who has logged in on a connection, or of nobody.
func (s *sessions) begin(login *command.Conn, user *identity) *session {
	n := &session{id: rand.Text(), token: rand.Text(), running: make(chan struct{}, maxRunningEach), login: login, user: user}
	now := s.clock.Now()
	n.used = now
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, old := range s.mu.open {
		if now.Sub(old.used) > sessionIdle {
			delete(s.mu.open, id)
		}
	}
	if len(s.mu.open) >= maxSessions {
		delete(s.mu.open, s.oldest())
	}
	s.mu.open[n.id] = n
	return n
}

// oldest is the session that has been away longest, one of nobody's before one of somebody's. The caller holds the lock.
func (s *sessions) oldest() (id string) {
	var found *session
	for _, c := range s.mu.open {
		if found == nil || (c.login == nil) != (found.login == nil) && c.login == nil || (c.login == nil) == (found.login == nil) && c.used.Before(found.used) {
			found = c
		}
	}
	return found.id
}

// of is the session of a request's cookie; nil where there is none, or none any more.
func (s *sessions) of(r *http.Request) *session {
	cookie, err := r.Cookie(s.cookie)
	if err != nil {
		return nil
	}
	now := s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.mu.open[cookie.Value]
	if found == nil {
		return nil
	}
	if now.Sub(found.used) > sessionIdle {
		delete(s.mu.open, found.id)
		return nil
	}
	found.used = now
	return found
}

func (s *sessions) end(old *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.open, old.id)
}

// has says whether a request shows the session's token.
func (s *session) has(r *http.Request) bool {
	return subtle.ConstantTimeCompare([]byte(r.Header.Get(tokenHeader)), []byte(s.token)) == 1
}

// setCookie gives the browser a session's cookie.
func (s *sessions) setCookie(w http.ResponseWriter, own *session, secure bool) {
	http.SetCookie(w, &http.Cookie{Name: s.cookie, Value: own.id, Path: cookiePath, HttpOnly: true, Secure: secure, SameSite: http.SameSiteStrictMode})
}
