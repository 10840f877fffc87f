package command

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/memory"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/serverlog"
	"github.com/ebbdb/ebb/internal/storage/witness"
	"github.com/ebbdb/ebb/internal/wire"
)

// Request is one command as it came over a connection.
type Request struct {
	// Body says in $db where it runs.
	Body           bson.Doc
	Sequences      []wire.Sequence
	ExhaustAllowed bool
	// NoReply: the client waits for no answer.
	NoReply bool
	// Lasting is the context of what goes on when the client hangs up; nil where that is as any other.
	Lasting context.Context
	// Memory is what the reply takes its memory from; nil where nobody counts it.
	Memory *memory.Account
}

// Reply is the answer; see server.Reply.
type Reply struct {
	// Body is nil where the connection is closed without a reply.
	Body       bson.Doc
	MoreToCome bool
	Next       bson.Doc
	Close      bool
}

// Handle runs one command. It always has an answer: a user's mistake, a failure and a panic are error replies.
func (s *Server) Handle(ctx context.Context, conn *Conn, req Request) (reply Reply) {
	op := &conn.op
	op.Server, op.Conn, op.Sequences, op.ExhaustAllowed, op.Running = s, conn, req.Sequences, req.ExhaustAllowed, conn.operation()
	op.ReplyMemory = req.Memory
	defer func() { reply = op.end(reply, recover()) }()
	op.body, op.err = op.run(ctx, req)
	op.awaitDurable()
	if op.Audit != nil {
		op.accountFor()
	}
	return op.reply()
}

// reply tells how the operation ended.
func (op *Op) reply() Reply {
	if op.entered {
		op.finish(op.body, op.err)
	}
	if op.staged != nil && op.staged.hangUp {
		return Reply{Close: true}
	}
	if op.err != nil {
		return Reply{Body: op.failure(), Close: op.isStopped()}
	}
	if op.entered {
		op.body = op.withOK(op.body)
	}
	return Reply{Body: op.body, MoreToCome: op.MoreToCome, Next: op.Next, Close: op.Close}
}

// end leaves nothing of the operation. panicked is what it panicked with, nil as a rule.
func (op *Op) end(reply Reply, panicked any) Reply {
	if panicked != nil {
		reply = op.lament(panicked)
	}
	if op.entered && op.Ops.Finish(op.Running) && op.brief && panicked == nil {
		op.Running.Clear()
		op.Conn.running = op.Running
	}
	if op.ran && op.Replica != nil && op.Command.writes() {
		op.Conn.hasWritten = true
	}
	op.parsing.Close()
	op.Conn.args.forget()
	if op.Conn.reply.Cap() > maxSpareBytes { // kept until the connection's next command it would be memory that nobody counts
		op.Conn.reply = bson.Builder{}
	}
	*op = Op{}
	return reply
}

// lament is the reply of an operation that panicked. What it committed stays, as somebody may have seen it.
func (op *Op) lament(panicked any) Reply {
	name := op.Conn.args.Document().FirstKey()
	text := serverlog.Panic(panicked)
	if op.Command != nil && len(op.Command.secrets(op.DB, op.Conn.args.Document())) > 0 && text.Kind() == slog.KindLogValuer {
		text = slog.StringValue(concealed) // what it says may be a secret
	}
	op.Log.Error("operation panicked", "command", name, "panic", text, serverlog.Stack())
	if op.committed > 0 {
		_ = op.syncStore() // which is over when it fails
	}
	_ = op.flushTold() // the end of the server is on its way where that fails
	return Reply{Body: mongoerr.Reply(mongoerr.New(mongoerr.InternalError, "the server failed in command %s, and its log says why", name))}
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
	if err := op.readDB(); err != nil {
		return nil, err
	}
	if err := op.checkSequences(); err != nil {
		return nil, err
	}
	if op.Command.AdminOnly && op.DB != "admin" {
		return nil, op.notAdmin(name)
	}
	if err := op.readGeneric(); err != nil {
		return nil, err
	}
	if op.help {
		return bson.Build().String("help", "help for: "+op.Command.Name+" "+op.Command.Doc).Double("ok", 1).Doc(), nil
	}
	if op.Authorization {
		if err := op.authorize(ctx); err != nil {
			return nil, err
		}
	}
	if err := op.checkSaysAPI(); err != nil {
		return nil, err
	}
	if req.NoReply {
		op.WriteConcern.Buffered, op.WriteConcern.Unacknowledged = true, true
	}
	now, began := op.Clock.Read()
	op.Now = now.UnixMilli()
	if op.LSID != nil && !op.Command.NoSession && op.mayHaveSessions() {
		if err := op.Sessions.Use(op.SessionID, now); err != nil {
			return nil, err
		}
	}
	if op.Command.Lasts && req.Lasting != nil {
		ctx = req.Lasting
	}
	return op.track(ctx, now, began)
}

