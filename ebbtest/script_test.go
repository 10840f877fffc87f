package ebbtest_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	driver "go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/ebbtest"
	"github.com/ebbdb/ebb/internal/bson"
)

// zero is where a script's clock stands at first: @+5s in a script is the date five seconds later.
var zero = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// script runs lines against a server of its own, through the Go driver:
//
//	cmd {…}, admin {…}       a command, and its whole reply
//	ok {…}                   a command, of whose reply only errors are shown
//	show a,b {…}             a command, and these fields of its reply
//	index c {…}              createIndexes with one specification; d: 1 is enough of a key
//	insert c {…} …           documents; only errors are shown
//	find c {…}               the _ids of what is found
//	docs c {…}               the documents themselves
//	count c {…}              …
//	open c 2, more c         a cursor with that batch size, and all that is left of it; a hint may follow the size
//	agg c [ … ]              the results of a pipeline
//	advance 5s               turns the clock and lets the TTL monitor do what is due
//	step 5s                  sets the clock, backwards too: no time passes
//	sweep                    a pass now
//	history                  local.ttl_history, without the numbers of clients
//	fill c 2000 {…}          so many equal documents
//	manual                   no passes but those of sweep
type script struct {
	t      *testing.T
	srv    *ebbtest.Server
	client *mongo.Client
	// ctx has a session: those that the driver takes by itself change, and a cursor is of one.
	ctx    context.Context
	manual bool
	cursor int64
	out    strings.Builder
}

func newScript(t *testing.T) *script {
	s := &script{t: t, srv: ebbtest.Start(t, ebbtest.At(zero))}
	s.srv.Advance(0) // the monitor's first pass is over, and sees nothing of what comes
	client, err := mongo.Connect(options.Client().ApplyURI(s.srv.URI()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Disconnect(context.Background()) })
	session, err := client.StartSession()
	if err != nil {
		t.Fatal(err)
	}
	s.client, s.ctx = client, mongo.NewSessionContext(context.Background(), session)
	return s
}

// TestScripts runs testdata: each case is a list of lines under its id in section F, and what they print.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out string
			t.Run(d.CmdArgs[0].Key, func(t *testing.T) {
				s := newScript(t)
				for _, line := range strings.Split(strings.TrimSpace(d.Input), "\n") {
					s.line(strings.TrimSpace(line))
				}
				out = s.out.String()
			})
			if out == "" {
				return "ok\n"
			}
			return out
		})
	})
}

var relativeDate = regexp.MustCompile(`@([+-]\w+|0)`)

// dates puts dates where a script says @-10s.
func dates(text string) string {
	return relativeDate.ReplaceAllStringFunc(text, func(m string) string {
		d := time.Duration(0)
		if m != "@0" {
			var err error
			if d, err = time.ParseDuration(m[1:]); err != nil {
				panic(err)
			}
		}
		return fmt.Sprintf("Date(%d)", zero.Add(d).UnixMilli())
	})
}

var shownDate = regexp.MustCompile(`new Date\(-?\d+\)|ISODate\("[^"]*"\)`)

// relative shows the dates around zero as a script says them.
func relative(text string) string {
	return shownDate.ReplaceAllStringFunc(text, func(m string) string {
		t := bson.MustParse(m).Time()
		if d := t.Sub(zero); d.Abs() < 100_000*time.Hour {
			if d == 0 {
				return "@0"
			}
			sign := "+"
			if d < 0 {
				sign = ""
			}
			return "@" + sign + d.String()
		}
		return m
	})
}

func first(text string) (word, rest string) {
	word, rest, _ = strings.Cut(text, " ")
	return word, strings.TrimSpace(rest)
}

func (s *script) printf(format string, args ...any) { fmt.Fprintf(&s.out, format+"\n", args...) }

