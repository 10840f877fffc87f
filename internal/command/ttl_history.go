package command

import (
	"context"
	"sync"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/operation"
	"github.com/ebbdb/ebb/internal/serverlog"
	"github.com/ebbdb/ebb/internal/storage/witness"
	"github.com/ebbdb/ebb/internal/ttl"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// The history of expiry is local.ttl_history, a capped collection that is made with its first document: what was done to
// TTLs and by whom, what sweeps have deleted much, and when expiry was held. It is for people who ask later where their
// documents went. The log has the same.

const (
	// historyBytes is the size of a local.ttl_history, some fifty thousand documents.
	historyBytes = 16 << 20
	// maxHistoryPending is how many documents wait for writers to be let in again; later ones are lost, and counted.
	maxHistoryPending = 1000
	// muchSwept is how many documents a sweep deletes to have a place in the history.
	muchSwept = 1000
	// maxHistoryDue is how far what is due by a changed TTL is counted.
	maxHistoryDue = 100_000
)

var historyNS = namespace.NS{DB: "local", Coll: "ttl_history"}

// ttlHistory is what waits to be written of it, in the order of events. One at a time writes it, who may wait long for a majority; others need not wait for him.
type ttlHistory struct {
	mu struct {
		sync.Mutex
		pending []remembered
		lost    int64
		writing bool // somebody writes what is pending
	}
}

// remembered is a document that waits. done is closed when it is written, or cannot be for now; nil where it was.
type remembered struct {
	doc  bson.Doc
	done chan struct{}
}

// add has a document wait. done is closed when it does no more, or cannot be written for now; begins says that nobody writes: the caller has to.
func (h *ttlHistory) add(doc bson.Doc) (done <-chan struct{}, begins bool) {
	r := remembered{doc, make(chan struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.mu.pending) < maxHistoryPending {
		h.mu.pending = append(h.mu.pending, r)
	} else {
		h.mu.lost++
		close(r.done)
	}
	begins = !h.mu.writing
	h.mu.writing = true
	return r.done, begins
}

// takeLost is how many documents were lost, of which somebody tells now.
func (h *ttlHistory) takeLost() (n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n, h.mu.lost = h.mu.lost, 0
	return n
}

// first is the document to be written next. Where there is none, ok is false, and the caller writes no more.
func (h *ttlHistory) first() (doc bson.Doc, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.mu.pending) == 0 {
		h.mu.pending, h.mu.writing = nil, false
		return nil, false
	}
	return h.mu.pending[0].doc, true
}

// wrote takes the first one out.
func (h *ttlHistory) wrote() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.pending[0].release()
	h.mu.pending = h.mu.pending[1:]
}

// stop has what is pending wait for the next who adds something. The caller writes no more.
func (h *ttlHistory) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.mu.pending {
		h.mu.pending[i].release()
	}
	h.mu.writing = false
}

func (r *remembered) release() {
	if r.done != nil {
		close(r.done)
		r.done = nil
	}
}

// remember writes doc into the history, or later when nothing may be written now. inside says that the caller is among the
// writers.
func (s *Server) remember(doc bson.Doc, inside bool) {
	done, begins := s.history.add(doc)
	switch {
	case !begins:
		<-done
	case inside:
		s.writeHistory()
	default:
		s.writeHistoryInside()
	}
}

// remember is the Server's for an operation. In a set it waits no longer than for a commit of its own, whether that is for its turn or for a majority.
func (op *Op) remember(doc bson.Doc, inside bool) {
	if !op.grouped() {
		op.Server.remember(doc, inside)
		return
	}
	done, begins := op.Server.history.add(doc)
	if begins {
		op.Server.done.Go(op.Server.writeHistoryInside)
	}
	p := op.commitPatience()
	if op.impatient || p.Left != nil { // what the document tells of is itself on its way
		return
	}
	ctx := op.Ctx
	if p.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = clock.WithTimeout(ctx, p.Clock, p.Timeout)
		defer cancel()
	}
	select {
	case <-done:
	case <-ctx.Done():
		op.impatient = true
	}
}

// writeHistoryInside writes all that waits, if writers are let in.
func (s *Server) writeHistoryInside() {
	if !s.Writes.TryEnter() {
		s.history.stop()
		return
	}
	defer s.Writes.Leave()
	s.writeHistory()
}

// writeHistory writes all that waits, for the one who does. What fails waits for the next.
func (s *Server) writeHistory() {
	ended := false
	defer func() {
		if panicked := recover(); panicked != nil { // the operation that it was written for may be over
			s.Log.Error("writing the history of expiry panicked", "panic", serverlog.Panic(panicked), serverlog.Stack())
		}
		if !ended {
			s.history.stop()
		}
	}()
	err := s.writePending()
	if ended = err == nil; !ended && !s.isStopped() {
		s.Log.Warn("The history of expiry could not be written", "namespace", historyNS.String(), "error", serverlog.Client(err))
	}
}