// checkSequences refuses document sequences that the command would not read.
func (op *Op) checkSequences() error {
	for _, s := range op.Sequences {
		switch {
		case op.Command.Sequences == nil:
			return mongoerr.New(40472, "The %s command does not support document sequences.", op.Command.Name)
		case !slices.Contains(op.Command.Sequences, s.Name):
			return mongoerr.New(40415, "BSON field '%s.%s' is an unknown field.", op.Command.Name, s.Name)
		}
	}
	return nil
}

// notAdmin is the error of a command that belongs to the admin database, and was sent to another. That it cannot be part of a
// transaction is said first.
func (op *Op) notAdmin(name string) error {
	if op.Replica != nil && !op.Command.runsInTransaction() && op.readGeneric() == nil && op.multi {
		return op.checkStatement()
	}
	return mongoerr.New(mongoerr.Unauthorized, "%s may only be run against the admin database.", name)
}

func (op *Op) readDB() error {
	v := op.Args.Value("$db")
	if v.Type != bson.TypeString {
		return mongoerr.New(40414, "OP_MSG requests require a $db argument")
	}
	op.DB = op.Conn.names.of(v.Str())
	if op.DB == externalDB { // in which there are users, and nothing else
		return nil
	}
	return namespace.CheckDB(op.DB)
}

// track runs the command as an operation that currentOp shows, killOp stops and maxTimeMS ends. The operation goes on until end.
func (op *Op) track(ctx context.Context, now time.Time, began time.Duration) (bson.Doc, error) {
	r := op.Running
	r.Client, r.Kind, r.NS = op.Conn.Client(), op.Command.Kind, op.namespace()
	r.Command, r.LSID, r.Session, r.Started, r.Began = op.concealed(), op.LSID, op.SessionID, now, began
	if r.Kind == "" {
		r.Kind = "command"
	}
	op.Ctx, op.entered = op.Ops.Start(ctx, r), true
	op.countCommand() // whatever ends it: finish counts failures
	if op.Audit != nil {
		op.Ctx = witness.With(op.Ctx, op.witness)
	}
	if op.failPoints != nil {
		if err := op.failBegin(); err != nil {
			return nil, cause(op.Ctx, err)
		}
	}
	if op.MaxTime > 0 {
		limited, cancel, err := op.limitTime(op.Ctx, op.MaxTime)
		if err != nil {
			return nil, err
		}
		defer cancel()
		op.Ctx = limited
	}
	body, err := op.answer()
	err = cause(op.Ctx, err)
	if err != nil && op.during != "" {
		err = mongoerr.During(op.during, err)
	}
	return body, err
}

// answer runs the command, in its transaction if it is part of one.
func (op *Op) answer() (bson.Doc, error) {
	if op.isForPrimary() {
		return op.atPrimary()
	}
	if err := op.checkMember(); err != nil {
		return nil, err
	}
	if op.toldTime != 0 {
		if err := op.followTold(); err != nil {
			return nil, err
		}
	}
	if op.after != 0 {
		if err := op.awaitClusterTime(); err != nil {
			return nil, err
		}
	}
	if err := op.awaitLinearizable(); err != nil {
		return nil, err
	}
	if err := op.takeForParsing(); err != nil {
		return nil, err
	}
	if op.past {
		var err error
		if op.snapshot, err = op.openSnapshot(); err != nil {
			return nil, err
		}
		op.isSnapshot = true
	}
	op.ran = true
	body, err := op.execute()
	if err == nil && op.Beside != nil {
		op.alsoBeside()
	}
	op.noteLeft()
	if err == nil && op.leftCommit() != nil && !op.Command.WriteConcern { // its reply cannot say that it is not known yet what becomes of it
		err = op.WriteConcern.unsatisfied
	}
	if op.readsDurable() || err == nil && op.confirms() {
		op.tellsDurable()
	}
	if op.failPoints != nil {
		op.failConcern()
	}
	if err == nil && op.WriteConcern.enough != nil {
		err = op.awaitMembers()
	}
	if err == nil && (op.Replica != nil && op.txn == nil || op.staged != nil) {
		body = op.withWritten(body)
	}
	return body, err
}

