package console

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/memory"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/server"
)

// The interface, all of it JSON:
//
//	GET  /api/session   → who the browser is, and the token that it has to show with everything else
//	POST /api/login     {user, password, db} → the same, of a new session
//	POST /api/logout    {} → the same, of a new session
//	POST /api/command   a command with its $db as extended JSON → its reply, as canonical extended JSON, with the database's time in a header
//
// What is refused before there is a command has a status of HTTP's and {error: "…"}. A command that fails has status 200 and ok: 0, as
// drivers get it.

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.serving.Add(1)
	defer s.serving.Done()
	if s.opts.Figures != nil && (r.URL.Path == "/metrics" || strings.HasPrefix(r.URL.Path, "/health/")) { // which has rules of its own
		server.IgnoreBody(w, r)
		server.BoundReply(w, replyPatience)
		s.opts.Figures.ServeHTTP(w, r)
		return
	}
	if !s.isOwnHost(r.Host) {
		drop(w, r, http.StatusMisdirectedRequest, "this server is not known by that name")
		return
	}
	if !strings.HasPrefix(r.URL.Path, "/api/") {
		server.IgnoreBody(w, r)
		server.BoundReply(w, replyPatience)
		s.assets.serve(w, r)
		return
	}
	if why := s.comesFromOwnPage(r); why != "" {
		drop(w, r, http.StatusForbidden, "the request is not the console's: "+why)
		return
	}
	s.serveInterface(w, r)
}

func (s *Server) serveInterface(w http.ResponseWriter, r *http.Request) {
	own := s.sessions.of(r)
	if r.URL.Path == "/api/session" && r.Method == http.MethodGet {
		server.IgnoreBody(w, r)
		if own == nil {
			own = s.sessions.begin(nil, nil)
			s.sessions.setCookie(w, own, s.opts.Certificates != nil)
		}
		s.tell(w, own)
		return
	}
	serve := map[string]func(http.ResponseWriter, *http.Request, *session, []byte){
		"/api/login": s.serveLogin, "/api/logout": s.serveLogout, "/api/command": s.serveCommand,
	}[r.URL.Path]
	switch {
	case serve == nil:
		drop(w, r, http.StatusNotFound, "there is no such interface")
	case r.Method != http.MethodPost:
		drop(w, r, http.StatusMethodNotAllowed, "there is only POST here")
	case own == nil:
		drop(w, r, http.StatusUnauthorized, "the session has ended")
	case !own.has(r):
		drop(w, r, http.StatusForbidden, "the session's token is missing")
	default:
		s.run(w, r, own, serve)
	}
}

// isUnknown says whether a request comes from somebody who would have to log in, and has not.
func (s *Server) isUnknown(own *session) bool { return s.opts.Authorization && own.login == nil }

// run serves a request that is there as a whole when its turn has come. Who sends slowly takes no place, and who has not logged in takes none of
// those who have. A login takes neither: it may have to wait for what others did, who would take all places by guessing, and Commands bound what
// logins cost.
func (s *Server) run(w http.ResponseWriter, r *http.Request, own *session, serve func(http.ResponseWriter, *http.Request, *session, []byte)) {
	limit, patience, places := int64(maxCommandBytes), bodyPatience, s.running
	if s.isUnknown(own) {
		limit, patience, places = min(limit, s.commands.MaxUnknown()), unknownPatience, s.unknown
	}
	if r.URL.Path != "/api/command" {
		limit, places = maxLoginBytes, nil
	}
	var account memory.Account
	account.Open(s.opts.Memory, memory.Requests)
	defer account.Close()
	if err := account.Wait(r.Context(), parseShare*bodyBytes(r, limit)); err != nil {
		drop(w, r, http.StatusServiceUnavailable, err.Error())
		return
	}
	// What a browser takes too long to send or to read ends the connection, and not the server's patience.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(s.opts.Clock.Now().Add(patience))
	body, ok := readBody(w, r, limit)
	if !ok {
		return
	}
	_ = control.SetReadDeadline(time.Time{}) // which would end what is done with the body, as if the browser had gone
	for _, places := range [2]chan struct{}{own.running, places} {
		if places == nil {
			continue
		}
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		case <-r.Context().Done():
			return
		}
	}
	serve(w, r, own, body)
}

// bodyBytes is how large a request's body is at most: what is too large is refused before it is read.
func bodyBytes(r *http.Request, limit int64) int64 {
	switch n := r.ContentLength; {
	case n > limit:
		return 0
	case n >= 0:
		return n
	}
	return limit
}

// readBody reads a request's body. It refuses one that is too large.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, bool) {
	if r.ContentLength > limit {
		drop(w, r, http.StatusRequestEntityTooLarge, "the request is too large")
		return nil, false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		drop(w, r, http.StatusRequestEntityTooLarge, "the request is too large")
	case err != nil:
		drop(w, r, http.StatusBadRequest, "the request broke off")
	default:
		return body, true
	}
	return nil, false
}

// working is the context of a command: it ends when the browser hangs up, or when the server can no longer wait.
func (s *Server) working(r *http.Request) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(s.base)
	stop := context.AfterFunc(r.Context(), func() {
		cancel(mongoerr.New(mongoerr.ClientDisconnect, "operation was interrupted because a client disconnected"))
	})
	return ctx, func() {
		stop()
		cancel(context.Canceled)
	}
}

// tell says who the browser is.
func (s *Server) tell(w http.ResponseWriter, own *session) {
	type user struct {
		User string `json:"user"`
		DB   string `json:"db"`
	}
	said := struct {
		Token         string `json:"token"`
		Authorization bool   `json:"authorization"`
		User          *user  `json:"user"`
		Version       string `json:"version"`
		MongoVersion  string `json:"mongoVersion"`
		Now           int64  `json:"now"`
	}{Token: own.token, Authorization: s.opts.Authorization, Version: s.opts.Version, MongoVersion: s.opts.MongoVersion, Now: s.commands.Now().UnixMilli()}
	if own.user != nil {
		said.User = &user{own.user.Name, own.user.DB}
	}
	answer(w, http.StatusOK, said)
}

// answer writes v as JSON.
func answer(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(`{"error":"the answer has no form"}`)
	}
	write(w, status, b)
}

func write(w http.ResponseWriter, status int, b []byte) {
	server.BoundReply(w, replyPatience)
	protect(w.Header(), "")
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(b)
}

// drop refuses a request whose body nobody has read.
func drop(w http.ResponseWriter, r *http.Request, status int, why string) {
	server.IgnoreBody(w, r)
	refuse(w, status, why)
}

// refuse says why a request is not served.
func refuse(w http.ResponseWriter, status int, why string) {
	answer(w, status, map[string]string{"error": why})
}
