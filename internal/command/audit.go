package command

import (
	"errors"

	"github.com/ebbdb/ebb/internal/audit"
	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// The audit log is told what a command has done when the command is over, and before its client is: what was answered is there. What is
// told meanwhile waits in the Op. Where nobody audits nothing of this costs anything.

const (
	// auditSuccessName is the parameter that has commands be told that were allowed.
	auditSuccessName = "auditAuthorizationSuccess"
	// maxAuditedBytes is how long a command may be to be told whole, and maxAuditedName how long a name: who says them need not be anybody.
	maxAuditedBytes, maxAuditedName = 64 << 10, 1 << 10
)

// Results of logins in the audit log, beside that of a failed one.
const (
	mechanismUnavailable    mongoerr.Code = 334
	authenticationAbandoned mongoerr.Code = 337
	indexBuildAborted       mongoerr.Code = 276
)

func auditCommands() []*Command {
	return []*Command{
		{Name: "logApplicationMessage", Needs: Needs{OnCluster: actions(privilege.ApplicationMessage)}, Doc: "Puts a message into the audit log.", AdminOnly: true,
			Run: logApplicationMessage},
	}
}

func logApplicationMessage(op *Op) (bson.Doc, error) {
	a := op.Args
	a.Required(op.Name())
	text, _ := a.String(op.Name())
	if err := a.Done(); err != nil {
		return nil, err
	}
	op.tell("applicationMessage", bson.Build().String("msg", text).Doc())
	return bson.EmptyDoc, nil
}

// tell has the audit log be told of something that was done, and that lasts.
func (op *Op) tell(atype string, param bson.Doc) {
	op.tellResult(atype, param, 0, true)
}

// tellResult has it be told of something with its result.
func (op *Op) tellResult(atype string, param bson.Doc, result mongoerr.Code, lasting bool) {
	if op.Audit != nil {
		op.told = append(op.told, op.event(atype, param, result, lasting))
	}
}

func (op *Op) event(atype string, param bson.Doc, result mongoerr.Code, lasting bool) audit.Event {
	return audit.Event{Type: atype, At: clock.Millis(op.Clock), From: op.Conn.auditClient(), Param: param, Result: result, Lasting: lasting}
}

func (c *Conn) auditClient() *audit.Client {
	return &audit.Client{UUID: c.uuid, Local: c.Local, Remote: c.Remote, User: c.user.Load()}
}

// accountFor tells the audit log what the command has done, now that it is over. Where that fails, and is to end the server, the client learns
// of an error: nobody is told that something was done which the log does not know.
func (op *Op) accountFor() {
	if op.Command != nil && !op.Command.NoAuth {
		if err := op.accountForCheck(); err != nil {
			op.body, op.err = nil, err
			return
		}
	}
	if c := op.Command; c != nil && c.Audited != nil {
		switch {
		case op.err == nil:
			op.tell(c.Name, c.Audited(op))
		case errors.Is(op.err, kv.ErrUndetermined): // it may be done
			op.tellResult(c.Name, c.Audited(op), mongoerr.From(op.err).Code, true)
		}
	}
	if err := op.flushTold(); err != nil {
		op.body, op.err = nil, err
	}
}

// accountForCheck tells of the command that was refused, or that was allowed, where that is asked for.
func (op *Op) accountForCheck() error {
	var result mongoerr.Code
	switch {
	case mongoerr.Is(op.err, mongoerr.Unauthorized):
		result = mongoerr.Unauthorized
	case !op.entered || !op.flag(auditSuccessName):
		return nil
	}
	args := op.concealed()
	if len(args) > maxAuditedBytes {
		args = describeCommand(args, truncatedBytes)
	}
	param := bson.Build().String("command", op.Command.Name).String("ns", op.auditedNS()).Document("args", args).Doc()
	return op.write(op.event("authCheck", param, result, result != 0))
}

// auditedNS is the collection that the command names, or its database.
func (op *Op) auditedNS() string {
	_, v := op.Args.first()
	if op.Command.Name == "getMore" {
		v = op.Args.Document().Lookup("collection")
	}
	if v.Type != bson.TypeString || v.Str() == "" || op.Command.AdminOnly || op.Command.Audited != nil {
		return op.DB
	}
	return cutText(op.DB+"."+v.Str(), maxAuditedName)
}

// flushTold writes what was told.
func (op *Op) flushTold() (err error) {
	for _, e := range op.told {
		err = errors.Join(err, op.write(e))
	}
	op.told = nil
	return err
}

// write writes an event. Its error is the client's.
func (s *Server) write(e audit.Event) error {
	err := s.Audit.Write(e)
	if err == nil {
		return nil
	}
	if s.AuditFailed != nil {
		s.AuditFailed(err)
	}
	return mongoerr.New(mongoerr.InternalError, "the audit log cannot be written, which ends the server")
}

// TellStartup tells the audit log what the server was started with.
func (s *Server) TellStartup() {
	if s.Audit == nil {
		return
	}
	parameters := make([]bson.Value, 0, len(clusterTable()))
	for _, p := range clusterTable() {
		parameters = append(parameters, s.cluster.show(p).Value())
	}
	options := s.Parsed
	if options == nil {
		options = bson.EmptyDoc
	}
	_ = s.write(audit.Event{Type: "startup", At: clock.Millis(s.Clock), Lasting: true,
		Param: bson.Build().Document("startupOptions", options).Value("initialClusterServerParameters", bson.ArrayOf(parameters...)).Doc()})
}

// TellShutdown tells the audit log that the server ends, unless a command has ended it.
func (s *Server) TellShutdown() {
	if s.Audit != nil && !s.shutDown.Swap(true) {
		_ = s.write(audit.Event{Type: "shutdown", At: clock.Millis(s.Clock), Lasting: true})
	}
}

// tellGone tells the audit log of a connection that was in the midst of a login, or somebody's.
func (s *Server) tellGone(c *Conn) {
	if s.Audit == nil {
		return
	}
	event := audit.Event{At: clock.Millis(s.Clock), From: c.auditClient()}
	if l := c.login; l != nil {
		event.Type, event.Param, event.Result = "authenticate", loginParam(l.name().Name, l.name().DB, l.mechanism), authenticationAbandoned
		_ = s.write(event)
	}
	if user := event.From.User; user != nil {
		event.Type, event.Result = "logout", 0
		event.Param = logoutParam("Implicit logout due to client connection closure", user)
		_ = s.write(event)
	}
}

// auditSection is serverStatus's, of the audit log.
func (op *Op) auditSection(b *bson.Builder) {
	if op.Audit == nil {
		b.Bool("enabled", false)
		return
	}
	op.Audit.AppendStatus(b.Bool("enabled", true))
}
