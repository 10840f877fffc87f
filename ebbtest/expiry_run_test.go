package ebbtest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/ebbtest"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/serverlog"
)

// trial runs lines against a server and the truth:
//
//	run {…}, admin {…}   a command, and whether the server answers as the truth does
//	clock 500            has so many milliseconds pass; below zero it turns the clock back
//	step 7200000         sets the clock, forward or back, and no time passes; then a pass
//	hold 1700…           holds expiry at this time, or at "lastWrite"; "release" lets it go on
//	pass                 a pass of the TTL monitor
//	restart 0            closes the server and opens it again, where it has a folder; meanwhile somebody sets the clock
//	open 1 {find: …}     a cursor under a number
//	more 1 5             its next batch, of at most 5 documents
//	wave c 1000 300 {…}  inserts 300 documents with the same fields, from this _id on
//	days c 1700… 300 {…} the same with dates as _ids, a millisecond after the other
//	look 7               compares what can be seen, of many documents on some ways that the number chooses
//	validate             has the server look itself
//
// What goes wrong is a panic with a wrong.
type trial struct {
	folder  string // "" in memory
	clock   *ebbtest.Clock
	log     *serverlog.Log
	server  *ebb.Server
	stop    func()
	caller  *caller
	truth   *truth
	cursors map[string]*opened
	sent    int
	met     met
	counted met        // by the server since it was started, when it was asked last
	atOnce  int        // of counted
	ways    *rand.Rand // of a look
}

// wrong is what does not agree.
type wrong string

func failf(format string, args ...any) { panic(wrong(fmt.Sprintf(format, args...))) }

func must[T any](v T, err error) T {
	if err != nil {
		failf("%v", err)
	}
	return v
}

func newTrial(folder string) *trial {
	x := &trial{folder: folder, clock: ebbtest.NewClock(zero), truth: newTruth(zero.UnixMilli()), cursors: map[string]*opened{}, met: met{}}
	x.start()
	return x
}

func (x *trial) start() {
	x.log = serverlog.Discard()
	options := ebb.Options{Log: x.log.Logger(), Port: ebb.AnyPort, Engine: ebb.InMemory, Clock: x.clock, CacheBytes: 1 << 20, Parameters: map[string]string{
		"ttlMonitorSleepSecs": "2147483647",
		"ttlChangeGraceSecs":  strconv.FormatInt(x.truth.graceSecs, 10),
	}}
	if x.folder != "" {
		options.Engine, options.DBPath = ebb.Pebble, x.folder
	}
	for name, on := range map[string]bool{"ttlMonitorEnabled": x.truth.enabled, "ttlMonitorPrecise": x.truth.precise, "ttlHideExpired": x.truth.hideAll} {
		options.Parameters[name] = strconv.FormatBool(on)
	}
	x.server = must(ebb.Open(options))
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- x.server.Serve(ctx) }()
	x.caller = must(dial(x.server.Addr()))
	x.stop = func() {
		x.caller.Close()
		cancel()
		must(0, <-served)
		must(0, x.server.Close())
	}
	x.settle()
}

func (x *trial) settle() {
	must(0, x.server.Settle(context.Background()))
	if x.truth.active() {
		x.sweep()
	}
}

// readLog looks for what went wrong without anybody hearing of it.
func (x *trial) readLog() {
	lines, _ := x.log.Recent()
	for _, line := range lines {
		if (strings.Contains(line, `"s":"E"`) || strings.Contains(line, `"s":"W"`)) && !isExpected(line) {
			failf("the server logs %s", line)
		}
	}
}

// isExpected says whether a warning tells of what was asked for, of the machine's disk, or how the server was started.
func isExpected(line string) bool {
	return slices.ContainsFunc([]string{`"startupWarnings"`, "can't be used as a TTL index", "TTL: the clock is further ahead", "TTL: expiry is ", "store: the disk is nearly full", "store: the disk is slow"},
		func(text string) bool { return strings.Contains(line, text) })
}