// execute runs the command.
func (op *Op) execute() (bson.Doc, error) {
	if op.multi {
		return op.inTransaction()
	}
	if op.retryable {
		return op.retryably()
	}
	return op.perform(op.Command.Run)
}

// withWritten is the reply of a write with what a member of a replica set adds to it.
func (op *Op) withWritten(body bson.Doc) bson.Doc {
	if !op.Command.WriteConcern {
		return body
	}
	b := op.extend(body, 96)
	switch op.Command.Name {
	case "insert", "update", "delete", "bulkWrite":
		op.appendOpTime(b)
	}
	if concern := op.appendConcernError(b); concern != 0 {
		appendLabels(b, op.labels(0, concern))
	}
	return b.Doc()
}

// extend goes on with a reply, in place if it is in the connection's memory, and has room for so many bytes otherwise.
func (op *Op) extend(body bson.Doc, room int) *bson.Builder {
	if op.Conn.reply.Holds(body) {
		return op.Conn.reply.Reopen()
	}
	return bson.BuildOn(make([]byte, 0, len(body)+room)).Fields(body)
}

// build starts the reply, in memory that is used again for the connection's next one.
func (op *Op) build() *bson.Builder {
	b := &op.Conn.reply
	b.Reset(op.Conn.spare[:0])
	return b
}

// withOK is body with ok: 1, unless it says itself, and with what a member of a replica set says in each reply.
func (op *Op) withOK(body bson.Doc) bson.Doc {
	own := op.Conn.reply.Holds(body)
	says := !own && !body.Lookup("ok").IsMissing()
	if says && op.Replica == nil {
		return body
	}
	b := op.extend(body, 16+timesRoom)
	if !says {
		b.Double("ok", 1)
	}
	op.appendTimes(b)
	body = b.Doc()
	if own && cap(body) <= maxSpareBytes {
		op.Conn.spare = body[:0]
	}
	return body
}

// timesRoom is how many bytes appendTimes appends.
const timesRoom = 160

// perform runs the command, once writes are let through when it writes.
func (op *Op) perform(run func(*Op) (bson.Doc, error)) (bson.Doc, error) {
	if op.Conn.applying == 0 && (op.Command.writes() || op.writesItsResult()) { // applyOps has entered before
		if err := op.enterWrites(); err != nil {
			return nil, err
		}
		defer op.Writes.Leave()
		if op.writesBlocked.Load() != nil {
			if err := op.checkCommandBlocked(); err != nil {
				return nil, err
			}
		}
	}
	if op.Command.ChangesTTL && op.txn == nil { // whose commit takes note
		return op.noted(run)
	}
	return run(op)
}

// writesItsResult says whether an aggregation or a map-reduce puts what it gives into a collection.
func (op *Op) writesItsResult() bool {
	switch op.Command.Name {
	case "aggregate":
		stages := op.Args.Document().Lookup("pipeline")
		if stages.Type != bson.TypeArray {
			return false
		}
		last := bson.Missing
		for it := stages.Doc().Iter(); it.Next(); {
			last = it.Value()
		}
		return last.Type == bson.TypeObject && (last.Doc().FirstKey() == "$out" || last.Doc().FirstKey() == "$merge")
	case "mapReduce":
		out := op.Args.Document().Lookup("out")
		return out.Type == bson.TypeString || out.Type == bson.TypeObject && out.Doc().Lookup("inline").IsMissing()
	}
	return false
}

// enterWrites waits for writes to be let in, and shows while it does.
func (op *Op) enterWrites() error {
	if op.Writes.TryEnter() {
		return nil
	}
	waiting := &op.Running.Stats.WaitingForLock
	waiting.Store(true)
	defer waiting.Store(false)
	return op.Writes.Enter(op.Ctx)
}

// writes says whether the command always writes. A pipeline that ends in a write enters the gate itself.
func (c *Command) writes() bool {
	return c.WriteConcern && c.Name != "aggregate" && c.Name != "mapReduce"
}

// cause is err, or why the operation's context ended when that is what err is about. That nobody knows what became of a commit is more to tell.
func cause(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || errors.Is(err, kv.ErrUndetermined) {
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