func (s *Server) writePending() error {
	ctx, h := context.Background(), &s.history
	if err := s.createCapped(ctx, historyNS, historyBytes, 0); err != nil {
		return err
	}
	if n := h.takeLost(); n > 0 {
		if err := s.appendHistory(ctx, s.historyOf("lost").Int64("documents", n).Doc()); err != nil {
			return err
		}
	}
	for doc, ok := h.first(); ok; doc, ok = h.first() {
		if err := s.appendHistory(ctx, doc); err != nil {
			return err
		}
		h.wrote()
	}
	return nil
}

func (s *Server) appendHistory(ctx context.Context, doc bson.Doc) error {
	return s.Query.Append(ctx, historyNS, doc, clock.Millis(s.Clock))
}

// historyOf begins a document of the history.
func (s *Server) historyOf(event string) *bson.Builder {
	return bson.Build().Date("at", clock.Millis(s.Clock)).String("event", event)
}

// appendClient appends who asked, and from where.
func appendClient(b *bson.Builder, c *operation.Client, command string) {
	b.Object("by").String("command", command)
	if c != nil && c.Remote != "" {
		b.String("client", c.Remote).String("desc", c.Desc)
		if c.AppName != "" {
			b.String("appName", c.AppName)
		}
		if c.User != (auth.Name{}) {
			b.String("user", c.User.String())
		}
	}
	b.End()
}

// asked are the attributes of a log line that say who asked, and from where.
func (op *Op) asked() []any {
	c := op.Conn.Client()
	out := []any{"command", op.Command.Name, "client", c.Remote, "ctx", c.Desc}
	if c.AppName != "" {
		out = append(out, "appName", c.AppName)
	}
	if c.User != (auth.Name{}) {
		out = append(out, "user", c.User.String())
	}
	return out
}

// noted runs a command that may change TTLs, and takes note of those that its commits have changed.
func (op *Op) noted(run func(*Op) (bson.Doc, error)) (bson.Doc, error) {
	ctx := op.Ctx
	var commits []witness.Commit
	op.Ctx = witness.With(ctx, func(c witness.Commit) {
		if c.After != nil {
			commits = append(commits, witness.Commit{Before: c.Before, After: c.After})
		}
		witness.Tell(ctx, c)
	})
	reply, err := run(op)
	op.Ctx = ctx
	n := ttlNotes{op: op, reply: reply, left: op.leftCommit() != nil}
	for _, c := range commits {
		n.commit(c.Before, c.After)
	}
	return reply, err
}

// noteMade takes note of the TTLs of collections that a transaction has made, when it has committed, or has left its commit.
func (op *Op) noteMade(made []*catalog.Collection) {
	n := ttlNotes{op: op, reply: bson.EmptyDoc, left: op.leftCommit() != nil}
	for _, coll := range made {
		n.collection(nil, coll)
	}
}

// mayHaveChanged are the collections that the command is about, or its database.
func (op *Op) mayHaveChanged(c *catalog.Catalog) (colls []*catalog.Collection) {
	if op.Command.Name == "dropDatabase" {
		return c.Collections(op.DB)
	}
	names := []string{op.namespace()}
	if op.Command.Name == "renameCollection" {
		names = names[:0]
		for _, field := range [...]string{op.Command.Name, "to"} {
			if v := op.Args.Document().Lookup(field); v.Type == bson.TypeString {
				names = append(names, v.Str())
			}
		}
	}
	for _, name := range names {
		if coll := c.Collection(namespace.Split(name)); coll != nil {
			colls = append(colls, coll)
		}
	}
	return colls
}

// ttlNotes takes note of what one command has done to TTLs.
type ttlNotes struct {
	op    *Op
	reply bson.Doc
	left  bool // the change was left, and nobody sees it yet: what is told of it is behind it in the line, and there if it is
	told  bool // what became of hidden documents was
}

// commit compares the TTLs of what the command is about before one of its commits and after.
func (n *ttlNotes) commit(before, after *catalog.Catalog) {
	for _, coll := range n.op.mayHaveChanged(before) {
		n.collection(coll, after.ByID(coll.ID))
	}
	for _, coll := range n.op.mayHaveChanged(after) {
		if before.ByID(coll.ID) == nil {
			n.collection(nil, coll)
		}
	}
}

// collection compares the TTLs of a collection before and after; nil where it was or is not there.
func (n *ttlNotes) collection(before, after *catalog.Collection) {
	if before == after {
		return
	}
	if after != nil && after.Options.TTLPaused != (before != nil && before.Options.TTLPaused) {
		defer n.pause(after) // behind what was done to its TTLs
	}
	old, now := ttlsOf(before), ttlsOf(after)
	for i := range now.All() {
		rule := &now.All()[i]
		was, there := sameTTL(old, rule)
		switch {
		case !there:
			n.change("created", after, nil, rule)
		case was.Seconds != rule.Seconds || was.Cell != rule.Cell || was.Hides(false) != rule.Hides(false):
			n.change("changed", after, was, rule)
		}
	}
	for i := range old.All() {
		rule := &old.All()[i]
		if _, there := sameTTL(now, rule); !there {
			n.change("dropped", before, rule, nil)
		}
	}
}

