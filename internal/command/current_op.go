package command

import (
	"context"
	"math"
	"strings"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/cursor"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/operation"
	"github.com/ebbdb/ebb/internal/session"
)

const (
	// maxInprogBytes is how much of the running operations one reply shows.
	maxInprogBytes = 15 << 20
	// truncatedBytes is how much of a command is shown when commands are cut, and of its comment beside it.
	truncatedBytes = 1000
	// untruncated has commands be shown whole.
	untruncated = math.MaxInt
	// ttlMonitor is what the TTL monitor's thread is called.
	ttlMonitor = "TTLMonitor"
)

func currentOpCommands() []*Command {
	return []*Command{
		{Name: "currentOp", Needs: Needs{Also: needsCurrentOperations}, Doc: "Shows what the server is doing.", AdminOnly: true, Run: currentOp},
	}
}

func currentOp(op *Op) (bson.Doc, error) {
	all := op.Args.Value("$all").Truthy()
	var whose *viewer // everybody's are one's own where nobody logs in
	if op.Args.Value("$ownOps").Truthy() {
		whose = op.viewer()
	}
	op.Args.Ignore("$truncateOps")
	filter := bson.Build()
	for it := op.Args.Document().Iter(); it.Next(); {
		switch it.Key() {
		case op.Name(), "$all", "$ownOps", "$truncateOps":
		default:
			if !isGeneric(it.Key()) {
				filter.Value(it.Key(), it.Value())
			}
		}
	}
	rows, err := matching(op.allOperations(op.Ctx, inprog{idle: all, sessions: true, truncate: true, whose: whose}), filter.Doc())
	if err != nil {
		return nil, err
	}
	b := bson.Build().Array("inprog")
	for i, row := range rows {
		b.Document(bson.IndexKey(i), row)
		if n := b.Len(); n > maxInprogBytes { // none is left out without a word
			return nil, mongoerr.New(mongoerr.BSONObjectTooLarge, "BSONObj size: %d (0x%X) is invalid. Size must be between 0 and %d(16MB)", n, n, bson.MaxInternalSize)
		}
	}
	b.End()
	if op.Writes.Locks() > 0 {
		b.Bool("fsyncLock", true).String("info", "use db.fsyncUnlock() to terminate the fsync write/snapshot lock")
	}
	return b.Doc(), nil
}

// matching is the rows that the filter takes.
func matching(rows []bson.Doc, filter bson.Doc) ([]bson.Doc, error) {
	if filter.IsEmpty() {
		return rows, nil
	}
	f, err := parseOperationFilter(filter)
	if err != nil {
		return nil, err
	}
	env := expr.NewParser(expr.Options{}).NewEnv()
	kept := rows[:0]
	for _, row := range rows {
		ok, err := f.Match(env, row)
		if err != nil {
			return nil, err
		}
		if ok {
			kept = append(kept, row)
		}
		env.Reset()
	}
	return kept, nil
}

// inprog is what is to be seen of the operations.
type inprog struct {
	// idle shows connections and threads that do nothing, too; cursors shows those that nobody is fetching from.
	idle, cursors bool
	// sessions shows transactions that wait for their next statement.
	sessions bool
	// truncate cuts long commands.
	truncate bool
	// whose operations are to be seen; nil for those of all.
	whose *viewer
}

// shows says whether what that client does is to be seen.
func (want *inprog) shows(c *operation.Client) bool {
	return want.whose == nil || want.whose.is(c.User)
}

// commandBytes is how long a command may be to be shown whole.
func (want *inprog) commandBytes() int {
	if want.truncate {
		return truncatedBytes
	}
	return untruncated
}

// allOperations describes what this server is doing, and those that read beside it.
func (s *Server) allOperations(ctx context.Context, want inprog) []bson.Doc {
	return append(s.operations(want), s.operationsBeside(ctx, want)...)
}

