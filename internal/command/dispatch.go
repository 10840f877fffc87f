package command

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/operation"
	"github.com/ebbdb/ebb/internal/wire"
)

// Request is one command as it came over a connection.
type Request struct {
	// Database is set for the old form of hello; otherwise the body's $db says it.
	Database       string
	Body           bson.Doc
	Sequences      []wire.Sequence
	ExhaustAllowed bool
	// NoReply: the client waits for no answer.
	NoReply bool
}

// Reply is the answer; see server.Reply.
type Reply struct {
	Body       bson.Doc
	MoreToCome bool
	Next       bson.Doc
	Close      bool
}

// Handle runs one command. It always has an answer: a user's mistake, a failure and a panic are error replies.
func (s *Server) Handle(ctx context.Context, conn *Conn, req Request) (reply Reply) {
	op := &conn.op
	op.Server, op.Conn, op.Sequences, op.ExhaustAllowed, op.Running = s, conn, req.Sequences, req.ExhaustAllowed, &operation.Operation{}
	defer func() {
		*op = Op{}
		conn.args.forget()
		if p := recover(); p != nil {
			s.Log.Error("operation panicked", "command", req.Body.FirstKey(), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			reply = Reply{Body: errorReply(mongoerr.New(mongoerr.InternalError, "the server failed in command %s: %v", req.Body.FirstKey(), p))}
		}
	}()
	body, err := op.run(ctx, req)
	if err != nil {
		return Reply{Body: errorReply(err), Close: s.isStopped()}
	}
	return Reply{Body: body, MoreToCome: op.MoreToCome, Next: op.Next, Close: op.Close}
}

func (op *Op) run(ctx context.Context, req Request) (bson.Doc, error) {
	op.Args = &op.Conn.args
	op.Args.reset("", req.Body, &op.Conn.names)
	name, _ := op.Args.first()
	if name == "" {
		return nil, mongoerr.New(mongoerr.CommandNotFound, "no such command: ''")
	}
	op.Command = op.Conn.command(op.table, name)
	if op.Command == nil {
		return nil, mongoerr.New(mongoerr.CommandNotFound, "no such command: '%s'", name)
	}
	op.Args.path = op.Command.Name
	if err := op.readDB(req); err != nil {
		return nil, err
	}
	if op.Command.AdminOnly && op.DB != "admin" {
		return nil, mongoerr.New(mongoerr.Unauthorized, "%s may only be run against the admin database.", name)
	}
	if err := op.readGeneric(); err != nil {
		return nil, err
	}
	if req.NoReply {
		op.WriteConcern.Buffered, op.WriteConcern.Unacknowledged = true, true
	}
	now := op.Clock.Now()
	op.Now = now.UnixMilli()
	return op.track(ctx, now)
}

func (op *Op) readDB(req Request) error {
	op.DB = req.Database
	if op.DB == "" {
		v := op.Args.Value("$db")
		if v.Type != bson.TypeString {
			return mongoerr.New(40414, "OP_MSG requests require a $db argument")
		}
		op.DB = op.Conn.names.of(v.Str())
	}
	return namespace.CheckDB(op.DB)
}

// track runs the command as an operation that currentOp shows, killOp stops and maxTimeMS ends.
func (op *Op) track(ctx context.Context, now time.Time) (bson.Doc, error) {
	r := op.Running
	r.Client, r.Kind, r.NS = op.Conn.Client(), op.Command.Kind, op.namespace()
	r.Command, r.LSID, r.Started = op.Args.Document(), op.LSID, now
	if r.Kind == "" {
		r.Kind = "command"
	}
	ctx = op.Ops.Start(ctx, r)
	defer op.Ops.Finish(r)
	if op.MaxTime > 0 {
		var cancel context.CancelFunc
		ctx, cancel = clock.WithTimeout(ctx, op.Clock, op.MaxTime)
		defer cancel()
	}
	op.Ctx = ctx
	if op.LSID != nil && !op.Command.NoSession {
		if err := op.Sessions.Use(op.SessionID, now); err != nil {
			return nil, err
		}
	}
	op.countCommand()
	body, err := op.perform()
	err = cause(ctx, err)
	op.finish(body, err)
	if err != nil {
		return nil, err
	}
	return op.withOK(body), nil
}

// build starts the reply, in memory that is used again for the connection's next one.
func (op *Op) build() *bson.Builder {
	b := &op.Conn.reply
	b.Reset(op.Conn.spare[:0])
	return b
}

// withOK is body with ok: 1, unless it says itself.
func (op *Op) withOK(body bson.Doc) bson.Doc {
	if !op.Conn.reply.Holds(body) {
		if body.Lookup("ok").IsMissing() {
			body = bson.BuildOn(make([]byte, 0, len(body)+16)).Fields(body).Double("ok", 1).Doc()
		}
		return body
	}
	body = op.Conn.reply.Reopen().Double("ok", 1).Doc()
	if cap(body) <= maxSpareBytes {
		op.Conn.spare = body[:0]
	}
	return body
}

// perform runs the command, once writes are let through when it writes.
func (op *Op) perform() (bson.Doc, error) {
	if op.Command.writes() {
		if err := op.Writes.Enter(op.Ctx); err != nil {
			return nil, err
		}
		defer op.Writes.Leave()
	}
	return op.Command.Run(op)
}

// writes says whether the command always writes. A pipeline that ends in a write enters the gate itself.
func (c *Command) writes() bool {
	return c.WriteConcern && c.Name != "aggregate" && c.Name != "mapReduce"
}

// cause is err, or why the operation's context ended when that is what err is about.
func cause(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	if e := mongoerr.From(err); e.Code != mongoerr.Interrupted && e.Code != mongoerr.InternalError && e.Code != mongoerr.MaxTimeMSExpired {
		return err
	}
	return mongoerr.From(context.Cause(ctx))
}

// namespace is what currentOp and the profiler show: the collection the command names, else the database's $cmd.
func (op *Op) namespace() string {
	_, v := op.Args.first()
	if op.Command.Name == "getMore" {
		v = op.Args.Document().Lookup("collection")
	}
	if v.Type != bson.TypeString || v.Str() == "" {
		return op.DB + ".$cmd"
	}
	return op.Conn.names.joined(op.DB, v.Str())
}

// errorReply is err in MongoDB's shape.
func errorReply(err error) bson.Doc {
	e := mongoerr.From(err)
	b := bson.Build().Double("ok", 0).String("errmsg", e.Message).Int32("code", int32(e.Code)).String("codeName", e.Code.Name())
	if e.Info != nil {
		b.Document("errInfo", e.Info)
	}
	b.Fields(e.Extra)
	if len(e.Labels) > 0 {
		b.Strings("errorLabels", e.Labels)
	}
	return b.Doc()
}
