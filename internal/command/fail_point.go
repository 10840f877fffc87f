package command

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/failpoint"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/parameter"
)

// FailPoints are those that drivers' tests use. A server has them, and the commands that turn them on, only when it was started with
// enableTestCommands. One that is on stays on when the server's role in its replica set changes.
type FailPoints struct {
	// failCommand has commands fail before they begin, wait, lose their connection, or end with a write concern error.
	failCommand failpoint.Point
	// getMore is failGetMoreAfterCursorCheckout: it has a getMore fail, and its cursor end.
	getMore failpoint.Point
	// transactionalWrite is onPrimaryTransactionalWrite: it has a statement of a retryable write fail before it is committed, or lose
	// its connection.
	transactionalWrite failpoint.Point
	// alwaysTimeOut and neverTimeOut are maxTimeAlwaysTimeOut and maxTimeNeverTimeOut: the time of what has a maxTimeMS is over at once, or never.
	alwaysTimeOut, neverTimeOut failpoint.Point
	// Clock is the server's, which a test turns.
	Clock  *clock.Turned
	byName map[string]*failpoint.Point
}

// AddFailPoints makes the fail points, and shows them as parameters, and has a test turn c. It is nil unless enableTestCommands is set, and the
// parameters for tests are gone then.
func AddFailPoints(r *parameter.Registry, c clock.Clock) *FailPoints {
	if p := r.Lookup("enableTestCommands"); p == nil || !p.Get().Bool() {
		r.Remove(acceptAPI2Name)
		return nil
	}
	f := &FailPoints{Clock: clock.NewTurned(c)}
	f.byName = map[string]*failpoint.Point{"failCommand": &f.failCommand, "failGetMoreAfterCursorCheckout": &f.getMore,
		"maxTimeAlwaysTimeOut": &f.alwaysTimeOut, "maxTimeNeverTimeOut": &f.neverTimeOut, "onPrimaryTransactionalWrite": &f.transactionalWrite}
	for _, name := range slices.Sorted(maps.Keys(f.byName)) {
		p := f.byName[name]
		r.Add(&parameter.Parameter{Name: "failpoint." + name, Get: func() bson.Value { return p.Describe().Value() }})
	}
	return f
}

func doNothing(op *Op) (bson.Doc, error) {
	op.Args.Ignore(op.Name())
	return bson.EmptyDoc, op.Args.Done()
}

// testCommands are what only a server that was started with enableTestCommands has.
func testCommands() []*Command {
	return []*Command{
		{Name: "configureFailPoint", Doc: "Has something go wrong.", AdminOnly: true, NoAuth: true, Run: configureFailPoint},
		{Name: "ebbTurnClock", Needs: Needs{OnCluster: actions(privilege.SetParameter)}, Doc: "Has the server's clock be off by so many milliseconds, as that of a machine that was set wrong.", AdminOnly: true, Run: turnClock},
		{Name: version2, Doc: "A command that is not in version 1 of the stable API.", NoAuth: true, Run: doNothing},
		{Name: deprecatedIn2, Doc: "A command that is deprecated in version 2 of the stable API.", NoAuth: true, Run: doNothing},
		{Name: "waitForFailPoint", Doc: "Waits until something has gone wrong.", AdminOnly: true, NoAuth: true, Run: waitForFailPoint},
	}
}

func (op *Op) failPoint() (name string, p *failpoint.Point, err error) {
	if v := op.Args.Value(op.Name()); v.Type == bson.TypeString {
		name = v.Str()
	}
	if p = op.failPoints.byName[name]; p == nil {
		return name, nil, mongoerr.New(mongoerr.FailPointSetFailed, "%s not found", name)
	}
	return name, p, nil
}

func configureFailPoint(op *Op) (bson.Doc, error) {
	name, p, err := op.failPoint()
	if err != nil {
		return nil, err
	}
	setting, err := failpoint.Parse(op.Args.Document())
	if err != nil {
		return nil, err
	}
	entered := p.Set(setting)
	op.Log.Warn("Set failpoint", "failPointName", name, "failPoint", p.Describe().String())
	return bson.Build().Number("count", entered).Doc(), nil
}