// line runs a line. ran is false when it makes no sense now; then nothing has happened.
func (x *trial) line(line string) (ran bool) {
	verb, rest := first(line)
	x.sent++
	switch verb {
	case "run":
		return x.command("test", bson.MustDoc(rest))
	case "admin":
		return x.command("admin", bson.MustDoc(rest))
	case "clock":
		x.turn(must(strconv.ParseInt(rest, 10, 64)))
	case "pass":
		x.pass()
	case "step":
		x.step(must(strconv.ParseInt(rest, 10, 64)))
	case "hold":
		return x.hold(rest)
	case "restart":
		if x.folder == "" || x.truth.suspects { // of a clock that is not trusted the folder knows no more than a minute ago
			return false
		}
		x.restart(must(strconv.ParseInt(rest, 10, 64)))
	case "open":
		number, command := first(rest)
		return x.open(number, bson.MustDoc(command))
	case "more":
		number, size := first(rest)
		return x.more(number, must(strconv.Atoi(size)))
	case "wave":
		return x.command("test", wave(rest, func(i int) bson.Value { return bson.Int32(int32(i)) }))
	case "days":
		return x.command("test", wave(rest, func(i int) bson.Value { return bson.Date(int64(i)) }))
	case "look":
		x.look(must(strconv.ParseUint(rest, 10, 64)))
	case "validate":
		x.validate()
		x.readLog()
	default:
		failf("no such verb: %s", line)
	}
	return true
}

func (x *trial) pass() {
	must(0, x.server.SweepNow(context.Background()))
	if x.truth.enabled && !x.truth.heldUp() {
		x.sweep()
	}
	x.settle()
}

func (x *trial) restart(millis int64) {
	if x.hasDead() {
		x.met[metDead]++
	}
	x.countAll()
	x.stop()
	clear(x.cursors)
	x.met[metRestarts]++
	x.meanwhile(func() {
		x.truth.now += millis
		x.truth.restart()
	}, func() {
		x.clock.Step(time.Duration(millis) * time.Millisecond)
		x.start()
	})
	x.met[metDoubted] += btoi(x.truth.suspects)
}

func (x *trial) command(db string, command bson.Doc) (ran bool) {
	verb := command.FirstKey()
	name := ""
	if v := command.Lookup(verb); v.Type == bson.TypeString {
		name = v.Str()
	}
	before, hid, due := x.truth.colls[name], x.truth.hideAll, x.truth.hasDue()
	want, ok := x.truth.apply(command)
	if !ok {
		return false
	}
	x.met.note(verb, before, x.truth.colls[name])
	if hid != x.truth.hideAll && due {
		x.met[map[bool]string{true: metHideOff, false: metHideOn}[hid]]++
	}
	reply := x.call(db, command)
	x.settle()
	x.met[metRefused] += len(want.errors)
	want.compare(reply)
	x.met.noteHidden(&want, !x.truth.enabled || x.truth.heldUp())
	x.loosen(command)
	return true
}

func (x *trial) call(db string, command bson.Doc) bson.Doc {
	return must(x.caller.call(db, command))
}

// wave is an insert of many documents.
func wave(text string, id func(int) bson.Value) bson.Doc {
	name, rest := first(text)
	from, rest := first(rest)
	many, fields := first(rest)
	b := bson.Build().String("insert", name).Array("documents")
	for i := range must(strconv.Atoi(many)) {
		b.Document(bson.IndexKey(i), bson.Build().Value("_id", id(must(strconv.Atoi(from))+i)).Fields(bson.MustDoc(fields)).Doc())
	}
	return b.End().Bool("ordered", false).Doc()
}

// ask is a command that must not fail.
func (x *trial) ask(command bson.Doc) bson.Doc { return x.askIn("test", command) }

func (x *trial) askAdmin(command bson.Doc) bson.Doc { return x.askIn("admin", command) }

func (x *trial) askIn(db string, command bson.Doc) bson.Doc {
	reply := x.call(db, command)
	if !reply.Lookup("ok").Truthy() {
		failf("%s\nanswers %s", command.Text(), reply.Text())
	}
	return reply
}

