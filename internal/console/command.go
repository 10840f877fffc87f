package console

import (
	"net/http"
	"strconv"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/memory"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/wire"
)

// parseShare is how many times as large as its text a command may be while it is read: the text, what it is parsed into, and its BSON.
const parseShare = 8

// textShare is how many times as large as a reply its text may be, which is what is asked of the memory for it.
const textShare = 4

// appName is by which currentOp and the log know the console.
const appName = "Ebb console"

// connect begins a connection to the commands for one request.
func (s *Server) connect(r *http.Request) *command.Conn {
	local := s.Addr()
	c := s.commands.ConnectOwn(s.opts.NextID(), r.RemoteAddr, local)
	c.SetMetadata(bson.Build().Object("application").String("name", appName).End().Object("driver").String("name", appName).String("version", s.opts.Version).End().Doc(), appName)
	return c
}

// serveCommand runs one command of a database as who has logged in.
func (s *Server) serveCommand(w http.ResponseWriter, r *http.Request, own *session, text []byte) {
	doc, err := bson.ParseJSON(text)
	if err != nil {
		refuse(w, http.StatusBadRequest, "the command is no extended JSON: "+err.Error())
		return
	}
	if len(doc) > wire.MaxMessageSize {
		refuse(w, http.StatusRequestEntityTooLarge, "the command is too large")
		return
	}
	conn := s.connect(r)
	defer s.commands.Disconnect(conn)
	if own.login != nil {
		conn.ActAs(own.login)
	}
	ctx, done := s.working(r)
	defer done()
	var account memory.Account
	account.Open(s.opts.Memory, memory.Replies)
	defer account.Close()
	reply := s.commands.Handle(ctx, conn, command.Request{Body: doc, Memory: &account})
	if reply.Body == nil { // as a driver's connection would be closed
		refuse(w, http.StatusBadGateway, "the command ended without a reply")
		return
	}
	if err := account.Wait(ctx, textShare*int64(len(reply.Body))); err != nil {
		reply.Body = mongoerr.Reply(err)
	}
	out, err := reply.Body.CanonicalJSON()
	if err != nil {
		out, _ = mongoerr.Reply(mongoerr.New(mongoerr.InternalError, "the reply has no form as JSON: %v", err)).CanonicalJSON()
	}
	w.Header().Set(nowHeader, strconv.FormatInt(s.commands.Now().UnixMilli(), 10))
	write(w, http.StatusOK, out)
}