// operations describes what the server is doing, a document each in MongoDB's form.
func (s *Server) operations(want inprog) []bson.Doc {
	now := clock.Millis(s.Clock)
	var rows []bson.Doc
	open := s.Sessions.Open()
	monitorBusy, busy := false, map[int64]bool{}
	s.Ops.Each(func(o *operation.Operation) {
		monitorBusy = monitorBusy || o.Client.Desc == ttlMonitor
		busy[o.Client.ConnectionID] = true
		if !want.shows(o.Client) {
			return
		}
		rows = append(rows, s.describe(o, open, now, want.commandBytes()))
	})
	if want.idle {
		rows = append(rows, s.idle(&want, now, busy, monitorBusy)...)
	}
	if want.sessions {
		for i := range open {
			if open[i].Operation == 0 && open[i].Client != nil && want.shows(open[i].Client) {
				rows = append(rows, s.describeSession(&open[i]))
			}
		}
	}
	if want.cursors {
		for _, c := range s.Cursors.Idle() {
			if want.whose == nil || c.User != nil && want.whose.is(c.User.Name) {
				rows = append(rows, s.describeCursor(&c, want.commandBytes()))
			}
		}
	}
	return rows
}

// describe is one running operation; open are the transactions in progress.
func (s *Server) describe(o *operation.Operation, open []session.Open, now int64, commandBytes int) bson.Doc {
	micros := s.Ops.Micros(o)
	b := s.describeClient(o.Client, true, now).Bool("threaded", true).Int32("opid", int32(o.ID))
	if o.LSID != nil {
		b.Object("lsid").Value("id", o.LSID.Lookup("id")).Binary("uid", 0, session.UIDOf(o.Session)).End()
		s.appendTransactionOf(b, o, open)
	}
	b.Int64("secs_running", micros/1e6).Int64("microsecs_running", micros).String("op", o.Kind).String("ns", o.NS).
		Bool("redacted", false).Document("command", describeCommand(o.Command, commandBytes))
	if id := o.Stats.CursorID.Load(); id != 0 {
		if c, ok := s.Cursors.Busy(id); ok {
			s.appendCursor(b.Object("cursor"), &c, commandBytes)
			b.Int64("operationUsingCursorId", o.ID).End()
		}
	}
	if plan := o.Stats.PlanSummary(); plan != "" {
		b.String("planSummary", plan)
	}
	if o.Killed() {
		b.Bool("killPending", true)
	}
	if n := o.Stats.WriteConflicts.Load(); n > 0 {
		b.Int64("writeConflicts", n)
	}
	if o.Progress != nil {
		message, done, total := o.Progress()
		b.String("msg", message).Object("progress").Int64("done", done).Int64("total", total).End()
	}
	return b.Int32("numYields", 0).Object("locks").End().Bool("waitingForLock", o.Stats.WaitingForLock.Load()).Object("lockStats").End().
		Bool("waitingForFlowControl", false).Object("flowControlStats").End().Doc()
}

// describeClient begins the description of what c does, or of c alone when that is nothing.
func (s *Server) describeClient(c *operation.Client, active bool, now int64) *bson.Builder {
	b := bson.Build().String("type", "op").String("host", s.hostAndPort()).String("desc", c.Desc)
	if c.ConnectionID != 0 {
		b.Int64("connectionId", c.ConnectionID).String("client", c.Remote)
		if c.AppName != "" {
			b.String("appName", c.AppName)
		}
		if c.Metadata != nil {
			b.Document("clientMetadata", c.Metadata)
		}
	}
	b.Bool("active", active).String("currentOpTime", isoTime(now))
	appendUsers(b, "effectiveUsers", c.User)
	return b.
		Bool("isFromUserConnection", c.ConnectionID != 0)
}

// appendUsers appends who has logged in, if anybody has.
func appendUsers(b *bson.Builder, name string, user auth.Name) {
	if user != (auth.Name{}) {
		b.Array(name).Object("0").String("user", user.Name).String("db", user.DB).End().End()
	}
}