func (s *script) line(text string) {
	verb, rest := first(text)
	rest = dates(rest)
	word, arg := first(rest)
	switch verb {
	case "cmd":
		s.reply("test", bson.MustDoc(rest), nil)
	case "admin":
		s.reply("admin", bson.MustDoc(rest), nil)
	case "ok":
		s.reply("test", bson.MustDoc(rest), []string{})
	case "show":
		s.reply("test", bson.MustDoc(arg), strings.Split(word, ","))
	case "showAdmin":
		s.reply("admin", bson.MustDoc(arg), strings.Split(word, ","))
	case "index":
		s.reply("test", bson.Build().String("createIndexes", word).Value("indexes", bson.ArrayOf(spec(bson.MustDoc(arg)))).Doc(), []string{"note"})
	case "insert":
		s.reply("test", bson.Build().String("insert", word).Value("documents", bson.MustParse("["+arg+"]")).Doc(), []string{"writeErrors"})
	case "set":
		s.reply("admin", bson.Build().Int32("setParameter", 1).Value(word, bson.MustParse(arg)).Doc(), []string{})
		if !s.manual { // a parameter of the monitor wakes it: what it finds then is what is there now, and not what comes next
			s.srv.Advance(0)
		}
	case "find":
		s.found(word, arg, true)
	case "docs":
		s.found(word, arg, false)
	case "count":
		s.reply("test", bson.Build().String("count", word).Document("query", query(arg)).Doc(), []string{"n"})
	case "open":
		s.open(word, arg)
	case "more":
		s.more(word)
	case "agg":
		s.aggregate(word, arg)
	case "advance":
		d, err := time.ParseDuration(rest)
		if err != nil {
			s.t.Fatal(err)
		}
		if s.manual {
			s.srv.Clock.Advance(d)
		} else {
			s.srv.Advance(d)
		}
	case "step":
		d, err := time.ParseDuration(rest)
		if err != nil {
			s.t.Fatal(err)
		}
		s.srv.Step(d)
	case "history":
		s.history()
	case "fill":
		s.fill(word, arg)
	case "manual":
		s.manual = true
		s.reply("admin", bson.MustDoc("{setParameter: 1, ttlMonitorEnabled: false}"), []string{})
	case "sweep":
		s.sweep()
	default:
		s.t.Fatalf("no such verb: %s", text)
	}
}

var clientNumbers = regexp.MustCompile(`(, client|, desc): "[^"]*"`)

func (s *script) history() {
	reply, err := s.run("local", bson.MustDoc("{find: 'ttl_history', projection: {_id: 0}}"))
	if err != nil {
		s.t.Fatal(err)
	}
	for it := reply.Lookup("cursor").Doc().Lookup("firstBatch").Doc().Iter(); it.Next(); {
		s.printf("%s", clientNumbers.ReplaceAllString(relative(it.Value().Text()), ""))
	}
}

func (s *script) fill(coll, arg string) {
	n, doc, _ := strings.Cut(arg, " ")
	count, err := strconv.Atoi(n)
	if err != nil {
		s.t.Fatal(err)
	}
	b := bson.Build().String("insert", coll).Array("documents")
	for i := range count {
		b.Document(bson.IndexKey(i), bson.MustDoc(doc))
	}
	if _, err := s.run("test", b.End().Doc()); err != nil {
		s.t.Fatal(err)
	}
}

// sweep runs a pass, in a manual script too.
func (s *script) sweep() {
	if !s.manual {
		s.srv.SweepNow()
		return
	}
	s.reply("admin", bson.MustDoc("{setParameter: 1, ttlMonitorPrecise: false}"), []string{})
	s.reply("admin", bson.MustDoc("{setParameter: 1, ttlMonitorSleepSecs: 2147483647}"), []string{})
	s.reply("admin", bson.MustDoc("{setParameter: 1, ttlMonitorEnabled: true}"), []string{})
	s.srv.SweepNow()
	s.reply("admin", bson.MustDoc("{setParameter: 1, ttlMonitorEnabled: false}"), []string{})
}

// spec completes an index specification: {d: 1, expireAfterSeconds: 5} stands for the key {d: 1} under its usual name.
func spec(doc bson.Doc) bson.Value {
	if doc.Lookup("key").Type == bson.TypeObject {
		return doc.Value()
	}
	it := doc.Iter()
	it.Next()
	key := bson.Build().Value(it.Key(), it.Value()).Doc()
	direction := it.Value().String()
	if it.Value().Type == bson.TypeString {
		direction = it.Value().Str()
	}
	b := bson.Build().Document("key", key)
	if doc.Lookup("name").IsMissing() {
		b.String("name", it.Key()+"_"+direction)
	}
	for it.Next() {
		b.Value(it.Key(), it.Value())
	}
	return b.Doc().Value()
}

