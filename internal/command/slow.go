package command

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net"
	"time"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/operation"
	"github.com/ebbdb/ebb/internal/query"
	"github.com/ebbdb/ebb/internal/serverlog"
	"github.com/ebbdb/ebb/internal/session"
)

// What an operation has done is told twice when it is worth it: in the log when it was slow, and in its database's
// system.profile as the profiling level says. A filter takes the place of slowness and sampling. Both happen once the
// operation is over and before its reply, so that a client finds in system.profile what it did before.

// finished is an operation, or one statement of a write, that is over.
type finished struct {
	*operation.Operation
	// originating is the command that opened the cursor of a getMore.
	originating bson.Doc
	// comment is that of the command which a statement is part of, or which opened the cursor of a getMore.
	comment bson.Value
	micros  int64
	err     error
	// executed tells how its plan ran; nil when that is not known.
	executed executed
	// shape is the hash of a query's shape, which is found only when it is told: the query is parsed once more for it. nil where there is
	// none, "" where the query has none.
	shape func() string
}

// record hands the finished operation to the slow log and the profiler. Statements were recorded one by one; a command that
// waited long beside them, for the disk as a rule, is told none the less.
func (op *Op) record(micros int64, err error) {
	if op.Command.Quiet || op.statements > 0 && !op.waitedLong(micros-op.recordedMicros) {
		return
	}
	op.Server.record(op.DB, finished{op.Running, op.originating, op.originating.Lookup("comment"), micros, op.concealedError(err), op.executed, op.queryShapeHash})
}

// queryShapeHash is the hash of the shape of the command's query, or of that which has opened its cursor; "" where there is none.
func (op *Op) queryShapeHash() string {
	command := op.Args.Document()
	switch op.Command.Name {
	case "find", "distinct", "aggregate":
	case "getMore":
		command = op.originating
	default:
		return ""
	}
	if command == nil {
		return ""
	}
	shape, err := op.represent(command)
	if err != nil || shape.System != "" {
		return ""
	}
	return shape.Hash
}

// shapeHash is the hash of the operation's query, "" where there is none.
func (f finished) shapeHash() string {
	if f.shape == nil {
		return ""
	}
	return f.shape()
}

func (op *Op) waitedLong(micros int64) bool {
	return micros > max(int64(op.Profile.Of(op.DB).SlowMillis), defaultSlowMillis)*1000
}

// changesOfStatement are the fields of a statement, of a bulkWrite too, with what it writes.
var changesOfStatement = [...]string{"u", "updateMods", "c", "constants"}

// statement records one statement of a write that began then by the monotonic time. fill sets what it did.
func (op *Op) statement(kind string, ns namespace.NS, command bson.Doc, began time.Duration, err error, ran executed, fill func(*operation.Stats)) {
	op.statements++
	micros := (op.elapsed() - began).Microseconds()
	op.recordedMicros += micros
	op.usage.statement(kind, op.Conn.names.joined(ns.DB, ns.Coll), micros, err)
	if v := op.judge(ns.DB, micros); v.nothing() {
		return
	}
	command = toldStatement(command)
	if holdsCredentials(ns) {
		command = conceal(command, changesOfStatement[:])
		if err != nil {
			err = withoutWords(err)
		}
	}
	o := &operation.Operation{Client: op.Running.Client, Kind: kind, NS: ns.String(), Command: command, LSID: op.LSID, Session: op.SessionID}
	fill(&o.Stats)
	op.Server.record(ns.DB, finished{Operation: o, comment: op.Args.Document().Lookup("comment"), micros: micros, err: err, executed: ran})
}

// Wants is ttl.Recorder's: what is profiled is deleted so that the profile can tell.
func (s *Server) Wants(db string) bool { return s.Profile.Of(db).Level > 0 }

// RecordSweep is ttl.Recorder's: a sweep is a remove like any other.
func (s *Server) RecordSweep(o *operation.Operation, took time.Duration, err error) {
	s.record(namespace.Split(o.NS).DB, finished{Operation: o, micros: took.Microseconds(), err: err})
}

// verdict is what is to be told of an operation.
type verdict struct {
	log, profile bool
	// filter decides it where there is one, with all that is known of the operation.
	filter *match.Filter
	level  int32
}