func (o *outcome) compare(reply bson.Doc) {
	if code := int32(reply.Lookup("code").TruncInt64()); code != o.code {
		failf("the code is %d, not %d: %s", code, o.code, reply.Text())
	}
	if o.code != 0 {
		return
	}
	for name, n := range o.counts {
		if got := reply.Lookup(name).TruncInt64(); got != n {
			failf("%s is %d, not %d: %s", name, got, n, reply.Text())
		}
	}
	var errors []string
	if v := reply.Lookup("writeErrors"); !v.IsMissing() {
		for it := v.Doc().Iter(); it.Next(); {
			errors = append(errors, it.Value().Doc().Lookup("index").String()+" "+it.Value().Doc().Lookup("code").String())
		}
	}
	if !slices.Equal(errors, o.errors) {
		failf("the errors are %v, not %v: %s", errors, o.errors, reply.Text())
	}
	if o.value == "" {
		return
	}
	got := "null"
	if v := reply.Lookup("value"); v.Type == bson.TypeObject {
		got = canonical(v.Doc())
	}
	if got != o.value {
		failf("the value is\n%s, not\n%s", got, o.value)
	}
}

// turn has time pass; below zero it turns the clock back.
func (x *trial) turn(millis int64) {
	x.settle()
	doubted, before := x.truth.suspects, x.met[metSwept]
	x.meanwhile(func() {
		if millis < 0 {
			x.truth.isSet(millis)
		} else {
			x.truth.passes(millis)
		}
	}, func() { x.clock.Advance(time.Duration(millis) * time.Millisecond) })
	x.settle()
	if doubted && !x.truth.suspects {
		x.met[metTrusted] += x.met[metSwept] - before
	}
	x.met[metBack] += btoi(millis < 0)
}

// step sets the clock. Timers go by the time that passes, so a pass is what looks for documents that are due by another clock.
func (x *trial) step(millis int64) {
	x.settle()
	doubted := x.truth.suspects
	x.meanwhile(func() { x.truth.isSet(millis) }, func() { x.clock.Step(time.Duration(millis) * time.Millisecond) })
	must(0, x.server.Settle(context.Background()))
	x.pass()
	switch {
	case x.truth.suspects:
		x.met[metDoubted]++
	case doubted:
		x.met[metCorrected]++
	}
	x.met[metFarBack] += btoi(millis <= -smallStep)
}

// hold holds expiry, or releases it. ran is false where it would be chance at which time it is held.
func (x *trial) hold(where string) (ran bool) {
	value := bson.String(where)
	at, holds := x.truth.holdAt, true
	switch where {
	case "release":
		holds = false
	case "lastWrite":
		if !x.truth.holds && x.truth.noted == 0 {
			return false
		}
		if !x.truth.holds {
			at = x.truth.noted
		}
	default:
		at = must(strconv.ParseInt(where, 10, 64))
		value = bson.Date(at)
	}
	x.meanwhile(func() { x.truth.holdAt, x.truth.holds = at, holds }, func() {
		x.askAdmin(bson.Build().Int32("setParameter", 1).Value("ttlHold", value).Doc())
	})
	x.settle()
	want := bson.String("release")
	if holds {
		want = bson.Date(at)
		x.met[metHolds]++
	} else {
		x.met[metReleases]++
	}
	if got := x.askAdmin(bson.MustDoc("{getParameter: 1, ttlHold: 1}")).Lookup("ttlHold"); got.Text() != want.Text() {
		failf("ttlHold is %s, not %s", got.Text(), want.Text())
	}
	return true
}

// meanwhile changes the time of the truth, and then the server's. Of documents that were hidden and are not any more the server may
// decide whether they are there, unless expiry was held.
func (x *trial) meanwhile(truth, server func()) {
	before := x.truth.hiding()
	x.truth.change(truth)
	server()
	if x.truth.hiding() >= before {
		return
	}
	for _, o := range x.cursors {
		o.vague = true
	}
	for name, c := range x.truth.colls {
		if !slices.ContainsFunc(c.docs, func(d *truthDoc) bool { return d.ghost }) {
			continue
		}
		must(0, x.server.Settle(context.Background()))
		there := map[string]bool{}
		for _, doc := range x.all(bson.Build().String("find", name).Doc()) {
			there[canonical(doc)] = true
		}
		c.remove(func(d *truthDoc) bool { return d.ghost && !there[d.text] })
		for _, d := range c.docs {
			d.ghost = false
		}
	}
}

// all is everything that a find shows.
func (x *trial) all(find bson.Doc) (docs []bson.Doc) {
	reply := x.ask(bson.Build().Fields(find).Int32("batchSize", 1_000_000).Doc())
	for it := reply.Lookup("cursor").Doc().Lookup("firstBatch").Doc().Iter(); it.Next(); {
		docs = append(docs, it.Value().Doc())
	}
	if reply.Lookup("cursor").Doc().Lookup("id").Int64() != 0 {
		failf("%s has more than one batch", find.Text())
	}
	return docs
}