// idle describes the connections that are not busy, and the monitor when it is not.
func (s *Server) idle(want *inprog, now int64, busy map[int64]bool, monitorBusy bool) []bson.Doc {
	var rows []bson.Doc
	for _, c := range s.open.idle(busy) {
		if !want.shows(c) {
			continue
		}
		rows = append(rows, s.describeClient(c, false, now).Doc())
	}
	if !monitorBusy && s.Expiry != nil && want.whose == nil {
		rows = append(rows, s.describeMonitor(now))
	}
	return rows
}

// maxPausedShown is how many paused collections are named.
const maxPausedShown = 100

// describeMonitor is the TTL monitor while it sleeps, with what keeps it from deleting.
func (s *Server) describeMonitor(now int64) bson.Doc {
	b := s.describeClient(&operation.Client{Desc: ttlMonitor}, false, now)
	if s.TTL == nil {
		return b.Doc()
	}
	if held := s.TTL.Held(); held != "" {
		b.String("heldUpBy", held)
	}
	if paused := s.TTL.PausedIn(nil); len(paused) > 0 {
		b.Array("ttlPaused")
		for i, ns := range paused[:min(len(paused), maxPausedShown)] {
			b.String(bson.IndexKey(i), ns.String())
		}
		b.End()
	}
	return b.Doc()
}

// describeCommand is the command, or where it is longer than most the beginning of its text, and its comment.
func describeCommand(command bson.Doc, most int) bson.Doc {
	switch {
	case command == nil:
		return bson.EmptyDoc
	case len(command) <= most:
		return command
	}
	b := bson.Build().String("$truncated", strings.ToValidUTF8(command.Value().Beginning(most), ""))
	if comment := command.Lookup("comment"); !comment.IsMissing() {
		b.Value("comment", shownComment(comment))
	}
	return b.Doc()
}

// shownComment is a comment, or the beginning of one that is long: it must not make a long command long again.
func shownComment(v bson.Value) bson.Value {
	switch {
	case len(v.Data) <= truncatedBytes:
		return v
	case v.Type == bson.TypeString:
		return bson.String(cutText(v.Str(), truncatedBytes))
	}
	return bson.String(strings.ToValidUTF8(v.Beginning(truncatedBytes), ""))
}

// cutText is a text, or the beginning of one that has more than most bytes.
func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("...")], "") + "..."
}

// describeCursor is a cursor that waits for its next getMore.
func (s *Server) describeCursor(c *cursor.Description, commandBytes int) bson.Doc {
	b := bson.Build().String("type", "idleCursor").String("host", s.hostAndPort()).String("ns", c.NS)
	if c.LSID != "" {
		b.Document("lsid", session.Document(c.LSID))
	}
	if c.PlanSummary != "" {
		b.String("planSummary", c.PlanSummary)
	}
	if c.User != nil {
		appendUsers(b, "effectiveUsers", c.User.Name)
	}
	s.appendCursor(b.Object("cursor"), c, commandBytes)
	return b.End().Doc()
}

func (s *Server) appendCursor(b *bson.Builder, c *cursor.Description, commandBytes int) {
	b.Int64("cursorId", c.ID).Date("createdDate", c.Opened.UnixMilli()).Date("lastAccessDate", c.Used.UnixMilli()).
		Int64("nDocsReturned", c.Docs).Int64("nBatchesReturned", c.Batches).Bool("noCursorTimeout", c.NoTimeout).Bool("tailable", c.Tailable).Bool("awaitData", c.AwaitData)
	if c.Command != nil {
		b.Document("originatingCommand", describeCommand(s.concealedCommand(c.Command), commandBytes))
	}
}

