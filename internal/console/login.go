package console

import (
	"encoding/json"
	"net/http"

	"github.com/ebbdb/ebb/internal/command"
)

// credentials are what somebody logs in by.
type credentials struct {
	User     string `json:"user"`
	Password string `json:"password"`
	DB       string `json:"db"`
}

// serveLogin logs a user in as a driver does, by the commands that drivers use, so that what holds for them holds here: who waits after
// failures, what the log tells, from where a user may come. The session is a new one, so that nobody who knew the old one's id has it.
func (s *Server) serveLogin(w http.ResponseWriter, r *http.Request, own *session, text []byte) {
	var c credentials
	if err := json.Unmarshal(text, &c); err != nil || c.User == "" || c.Password == "" {
		refuse(w, http.StatusBadRequest, "a name and a password are needed")
		return
	}
	if c.DB == "" {
		c.DB = "admin"
	}
	ctx, done := s.working(r)
	defer done()
	conn := s.connect(r)
	defer s.commands.Disconnect(conn)
	if err := s.commands.LogIn(ctx, conn, c.DB, c.User, c.Password); err != nil {
		refuse(w, http.StatusUnauthorized, err.Error())
		return
	}
	s.renew(w, own, conn, &identity{c.User, c.DB})
}

func (s *Server) serveLogout(w http.ResponseWriter, _ *http.Request, own *session, _ []byte) {
	s.renew(w, own, nil, nil)
}

func (s *Server) renew(w http.ResponseWriter, old *session, login *command.Conn, user *identity) {
	s.sessions.end(old)
	n := s.sessions.begin(login, user)
	s.sessions.setCookie(w, n, s.opts.Certificates != nil)
	s.tell(w, n)
}
