package audit

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// noon is when everything happens.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 5e6, time.UTC)

func client() *Client {
	return &Client{UUID: [16]byte{0x1a, 15: 0xff}, Local: "127.0.0.1:27017", Remote: "[::1]:42096",
		User: &auth.User{Name: auth.Name{Name: "ann", DB: "admin"}, All: []auth.Name{{Name: "root", DB: "admin"}}}}
}

func event(atype string) Event {
	return Event{Type: atype, At: noon.UnixMilli(), From: client(), Param: bson.MustDoc(`{ns: "a.b", n: Long(5), f: 1.5}`), Lasting: true}
}

const line = `{ "atype" : "createCollection", "ts" : { "$date" : "2026-01-02T12:00:00.005+00:00" }, ` +
	`"uuid" : { "$binary" : "GgAAAAAAAAAAAAAAAAAA/w==", "$type" : "04" }, "local" : { "ip" : "127.0.0.1", "port" : 27017 }, "remote" : { "ip" : "::1", "port" : 42096 }, ` +
	`"users" : [ { "user" : "ann", "db" : "admin" } ], "roles" : [ { "role" : "root", "db" : "admin" } ], ` +
	`"param" : { "ns" : "a.b", "n" : { "$numberLong" : "5" }, "f" : 1.5 }, "result" : 0 }` + "\n"

