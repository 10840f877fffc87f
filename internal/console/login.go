package console

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/ebbdb/ebb/internal/auth/scram"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/command"
)

// externalDB is the database of users whose passwords a directory knows, plain the mechanism by which they log in.
const externalDB, plain = "$external", "PLAIN"

// credentials are what somebody logs in by.
type credentials struct {
	User     string `json:"user"`
	Password string `json:"password"`
	DB       string `json:"db"`
}

// serveLogin logs a user in as a driver does, by the commands that drivers use, so that what holds for them holds here: who waits after
// failures, what the log tells, from where a user may come. The session is a new one, so that nobody who knew the old one's id has it.
func (s *Server) serveLogin(w http.ResponseWriter, r *http.Request, own *session) {
	text, ok := readBody(w, r, maxLoginBytes)
	if !ok {
		return
	}
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
	if failed := s.login(ctx, conn, c); failed != "" {
		refuse(w, http.StatusUnauthorized, failed)
		return
	}
	s.renew(w, own, conn, &identity{c.User, c.DB})
}

func (s *Server) serveLogout(w http.ResponseWriter, _ *http.Request, own *session) {
	s.renew(w, own, nil, nil)
}

func (s *Server) renew(w http.ResponseWriter, old *session, login *command.Conn, user *identity) {
	s.sessions.end(old)
	n := s.sessions.begin(login, user)
	setCookie(w, n, s.opts.Certificates != nil)
	s.tell(w, n)
}

// login holds the conversation of a login. It returns what went wrong in words, "" when nothing did.
func (s *Server) login(ctx context.Context, conn *command.Conn, c credentials) (failed string) {
	say := func(doc bson.Doc) (reply bson.Doc, failed string) {
		reply = s.commands.Handle(ctx, conn, command.Request{Body: doc}).Body.Clone()
		if reply.Lookup("ok").Truthy() {
			return reply, ""
		}
		if why := reply.Lookup("errmsg"); why.Type == bson.TypeString && why.Str() != "" {
			return nil, why.Str()
		}
		return nil, "Authentication failed."
	}
	if c.DB == externalDB {
		_, failed := say(bson.Build().Int32("saslStart", 1).String("mechanism", plain).
			Binary("payload", 0, []byte("\x00"+c.User+"\x00"+c.Password)).String("$db", c.DB).Doc())
		return failed
	}
	hello, failed := say(bson.Build().Int32("hello", 1).String("saslSupportedMechs", c.DB+"."+c.User).String("$db", "admin").Doc())
	if failed != "" {
		return failed
	}
	client, err := scram.NewClient(mechanism(hello), c.User, c.Password)
	if err != nil {
		return err.Error()
	}
	message, err := client.Step("")
	for step := 0; err == nil; step++ {
		b := bson.Build()
		if step == 0 {
			b.Int32("saslStart", 1).String("mechanism", mechanism(hello)).Object("options").Bool("skipEmptyExchange", true).End()
		} else {
			b.Int32("saslContinue", 1).Int32("conversationId", 1)
		}
		reply, failed := say(b.Binary("payload", 0, []byte(message)).String("$db", c.DB).Doc())
		if failed != "" {
			return failed
		}
		answer := ""
		if v := reply.Lookup("payload"); v.Type == bson.TypeBinary {
			_, payload := v.Binary()
			answer = string(payload)
		}
		message, err = client.Step(answer)
		if reply.Lookup("done").Truthy() {
			break
		}
	}
	if err != nil || !client.Valid() {
		return "Authentication failed."
	}
	return ""
}

// mechanism is the one to log in by, of those that hello tells.
func mechanism(hello bson.Doc) string {
	var offered []string
	if v := hello.Lookup("saslSupportedMechs"); v.Type == bson.TypeArray {
		for it := v.Doc().Iter(); it.Next(); {
			if m := it.Value(); m.Type == bson.TypeString {
				offered = append(offered, m.Str())
			}
		}
	}
	if len(offered) > 0 && !slices.Contains(offered, scram.SHA256) {
		return scram.SHA1
	}
	return scram.SHA256
}