func (v verdict) nothing() bool { return !v.log && !v.profile && v.filter == nil }

func (s *Server) judge(db string, micros int64) verdict {
	p := s.Profile.Of(db)
	if p.Filter != nil {
		return verdict{filter: p.Filter, level: p.Level}
	}
	slow := micros > int64(p.SlowMillis)*1000 && (p.SampleRate >= 1 || rand.Float64() < p.SampleRate)
	return verdict{log: slow, profile: p.Level >= 2 || p.Level == 1 && slow}
}

func (s *Server) record(db string, f finished) {
	v := s.judge(db, f.micros)
	if v.nothing() {
		return
	}
	doc := s.profileDocument(f)
	if v.filter != nil {
		matches, err := v.filter.Match(expr.NewParser(expr.Options{}).NewEnv(), doc)
		matches = matches && err == nil
		v.log, v.profile = matches, v.level >= 2 || v.level == 1 && matches
	}
	if v.log {
		s.logSlow(f)
	}
	if v.profile {
		s.profile(db, doc)
	}
}

// counts are the counters of an operation that say something, under their names in system.profile.
func (f finished) counts(each func(name string, n int64)) {
	st := &f.Stats
	if f.examines() {
		each("keysExamined", st.KeysExamined.Load())
		each("docsExamined", st.DocsExamined.Load())
	}
	for _, c := range []struct {
		name string
		n    int64
		show bool
	}{
		{"nMatched", st.Matched.Load(), f.Kind == "update"}, {"nModified", st.Modified.Load(), f.Kind == "update"},
		{"nUpserted", st.Upserted.Load(), f.Kind == "update"}, {"ninserted", st.Inserted.Load(), f.Kind == "insert"},
		{"ndeleted", st.Deleted.Load(), f.Kind == "remove"}, {"keysInserted", st.KeysInserted.Load(), f.Kind == "insert"},
		{"keysDeleted", st.KeysDeleted.Load(), false}, {"writeConflicts", st.WriteConflicts.Load(), false},
	} {
		if c.show || c.n > 0 {
			each(c.name, c.n)
		}
	}
}

// examines says whether the operation looks documents up.
func (f finished) examines() bool {
	switch f.Kind {
	case "query", "getmore", "update", "remove":
		return true
	}
	return f.Stats.PlanSummary() != ""
}

// maxProfiledBytes is how long a command may be to be profiled whole, and a text of an error: mongod's appendMaxElementSize. The log cuts
// what is long itself.
const maxProfiledBytes = 50 << 10

// command is the operation's command, with the comment that reached it from elsewhere unless it has one of its own.
func (f finished) command(most int) bson.Doc {
	d := describeCommand(f.Command, most)
	if f.comment.IsMissing() || !d.Lookup("comment").IsMissing() {
		return d
	}
	return bson.Build().Fields(d).Value("comment", shownComment(f.comment)).Doc()
}

// gives says whether the operation gives documents.
func (f finished) gives() bool {
	return f.Kind == "query" || f.Kind == "getmore" || f.Stats.Returned.Load() > 0
}

// maxExecStatsBytes is how long the description of a run may be to be profiled.
const maxExecStatsBytes = 64 << 10

// execStats is how the operation's plan ran; nil where there is none, or too much to tell.
func (f finished) execStats() bson.Doc {
	d := bson.Doc(nil)
	switch {
	case f.err != nil:
	case f.executed != nil:
		d = f.executed.ExecStats()
	case f.Kind == "query" && query.IsFoundByID(f.Stats.PlanSummary()):
		d = query.ExecStatsOfID(f.Stats.PlanSummary(), f.Stats.KeysExamined.Load(), f.Stats.DocsExamined.Load())
	}
	if len(d) > maxExecStatsBytes {
		return nil
	}
	return d
}