// opened is a cursor under way.
type opened struct {
	id      int64
	command bson.Doc
	coll    int // number of the collection
	name    string
	hint    string
	// loose: something happened to the collection or its indexes that may end the cursor.
	loose bool
	// vague: the clock was turned back, so that what was hidden when the cursor came by may be seen now.
	vague bool
	began map[int]*truthDoc // what could be seen at first
	came  map[int]int       // how often each document came
	last  map[int]*truthDoc // as it came last
}

func (x *trial) open(number string, command bson.Doc) (ran bool) {
	name := command.Lookup("find").Str()
	c := x.truth.colls[name]
	hint := command.Lookup("hint")
	if c == nil || hint.Type == bson.TypeString && (c.index(hint.Str()) == nil || !c.index(hint.Str()).isWhole()) || c.clustered && hint.Text() == "{ _id: 1 }" || c.capped > 0 {
		return false
	}
	o := &opened{command: command, name: name, coll: c.number, hint: hint.Text(), began: map[int]*truthDoc{}, came: map[int]int{}, last: map[int]*truthDoc{}}
	for _, d := range x.truth.seen(c, bson.EmptyDoc) {
		o.began[d.number] = d
	}
	x.cursors[number] = o
	x.take(number, c, x.ask(command), "firstBatch")
	return true
}

func (x *trial) more(number string, size int) (ran bool) {
	o := x.cursors[number]
	if o == nil {
		return false
	}
	reply := x.call("test", bson.Build().Int64("getMore", o.id).String("collection", o.name).Int32("batchSize", int32(size)).Doc())
	if !reply.Lookup("ok").Truthy() {
		if !o.loose {
			failf("%s\nends with %s", o.command.Text(), reply.Text())
		}
		delete(x.cursors, number)
		return true
	}
	c := x.truth.colls[o.name]
	if c == nil || c.number != o.coll {
		failf("%s\ngoes on after its collection has gone: %s", o.command.Text(), reply.Text())
	}
	x.take(number, c, reply, "nextBatch")
	return true
}

// take takes note of a batch: it shows documents as they are now. At the end, what was there all the time and has not been
// changed must have come exactly once. What was changed may have moved in an index to where the cursor had been, or was still
// to come; but not in natural order, nor in that of _id.
func (x *trial) take(number string, c *truthColl, reply bson.Doc, batch string) {
	o := x.cursors[number]
	now := map[string]*truthDoc{}
	for _, d := range x.truth.seen(c, bson.EmptyDoc) {
		now[d.text] = d
	}
	cursor := reply.Lookup("cursor").Doc()
	for it := cursor.Lookup(batch).Doc().Iter(); it.Next(); {
		d := now[canonical(it.Value().Doc())]
		if d == nil {
			failf("%s\nshows a document that is not there: %s", o.command.Text(), it.Value().Text())
		}
		if o.last[d.number] == d {
			failf("%s\nshows a document twice: %s", o.command.Text(), it.Value().Text())
		}
		o.came[d.number]++
		o.last[d.number] = d
	}
	o.id = cursor.Lookup("id").Int64()
	if o.id != 0 {
		return
	}
	delete(x.cursors, number)
	x.met[metCursors]++
	for _, d := range now {
		first, there := o.began[d.number]
		switch {
		case (first == d || there && o.isSteady()) && o.came[d.number] != 1 && !o.vague:
			failf("%s\nhas come to its end without %s", o.command.Text(), d.doc.Text())
		case there && first != d && o.came[d.number] != 1:
			x.met[metOutOf]++
		}
	}
}

// isSteady says whether documents stay where they are for the cursor when they are changed.
func (o *opened) isSteady() bool {
	return strings.Contains(o.hint, "natural") || o.hint == "{ _id: 1 }"
}

// loosen marks the cursors that a command may end.
func (x *trial) loosen(command bson.Doc) {
	verb := command.FirstKey()
	switch verb {
	case "drop", "renameCollection", "dropIndexes", "collMod":
	default:
		return
	}
	for _, o := range x.cursors {
		c := x.truth.colls[o.name]
		gone := c == nil || c.number != o.coll
		o.loose = o.loose || gone || command.Lookup(verb).Str() == o.name
	}
}