func ttlsOf(coll *catalog.Collection) policy.Rules {
	if coll == nil || coll.IsView() {
		return policy.Rules{}
	}
	return coll.ExpiryRules()
}

// sameTTL is the rule's counterpart: that of the index with its name, which may have been built anew.
func sameTTL(rules policy.Rules, rule *policy.Rule) (*policy.Rule, bool) {
	for i := range rules.All() {
		if r := &rules.All()[i]; r.Name() == rule.Name() && r.Kind == rule.Kind {
			return r, true
		}
	}
	return nil, false
}

// change writes one change into the history and the log; old is nil for a TTL that is new, now for one that is gone.
func (n *ttlNotes) change(event string, coll *catalog.Collection, old, now *policy.Rule) {
	rule := now
	if rule == nil {
		rule = old
	}
	b := n.op.historyOf(event).String("ns", coll.NS.String())
	appendRuleName(b, rule.Name(), rule.Kind == policy.Series)
	b.String("field", rule.Field())
	attrs := []any{"namespace", coll.NS.String(), "index", rule.Name(), "field", rule.Field()}
	number := func(name string, v int64) {
		b.Int64(name, v)
		attrs = append(attrs, name, v)
	}
	if old != nil {
		number("old", old.Seconds)
	}
	if now != nil {
		number("new", now.Seconds)
		b.Bool("hidesExpired", now.Hides(n.op.flag("ttlHideExpired")))
		if due, ok := n.due(coll, now); ok && !n.left {
			number("wouldExpire", due)
		}
	}
	if !n.told {
		n.told = true
		for _, f := range hiddenFields {
			if v := n.reply.Lookup(f.reply); v.IsNumber() {
				number(f.name, v.TruncInt64())
			}
		}
	}
	if n.op.Audit != nil {
		n.op.tellTTL(b.Doc())
		b.Reopen()
	}
	appendClient(b, n.op.Conn.Client(), n.op.Command.Name)
	n.op.Log.Info("TTL "+event, append(attrs, n.op.asked()...)...)
	n.op.remember(b.Doc(), true)
}

// pause takes note of deleting that is paused in a collection, or goes on.
func (n *ttlNotes) pause(coll *catalog.Collection) {
	event := "resumed"
	if coll.Options.TTLPaused {
		event = "paused"
	}
	b := n.op.historyOf(event).String("ns", coll.NS.String())
	appendClient(b, n.op.Conn.Client(), n.op.Command.Name)
	n.op.Log.Info("TTL "+event, append([]any{"namespace", coll.NS.String()}, n.op.asked()...)...)
	n.op.remember(b.Doc(), true)
}

// hiddenFields are where a reply says what became of documents that were hidden, under their names in the history.
var hiddenFields = [...]struct{ name, reply string }{{"deleted", "deletedExpired"}, {"kept", "keptExpired"}}

// due is how many entries are due by a TTL now, counted up to maxHistoryDue.
func (n *ttlNotes) due(coll *catalog.Collection, rule *policy.Rule) (int64, bool) {
	view, err := n.op.Query.Store.View(n.op.Ctx)
	if err != nil {
		return 0, false
	}
	defer view.Close()
	r, ok := view.CollectionByID(coll.ID)
	if !ok {
		return 0, false
	}
	due, err := r.Dates().Count(rule, view.Now(), maxHistoryDue)
	return due, err == nil
}

// RecordVisit is ttl.Recorder's: a visit that has deleted much goes into the history.
func (s *Server) RecordVisit(v ttl.Visit) {
	if v.Deleted < muchSwept || v.NS == historyNS.String() {
		return
	}
	b := s.historyOf("sweep").String("ns", v.NS)
	appendRuleName(b, v.Index, v.Series)
	b.Date("cut", v.Cut).Int64("deleted", v.Deleted).Int64("atOnce", v.Swept).Int64("bytes", v.Bytes).
		Int64("durationMillis", v.Took.Milliseconds()).String("cause", v.Cause)
	s.remember(b.Doc(), false)
}

// RecordHold takes note of expiry that is held, or goes on, since the server has started with it.
func (s *Server) RecordHold() {
	if at, held := s.Query.Store.HeldAt(); held {
		b := s.historyOf("hold").Date("holdAt", at)
		appendClient(b, nil, "start")
		s.remember(b.Doc(), false)
	}
}

// noteHold takes note of a hold, or its end, that a client asked for.
func (op *Op) noteHold(was bson.Value) {
	at, held := op.Query.Store.HeldAt()
	var b *bson.Builder
	switch {
	case held:
		b = op.historyOf("hold").Date("holdAt", at)
	case was.Type == bson.TypeDate:
		b = op.historyOf("release").Value("heldAt", was)
	default:
		return
	}
	if op.Audit != nil {
		op.tellTTL(b.Doc())
		b.Reopen()
	}
	appendClient(b, op.Conn.Client(), op.Command.Name)
	op.remember(b.Doc(), false)
}