// profileDocument is what system.profile has of an operation.
func (s *Server) profileDocument(f finished) bson.Doc {
	st := &f.Stats
	redacts := s.flag(redactName)
	shown := func(d bson.Doc) bson.Doc {
		if redacts {
			return redact(d)
		}
		return d
	}
	b := bson.Build().String("op", f.Kind).String("ns", f.NS).Document("command", shown(f.command(maxProfiledBytes)))
	if f.originating != nil {
		b.Document("originatingCommand", shown(describeCommand(s.concealedCommand(f.originating), maxProfiledBytes)))
	}
	if id := st.CursorID.Load(); id != 0 {
		b.Int64("cursorid", id)
	}
	f.counts(func(name string, n int64) { b.Number(name, n) })
	if st.HasSortStage.Load() {
		b.Bool("hasSortStage", true)
	}
	if st.UsedDisk.Load() {
		b.Bool("usedDisk", true)
	}
	if st.CursorExhausted.Load() {
		b.Bool("cursorExhausted", true)
	}
	b.Int32("numYield", 0)
	if f.gives() {
		b.Number("nreturned", st.Returned.Load())
	}
	if f.err != nil {
		e := mongoerr.From(f.err)
		text := cutText(e.Message, maxProfiledBytes)
		if redacts {
			text = redactedText
		}
		b.Double("ok", 0).String("errMsg", text).String("errName", e.Code.Name()).Int32("errCode", int32(e.Code))
	}
	b.Object("locks").End().Object("flowControl").End()
	if f.Client.ConnectionID != 0 {
		if n := st.ResponseBytes.Load(); n > 0 {
			b.Number("responseLength", n)
		}
		b.String("protocol", "op_msg")
	}
	b.Number("millis", f.micros/1000)
	if plan := st.PlanSummary(); plan != "" {
		b.String("planSummary", plan)
	}
	if hash := f.shapeHash(); hash != "" {
		b.String("queryShapeHash", hash)
	}
	if d := f.execStats(); d != nil && !redacts { // in which what was looked for is
		b.Document("execStats", d)
	}
	return s.whoAndWhen(b, f).Doc()
}

func (s *Server) whoAndWhen(b *bson.Builder, f finished) *bson.Builder {
	b.Date("ts", clock.Millis(s.Clock)).String("client", hostOf(f.Client.Remote))
	if f.Client.AppName != "" {
		b.String("appName", f.Client.AppName)
	}
	b.Array("allUsers")
	user := ""
	if u := f.Client.User; u != (auth.Name{}) {
		b.Object("0").String("user", u.Name).String("db", u.DB).End()
		user = u.String()
	}
	if f.Client.ConnectionID == 0 {
		b.Object("0").String("user", "__system").String("db", "local").End()
		user = "__system@local"
	}
	return b.End().String("user", user)
}

// hostOf is "host:port" without the port.
func hostOf(remote string) string {
	if host, _, err := net.SplitHostPort(remote); err == nil {
		return host
	}
	return remote
}

// logSlow writes mongod's line on a slow operation.
func (s *Server) logSlow(f finished) {
	st := &f.Stats
	attrs := []any{"type", logType(f.Kind), "isFromUserConnection", f.Client.ConnectionID != 0, "ns", f.NS}
	if f.Client.AppName != "" {
		attrs = append(attrs, "appName", f.Client.AppName)
	}
	attrs = append(attrs, "command", loggedDoc(f.command(untruncated)))
	if f.originating != nil {
		attrs = append(attrs, "originatingCommand", loggedDoc(s.concealedCommand(f.originating)))
	}
	if plan := st.PlanSummary(); plan != "" {
		attrs = append(attrs, "planSummary", plan)
	}
	if hash := f.shapeHash(); hash != "" {
		attrs = append(attrs, "queryShapeHash", hash)
	}
	f.counts(func(name string, n int64) { attrs = append(attrs, name, n) })
	if st.HasSortStage.Load() {
		attrs = append(attrs, "hasSortStage", true)
	}
	attrs = append(attrs, "numYields", 0)
	if f.gives() {
		attrs = append(attrs, "nreturned", st.Returned.Load())
	}
	if f.err != nil {
		e := mongoerr.From(f.err)
		attrs = append(attrs, "ok", 0, "errMsg", serverlog.Client(e.Message), "errName", e.Code.Name(), "errCode", int32(e.Code))
	}
	if f.Client.ConnectionID != 0 {
		if n := st.ResponseBytes.Load(); n > 0 {
			attrs = append(attrs, "reslen", n)
		}
		attrs = append(attrs, "remote", f.Client.Remote, "protocol", "op_msg")
	}
	s.Log.Info("Slow query", append(attrs, slog.Int64("durationMillis", f.micros/1000), "ctx", f.Client.Desc)...)
}