func query(text string) bson.Doc {
	if text == "" {
		return bson.EmptyDoc
	}
	return bson.MustDoc(text)
}

func (s *script) run(db string, command bson.Doc) (bson.Doc, error) {
	return s.runIn(s.ctx, db, command)
}

func (s *script) runIn(ctx context.Context, db string, command bson.Doc) (bson.Doc, error) {
	raw, err := s.client.Database(db).RunCommand(ctx, driver.Raw(command)).Raw()
	var failed mongo.CommandError
	var write mongo.WriteException
	switch {
	case errors.As(err, &failed):
		return nil, fmt.Errorf("%d %s: %s", failed.Code, failed.Name, failed.Message)
	case errors.As(err, &write):
		return bson.Doc(write.Raw), nil
	case err != nil:
		s.t.Fatal(err)
	}
	return bson.Doc(raw), nil
}

// reply runs a command and shows the fields of its reply, all but what every reply has when fields is nil.
func (s *script) reply(db string, command bson.Doc, fields []string) {
	doc, err := s.run(db, command)
	if err != nil {
		s.printf("%s: %s", command.FirstKey(), relative(err.Error()))
		return
	}
	if fields == nil {
		b := bson.Build()
		for it := doc.Iter(); it.Next(); {
			switch it.Key() {
			case "ok", "$clusterTime", "operationTime", "electionId", "opTime": // all but the first are those of a server over TiKV
			default:
				b.Value(it.Key(), it.Value())
			}
		}
		s.printf("%s", relative(b.Doc().Text()))
		return
	}
	for _, path := range fields {
		v := doc.Value()
		for _, part := range strings.Split(path, ".") {
			if v.Type != bson.TypeObject && v.Type != bson.TypeArray {
				v = bson.Missing
				break
			}
			v = v.Doc().Lookup(part)
		}
		if !v.IsMissing() {
			s.printf("%s %s", path, relative(v.Text()))
		}
	}
}

func (s *script) batch(command bson.Doc) (docs []bson.Doc) {
	reply, err := s.run("test", command)
	if err != nil {
		s.printf("%s: %v", command.FirstKey(), err)
		return nil
	}
	for it := reply.Lookup("cursor").Doc().Lookup("firstBatch").Doc().Iter(); it.Next(); {
		docs = append(docs, it.Value().Doc())
	}
	return docs
}

func (s *script) found(coll, filter string, ids bool) {
	var text []string
	for _, doc := range s.batch(bson.Build().String("find", coll).Document("filter", query(filter)).Int32("batchSize", 1000).Doc()) {
		if ids {
			text = append(text, relative(doc.Lookup("_id").Text()))
		} else {
			text = append(text, relative(doc.Text()))
		}
	}
	s.printf("%s: %s", coll, strings.Join(text, " "))
}

func (s *script) open(coll, how string) {
	size, hint := first(how)
	find := bson.Build().String("find", coll).Value("batchSize", bson.MustParse(size))
	if hint != "" {
		find.Document("hint", bson.MustDoc(hint))
	}
	reply, err := s.run("test", find.Doc())
	if err != nil {
		s.t.Fatal(err)
	}
	cursor := reply.Lookup("cursor").Doc()
	s.cursor = cursor.Lookup("id").Int64()
	s.printf("first batch %s", relative(cursor.Lookup("firstBatch").Text()))
}

func (s *script) more(coll string) {
	reply, err := s.run("test", bson.Build().Int64("getMore", s.cursor).String("collection", coll).Doc())
	if err != nil {
		s.printf("getMore: %v", err)
		return
	}
	s.printf("next batch %s", relative(reply.Lookup("cursor").Doc().Lookup("nextBatch").Text()))
}

func (s *script) aggregate(coll, pipeline string) {
	command := bson.Build().String("aggregate", coll).Value("pipeline", bson.MustParse(pipeline)).Object("cursor").End().Doc()
	var text []string
	for _, doc := range s.batch(command) {
		text = append(text, relative(doc.Text()))
	}
	s.printf("%s: %s", coll, strings.Join(text, " "))
}