func waitForFailPoint(op *Op) (bson.Doc, error) {
	_, p, err := op.failPoint()
	entered, _ := op.Args.Int("timesEntered")
	op.Args.Required("timesEntered")
	if err == nil {
		err = op.Args.Done()
	}
	if err != nil {
		return nil, err
	}
	return bson.EmptyDoc, p.Await(op.Ctx, entered)
}

// maxOffsetMillis is how far a clock may be turned, forward and back: some thirty years.
const maxOffsetMillis = 1e12

func turnClock(op *Op) (bson.Doc, error) {
	op.Args.Ignore(op.Name())
	millis, _ := op.Args.IntIn("offsetMillis", -maxOffsetMillis, maxOffsetMillis)
	op.Args.Required("offsetMillis")
	if err := op.Args.Done(); err != nil {
		return nil, err
	}
	c := op.failPoints.Clock
	c.Turn(time.Duration(millis) * time.Millisecond)
	op.Log.Warn("Turned the clock", "offsetMillis", millis)
	return bson.Build().Date("date", clock.Millis(c)).Doc(), nil
}

// staged is what a fail point has the reply of a command be.
type staged struct {
	// labels take the place of the error's own when labelled is true.
	labels   []string
	labelled bool
	// concern is the writeConcernError; nil for none.
	concern bson.Doc
	// hangUp closes the connection without a reply.
	hangUp bool
}

// stage is what the fail points have made of the command so far.
func (op *Op) stage() *staged {
	if op.staged == nil {
		op.staged = &staged{}
	}
	return op.staged
}

func (s *staged) label(data bson.Doc) {
	labels := data.Lookup("errorLabels")
	if labels.Type != bson.TypeArray {
		return
	}
	s.labelled, s.labels = true, nil
	for it := labels.Doc().Iter(); it.Next(); {
		if v := it.Value(); v.Type == bson.TypeString {
			s.labels = append(s.labels, v.Str())
		}
	}
}

// isMeant says whether a fail point with the data is for the client, and for what is done to ns.
func (op *Op) isMeant(data bson.Doc, ns string) bool {
	for _, must := range [...]struct{ key, is string }{{"threadName", op.Conn.Client().Desc}, {"appName", op.appName()}, {"namespace", ns}} {
		if v := data.Lookup(must.key); !v.IsMissing() && (v.Type != bson.TypeString || v.Str() != must.is) {
			return false
		}
	}
	return true
}

// appName is the application's name, which the first hello may only just bring along.
func (op *Op) appName() string {
	if op.Conn.metadata != nil || op.Command.Name != "hello" && op.Command.Name != "isMaster" {
		return op.Conn.appName
	}
	if client := op.Args.Document().Lookup("client"); client.Type == bson.TypeObject {
		return applicationName(client.Doc())
	}
	return ""
}

// failsCommand says whether failCommand with the data is for this command.
func (op *Op) failsCommand(data bson.Doc) bool {
	if op.Command.Name == "configureFailPoint" || !op.isMeant(data, op.namespace()) {
		return false
	}
	if !data.Lookup("failAllCommands").IsMissing() {
		return true
	}
	names := data.Lookup("failCommands")
	if names.Type != bson.TypeObject && names.Type != bson.TypeArray {
		return false
	}
	for it := names.Doc().Iter(); it.Next(); {
		if v := it.Value(); v.Type == bson.TypeString && (strings.EqualFold(v.Str(), op.Command.Name) || op.table[v.Str()] == op.Command) {
			return true
		}
	}
	return false
}

func isTrue(data bson.Doc, key string) bool {
	v := data.Lookup(key)
	return v.Type == bson.TypeBool && v.Bool()
}

// failsWith is the code that the data says under key.
func failsWith(data bson.Doc, key string) (code mongoerr.Code, ok bool) {
	v := data.Lookup(key)
	if !v.IsNumber() {
		return 0, false
	}
	n, exact := v.AsInt64()
	return mongoerr.Code(n), exact
}