// logTransaction writes mongod's line on a transaction that was open for long.
func (s *Server) logTransaction(o *session.Open, committed bool) {
	now := s.Clock.Now()
	whole := now.Sub(o.Started)
	if p := s.Profile.Of("admin"); whole <= time.Duration(p.SlowMillis)*time.Millisecond || p.SampleRate < 1 && rand.Float64() >= p.SampleRate {
		return
	}
	active, cause := o.Active(now), "aborted"
	if committed {
		cause = "committed"
	}
	b := bson.Build().Document("lsid", session.Document(o.Session)).Int64("txnNumber", o.Number).Bool("autocommit", false)
	if o.ReadConcern != "" {
		b.Object("readConcern").String("level", o.ReadConcern).End()
	}
	attrs := []any{"parameters", b.Doc().JSON(), "readTimestamp", "Timestamp(0, 0)"}
	st := o.Stats
	for _, c := range []struct {
		name string
		n    int64
	}{{"keysExamined", st.KeysExamined.Load()}, {"docsExamined", st.DocsExamined.Load()}, {"nMatched", st.Matched.Load()}, {"nModified", st.Modified.Load()},
		{"ninserted", st.Inserted.Load()}, {"ndeleted", st.Deleted.Load()}, {"nUpserted", st.Upserted.Load()}, {"keysInserted", st.KeysInserted.Load()},
		{"keysDeleted", st.KeysDeleted.Load()}, {"writeConflicts", st.WriteConflicts.Load()}} {
		if c.n > 0 {
			attrs = append(attrs, c.name, c.n)
		}
	}
	s.Log.Info("transaction", append(attrs, "terminationCause", cause, "timeActiveMicros", active.Microseconds(),
		"timeInactiveMicros", (whole-active).Microseconds(), "numYields", 0, "wasPrepared", false, slog.Int64("durationMillis", whole.Milliseconds()))...)
}

// logType is what the log calls a kind of operation.
func logType(kind string) string {
	switch kind {
	case "insert", "update", "remove":
		return kind
	}
	return "command"
}

// profileBytes is the size of a system.profile.
const profileBytes = 1 << 20

// profileWait is how long an operation waits for a majority to have its own description.
const profileWait = 100 * time.Millisecond

// profile adds doc to db's system.profile. While writes are locked out nothing is added: an operation does not wait for its
// own description, or only for a moment.
func (s *Server) profile(db string, doc bson.Doc) {
	if !s.Writes.TryEnter() {
		return
	}
	defer s.Writes.Leave()
	ctx := context.Background()
	if s.grouped() {
		within, cancel := clock.WithTimeout(ctx, clock.Wall(), profileWait)
		defer cancel()
		ctx = kv.WithPatience(within, &kv.Patience{Clock: clock.Wall()})
	}
	if err := s.addProfile(ctx, db, doc); err != nil && !s.isStopped() {
		s.Log.Warn("Caught Assertion while trying to profile operation", "db", db, "error", serverlog.Client(err))
	}
}

func (s *Server) addProfile(ctx context.Context, db string, doc bson.Doc) error {
	ns := namespace.NS{DB: db, Coll: systemProfile}
	if err := s.createCapped(ctx, ns, profileBytes, 0); err != nil {
		return err
	}
	return s.Query.Append(ctx, ns, doc, clock.Millis(s.Clock))
}

// createCapped makes a capped collection of the server's own, unless there is one.
func (s *Server) createCapped(ctx context.Context, ns namespace.NS, bytes, most int64) error {
	coll := s.Query.Store.Catalog().Collection(ns)
	switch {
	case coll == nil:
	case !coll.Options.Capped:
		return mongoerr.New(mongoerr.InvalidOptions, "%s exists but isn't capped", ns)
	default:
		return nil
	}
	options := bson.Build().Bool("capped", true).Int64("size", bytes)
	if most > 0 {
		options.Int64("max", most)
	}
	_, err := s.Query.Store.CreateCollection(ctx, ns, options.Doc())
	if mongoerr.Is(err, mongoerr.NamespaceExists) {
		return nil
	}
	return err
}