// describeSession is a transaction that waits for its next statement.
func (s *Server) describeSession(o *session.Open) bson.Doc {
	b := bson.Build().String("type", "idleSession").String("host", s.hostAndPort()).String("desc", "inactive transaction").
		String("client", o.Client.Remote).Int64("connectionId", o.Client.ConnectionID).String("appName", o.Client.AppName).
		Document("clientMetadata", describeCommand(o.Client.Metadata, untruncated)).Document("lsid", session.Document(o.Session))
	s.appendTransaction(b, o)
	return b.Bool("waitingForLock", false).Bool("active", false).Object("locks").End().Object("lockStats").End().
		Bool("waitingForFlowControl", false).Object("flowControlStats").End().Doc()
}

// appendTransactionOf appends the transaction that o is at, or the number of the retryable write that it is.
func (s *Server) appendTransactionOf(b *bson.Builder, o *operation.Operation, open []session.Open) {
	for i := range open {
		if open[i].Operation == o.ID {
			s.appendTransaction(b, &open[i])
			return
		}
	}
	if number := o.Command.Lookup("txnNumber"); number.Type == bson.TypeInt64 {
		b.Object("transaction").Object("parameters").Value("txnNumber", number).End().End()
	}
}

func (s *Server) appendTransaction(b *bson.Builder, o *session.Open) {
	now := s.Clock.Now()
	whole, active := now.Sub(o.Started), o.Active(now)
	level, source := o.ReadConcern, "clientSupplied"
	if level == "" {
		level, source = "local", "implicitDefault"
	}
	b.Object("transaction").Object("parameters").Int64("txnNumber", o.Number).Int32("txnRetryCounter", 0).Bool("autocommit", false).
		Object("readConcern").String("level", level).String("provenance", source).End().End().
		Timestamp("readTimestamp", uint32(o.ReadTimestamp>>32), uint32(o.ReadTimestamp)).String("startWallClockTime", isoTime(o.Started.UnixMilli())).Int64("timeOpenMicros", whole.Microseconds()).
		Int64("timeActiveMicros", active.Microseconds()).Int64("timeInactiveMicros", (whole-active).Microseconds()).
		String("expiryTime", isoTime(o.Expires.UnixMilli())).End()
}

func isoTime(millis int64) string {
	return bson.Date(millis).Time().Format("2006-01-02T15:04:05.000-07:00")
}

// currentOpStage is what $currentOp shows, whose options the pipeline has checked.
func (s *Server) currentOpStage(ctx context.Context, spec bson.Doc, whose *viewer) []bson.Doc {
	if spec.Lookup("allUsers").Truthy() {
		whose = nil
	}
	return s.allOperations(ctx, inprog{idle: spec.Lookup("idleConnections").Truthy(), cursors: spec.Lookup("idleCursors").Truthy(),
		sessions: spec.Lookup("idleSessions").IsMissing() || spec.Lookup("idleSessions").Truthy(),
		truncate: spec.Lookup("truncateOps").Truthy(), whose: whose})
}

// sessionDocuments are the sessions of the users that the stage names, or of all; of its user's own where it says neither.
func (s *Server) sessionDocuments(spec bson.Doc, whose *viewer) []bson.Doc {
	var docs []bson.Doc
	uids := map[string]bool{}
	switch users := spec.Lookup("users"); {
	case !users.IsMissing():
		for _, v := range users.Doc().Values(nil) {
			uids[uidOf(v.Doc())] = true
		}
	case whose != nil && whose.user != nil && !spec.Lookup("allUsers").Truthy():
		uid := session.UID(whose.user.String())
		uids[string(uid[:])] = true
	}
	for _, live := range s.Sessions.Live() {
		if len(uids) == 0 || uids[string(session.UIDOf(live.ID))] {
			docs = append(docs, bson.Build().Document("_id", session.Document(live.ID)).Date("lastUse", live.LastUsed.UnixMilli()).Doc())
		}
	}
	return docs
}

// uidOf is the digest of {user, db}, of nobody where they are empty.
func uidOf(d bson.Doc) string {
	name := ""
	if n := (auth.Name{Name: d.Lookup("user").Str(), DB: d.Lookup("db").Str()}); n != (auth.Name{}) {
		name = n.String()
	}
	uid := session.UID(name)
	return string(uid[:])
}