// failBegin does what failCommand says before the command begins.
func (op *Op) failBegin() error {
	data, on := op.failPoints.failCommand.Enter(func(data bson.Doc) bool {
		_, coded := failsWith(data, "errorCode")
		return (coded || isTrue(data, "closeConnection") || isTrue(data, "blockConnection")) && op.failsCommand(data)
	})
	if !on {
		return nil
	}
	op.stage().label(data)
	if isTrue(data, "blockConnection") {
		if err := op.block(data); err != nil {
			return err
		}
	}
	const text = "Failing command via 'failCommand' failpoint"
	code, coded := failsWith(data, "errorCode")
	switch {
	case isTrue(data, "closeConnection"):
		op.staged.hangUp = true
		return mongoerr.New(50985, text)
	case !coded || code == 0:
		return nil
	}
	err := mongoerr.New(code, text)
	if info := data.Lookup("errorExtraInfo"); info.Type == bson.TypeObject {
		err = err.WithExtra(info.Doc())
	}
	return err
}

// block waits for blockTimeMS.
func (op *Op) block(data bson.Doc) error {
	v := data.Lookup("blockTimeMS")
	ms, exact := v.AsInt64()
	switch {
	case !v.IsNumber() || !exact:
		return mongoerr.New(mongoerr.InvalidOptions, "must specify 'blockTimeMS' when 'blockConnection' is true")
	case ms < 0 || ms > maxMillis:
		return mongoerr.New(mongoerr.InvalidOptions, "'blockTimeMS' must be non-negative")
	}
	return clock.Wait(op.Ctx, op.Clock, time.Duration(ms)*time.Millisecond)
}

// failConcern gives the command the write concern error that failCommand says, once it has run.
func (op *Op) failConcern() {
	if !op.Command.WriteConcern {
		return
	}
	data, on := op.failPoints.failCommand.Enter(func(data bson.Doc) bool {
		return data.Lookup("writeConcernError").Type == bson.TypeObject && op.failsCommand(data)
	})
	if on {
		op.stage().label(data)
		op.staged.concern = data.Lookup("writeConcernError").Doc()
	}
}

// failGetMore does what failGetMoreAfterCursorCheckout says of a cursor on ns.
func (op *Op) failGetMore(ns string) error {
	if op.failPoints == nil {
		return nil
	}
	data, on := op.failPoints.getMore.Enter(func(data bson.Doc) bool { return op.isMeant(data, ns) })
	if !on {
		return nil
	}
	code, coded := failsWith(data, "errorCode")
	if !coded {
		code = mongoerr.InternalError
	}
	return mongoerr.New(code, "Hit the 'failGetMoreAfterCursorCheckout' failpoint")
}

// failWrite does what onPrimaryTransactionalWrite says, before what a statement of a retryable write has done is committed.
func (op *Op) failWrite() error {
	data, on := op.failPoints.transactionalWrite.Enter(func(bson.Doc) bool { return true })
	if !on {
		return nil
	}
	if data.Lookup("closeConnection").IsMissing() || isTrue(data, "closeConnection") {
		op.stage().hangUp = true
	}
	if code, coded := failsWith(data, "failBeforeCommitExceptionCode"); coded {
		return mongoerr.New(code, "Failing write for %s:%d due to failpoint. The write must not be reflected.", op.LSID, op.TxnNumber)
	}
	return nil
}

// limitTime has what is done with ctx end after some time, as maxTimeMS says; at once, or never, where a fail point does.
func (op *Op) limitTime(ctx context.Context, after time.Duration) (context.Context, context.CancelFunc, error) {
	if f := op.failPoints; f != nil {
		all := func(bson.Doc) bool { return true }
		if _, on := f.neverTimeOut.Enter(all); on {
			return ctx, func() {}, nil
		}
		if _, on := f.alwaysTimeOut.Enter(all); on {
			return nil, nil, mongoerr.From(context.DeadlineExceeded)
		}
	}
	ctx, cancel := clock.WithTimeout(ctx, op.Clock, after)
	return ctx, cancel, nil
}
