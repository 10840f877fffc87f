package console

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/command"
)

// socket is what is answered on, and until when the browser may take to read and to send.
type socket struct {
	*httptest.ResponseRecorder
	read, write time.Time
}

func (s *socket) SetReadDeadline(t time.Time) error {
	s.read = t
	return nil
}

func (s *socket) SetWriteDeadline(t time.Time) error {
	s.write = t
	return nil
}

// during are commands that call a function while one of them runs.
type during func()

func (during) ConnectOwn(id int64, remote, local string) *command.Conn {
	return command.NewConn(id, remote, local)
}
func (during) Disconnect(*command.Conn) {}
func (during) Now() time.Time           { return time.Time{} }
func (during) MaxUnknown() int64        { return 16 << 10 }

func (d during) Handle(context.Context, *command.Conn, command.Request) command.Reply {
	d()
	return command.Reply{Body: bson.MustDoc(`{ok: 1.0}`)}
}

func (d during) LogIn(context.Context, *command.Conn, string, string, string) error {
	d()
	return errors.New("Authentication failed.")
}

// TestDeadlines: a browser has until some time to send and to read, but what it asked for has no end by that: a deadline to send that passes
// meanwhile would end it.
func TestDeadlines(t *testing.T) {
	s, err := Listen(t.Context(), Options{Addresses: []string{"127.0.0.1"}, Clock: clock.Wall(), Log: slog.New(slog.DiscardHandler), NextID: func() int64 { return 1 }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, c := range []struct {
		method, path, body string
		runs, pending      bool // it is a command's; a body that is not read is on its way
	}{
		{http.MethodPost, "/api/command", `{"ping": 1, "$db": "admin"}`, true, false},
		{http.MethodPost, "/api/login", `{"user": "u", "password": "p"}`, true, false},
		{http.MethodPost, "/api/none", `{}`, false, true},
		{http.MethodPost, "/", `{}`, false, true},
		{http.MethodGet, "/", "", false, false},
		{http.MethodGet, "/app.js", "", false, false},
	} {
		w, ran := &socket{ResponseRecorder: httptest.NewRecorder()}, false
		s.commands = during(func() {
			ran = true
			if !w.read.IsZero() {
				t.Errorf("%s is done until %v", c.path, w.read)
			}
		})
		own := s.sessions.begin(nil, nil)
		r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
		r.Host = "localhost"
		r.AddCookie(&http.Cookie{Name: s.sessions.cookie, Value: own.id})
		for name, value := range map[string]string{markHeader: "1", tokenHeader: own.token, "Origin": "http://localhost", "Content-Type": "application/json"} {
			r.Header.Set(name, value)
		}
		s.ServeHTTP(w, r)
		if w.write.IsZero() || ran != c.runs || c.pending == w.read.IsZero() {
			t.Errorf("%s %s: %d, run %v, read until %v, written until %v", c.method, c.path, w.Code, ran, w.read, w.write)
		}
	}
}