func TestEventsInJSON(t *testing.T) {
	var out bytes.Buffer
	l, err := open(Options{Destination: ToConsole}, slog.New(slog.DiscardHandler), &out)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []Event{event("createCollection"), {Type: "shutdown", At: noon.UnixMilli(), Result: mongoerr.Unauthorized}} {
		if err := l.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	want := line + `{ "atype" : "shutdown", "ts" : { "$date" : "2026-01-02T12:00:00.005+00:00" }, "local" : { "isSystemUser" : true }, "remote" : { "isSystemUser" : true }, ` +
		`"users" : [], "roles" : [], "param" : {}, "result" : 13 }` + "\n"
	if out.String() != want {
		t.Errorf("got  %swant %s", out.String(), want)
	}
}

func TestRareValuesInJSON(t *testing.T) {
	for given, want := range map[string]string{
		`{a: ObjectId("0102030405060708090a0b0c")}`: `{ "a" : { "$oid" : "0102030405060708090a0b0c" } }`,
		`{a: "<\n\"é>"}`:         `{ "a" : "<\n\"é>" }`,
		`{a: [1, null, true]}`:   `{ "a" : [ 1, null, true ] }`,
		`{a: Timestamp(1, 2)}`:   `{ "a" : {"$timestamp":{"t":1,"i":2}} }`,
		`{a: NaN}`:               `{ "a" : {"$numberDouble":"NaN"} }`,
		`{a: /x/i}`:              `{ "a" : {"$regularExpression":{"pattern":"x","options":"i"}} }`,
		`{a: new Date(-1e15)}`:   `{ "a" : { "$date" : { "$numberLong" : "-1000000000000000" } } }`,
		`{"$a.b": {}, "": [[]]}`: `{ "$a.b" : {}, "" : [ [] ] }`,
	} {
		d, err := bson.ParseDoc(given)
		if err != nil {
			t.Fatal(given, err)
		}
		if got := string(appendJSON(nil, d.Value())); got != want {
			t.Errorf("%s: got %s, want %s", given, got, want)
		}
	}
}

func TestEndpoints(t *testing.T) {
	for address, want := range map[string]string{
		"10.0.0.1:5": `{ ip: "10.0.0.1", port: 5 }`, "/tmp/mongodb-1.sock": `{ unix: "/tmp/mongodb-1.sock" }`, "anonymous unix socket:27017": `{ unix: "anonymous" }`,
		"": `{ unix: "anonymous" }`,
	} {
		if got := Endpoint(address).String(); got != want {
			t.Errorf("%q: got %s, want %s", address, got, want)
		}
	}
}

func TestFilter(t *testing.T) {
	var out bytes.Buffer
	filter := bson.MustDoc(`{atype: {$in: ["createCollection"]}, "users.user": "ann", "param.ns": /^a\./}`)
	l, err := open(Options{Destination: ToConsole, Filter: filter}, slog.New(slog.DiscardHandler), &out)
	if err != nil {
		t.Fatal(err)
	}
	other := event("createCollection")
	other.From = nil
	for _, e := range []Event{event("dropCollection"), event("createCollection"), other} {
		_ = l.Write(e)
	}
	if out.String() != line {
		t.Errorf("got %s", out.String())
	}
	b := bson.Build()
	l.AppendStatus(b)
	if got := b.Doc().String(); got != `{ destination: "console", events: 1, filtered: 2, lost: 0, failing: false }` {
		t.Error(got)
	}
	if _, err := Open(Options{Destination: ToConsole, Filter: bson.MustDoc(`{$nonsense: 1}`)}, nil); err == nil {
		t.Error("a filter that is none is taken")
	}
}

func TestFiles(t *testing.T) {
	for format, want := range map[string]string{JSON: line, BSON: string(event("createCollection").Doc())} {
		path := filepath.Join(t.TempDir(), "audit")
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		l, err := Open(Options{Destination: ToFile, Format: format, Path: path}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = l.Write(event("createCollection")), l.Write(event("createCollection"))
		kept, err := l.Rotate(noon)
		if err != nil || kept != path+".2026-01-02T12-00-00" {
			t.Errorf("rotated to %q: %v", kept, err)
		}
		_ = l.Write(event("createCollection"))
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		for name, text := range map[string]string{kept: want + want, path: want} {
			got, err := os.ReadFile(name)
			if err != nil || string(got) != text {
				t.Errorf("%s: %q, %v", name, got, err)
			}
			if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s has mode %v, %v", name, info.Mode(), err)
			}
		}
	}
}

// TestWritersAndRotations: each event is whole, and in one of the files.
func TestWritersAndRotations(t *testing.T) {
	dir := t.TempDir()
	l, err := Open(Options{Destination: ToFile, Format: JSON, Path: filepath.Join(dir, "audit"), StopOnFailure: true}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for range 50 {
				if err := l.Write(event("createCollection")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 20 {
		if _, err := l.Rotate(noon.Add(time.Duration(i) * time.Second)); err != nil {
			t.Error(err)
		}
	}
	writers.Wait()
	_ = l.Close()
	var all strings.Builder
	files, _ := filepath.Glob(filepath.Join(dir, "audit*"))
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	if all.String() != strings.Repeat(line, 200) {
		t.Errorf("%d bytes in %d files", all.Len(), len(files))
	}
}

// broken is a sink that fails as long as it is told to.
type broken struct {
	lines
	err error
}

func (b *broken) write(d bson.Doc) error { return errors.Join(b.err, b.lines.write(d)) }

func TestFailures(t *testing.T) {
	var log bytes.Buffer
	sink := &broken{lines{&bytes.Buffer{}}, errors.New("no room")}
	l := &Log{log: slog.New(slog.NewTextHandler(&log, nil)), sink: sink}
	for range 3 {
		if err := l.Write(event("createUser")); err != nil {
			t.Error(err)
		}
	}
	sink.err = nil
	_ = l.Write(event("createUser"))
	if text := log.String(); strings.Count(text, "level=ERROR") != 1 || !strings.Contains(text, "lost=3") || l.lost.Load() != 3 || l.events.Load() != 1 {
		t.Error(text)
	}
	sink.err = errors.New("no room")
	l.options.StopOnFailure = true
	if err := l.Write(event("createUser")); !errors.Is(err, ErrFailed) {
		t.Errorf("a failure that is to end the server is %v", err)
	}
}

func TestWhatCannotBeOpened(t *testing.T) {
	for _, o := range []Options{{Destination: ToFile, Format: JSON, Path: filepath.Join(t.TempDir(), "none", "audit")}, {Destination: "mail"}} {
		if l, err := Open(o, nil); err == nil {
			t.Errorf("%+v is opened: %v", o, l)
		}
	}
}
