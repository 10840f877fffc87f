package exec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ebbdb/ebb/internal/accumulator"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/javascript"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/memory"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/pipeline"
	"github.com/ebbdb/ebb/internal/projection"
)

// TestStages runs testdata/stages:
//
//	collection NAME      makes a collection of the documents of the input, one a line
//	index NAME PATH      makes $lookup ask for documents by PATH instead of hashing NAME
//	run [NAME] [flags]   runs the pipeline of the input over NAME, or over nothing; prints the results or the error
//	parse [NAME]         prints the pipeline as rewrites leave it, and what a plan may take over
//
// Flags of run: memory=BYTES and nodisk bound each stage, spilled prints whether a stage spilled, sorted sorts the results,
// strength=N collates, print=NAME prints that collection afterwards.
func TestStages(t *testing.T) {
	datadriven.Walk(t, "testdata/stages", func(t *testing.T, path string) {
		db := &collections{colls: map[string][]bson.Doc{}, indexed: map[string]bool{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "collection":
				name := d.CmdArgs[0].Key
				db.colls[name] = nil
				for _, line := range strings.Split(strings.TrimSpace(d.Input), "\n") {
					if line != "" {
						db.colls[name] = append(db.colls[name], mustDoc(t, line))
					}
				}
				return ""
			case "index":
				db.indexed[d.CmdArgs[0].Key+" "+d.CmdArgs[1].Key] = true
				return ""
			case "run", "parse":
				return db.run(t, d)
			}
			t.Fatalf("unknown command %s", d.Cmd)
			return ""
		})
	})
}

// TestEveryStageHasCases fails for a stage or accumulator that no case uses.
func TestEveryStageHasCases(t *testing.T) {
	var text strings.Builder
	files, err := filepath.Glob("testdata/stages/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(b)
	}
	uses := func(name string) bool { return strings.Contains(text.String(), "{"+name+":") }
	for _, r := range pipeline.Rows() {
		if !uses(r.Name) {
			t.Errorf("no case in testdata/stages uses the stage %s", r.Name)
		}
		if r.Since == "" || !strings.HasSuffix(r.Doc, ".") {
			t.Errorf("%s needs a version and a sentence", r.Name)
		}
	}
	for _, o := range accumulator.Operators() {
		if !uses(o.Name) {
			t.Errorf("no case in testdata/stages uses %s", o.Name)
		}
		if o.Since == "" || !strings.HasSuffix(o.Doc, ".") {
			t.Errorf("%s needs a version and a sentence", o.Name)
		}
	}
}

func mustDoc(t testing.TB, text string) bson.Doc {
	d, err := bson.ParseDoc(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return d
}

// collections is a Catalog of collections in memory.
type collections struct {
	colls   map[string][]bson.Doc
	indexed map[string]bool
	opened  int
}

const testNow = 1_700_000_000_000

func newTestOp(db *collections, c *collation.Collation) *Op {
	opts := expr.Options{Now: testNow, Scripts: javascript.InProcess(clock.Wall())}
	if c != nil {
		opts.Collation = c
	}
	filters := match.NewParser()
	ps := pipeline.NewParser(pipeline.NewTable(), expr.NewParser(opts), filters, projection.NewParser(filters), c)
	return &Op{DB: "db", Now: testNow, AllowDiskUse: true, Parser: ps, Catalog: db}
}

func (db *collections) run(t *testing.T, d *datadriven.TestData) string {
	var c *collation.Collation
	op := newTestOp(db, nil)
	op.TempDir, op.Memory = t.TempDir(), &memory.Account{}
	op.Memory.Open(memory.New(1<<30, clock.Wall(), nil), memory.Operators)
	ns := namespace.NS{DB: "db"}
	var printed string
	var sorted, spilled bool
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "memory":
			a.Scan(t, 0, &op.MaxMemory)
		case "nodisk":
			op.AllowDiskUse = false
		case "spilled":
			spilled = true
		case "sorted":
			sorted = true
		case "print":
			printed = a.Vals[0]
		case "db":
			ns.DB = a.Vals[0]
		case "strength":
			var err error
			if c, err = collation.Parse(mustDoc(t, `{locale: "en", strength: `+a.Vals[0]+`}`)); err != nil {
				t.Fatal(err)
			}
			o := newTestOp(db, c)
			op.Parser = o.Parser
		default:
			ns.Coll = a.Key
		}
	}
	v, err := bson.Parse(d.Input)
	if err != nil {
		t.Fatalf("%s: %v", d.Pos, err)
	}
	p, err := op.Parser.Parse(v, pipeline.Options{NS: ns})
	if err != nil {
		return errorText(err)
	}
	if d.Cmd == "parse" {
		return describe(p)
	}
	out, err := db.results(op, ns, p)
	if sorted {
		sortLines(out)
	}
	if err != nil {
		out = append(out, errorText(err))
	}
	if spilled {
		out = append(out, fmt.Sprintf("spilled: %v\n", op.UsedDisk))
	}
	if printed != "" {
		for _, d := range db.colls[printed] {
			out = append(out, d.Text()+"\n")
		}
	}
	if left := op.Memory.Used() - carriedTimes*int64(op.carried); left != 0 {
		t.Errorf("%s: %d bytes of memory are still counted", d.Pos, left)
	}
	if left, _ := os.ReadDir(op.TempDir); len(left) > 0 {
		t.Errorf("%s: %d temporary files left", d.Pos, len(left))
	}
	return strings.Join(out, "")
}

func (db *collections) results(op *Op, ns namespace.NS, p *pipeline.Pipeline) ([]string, error) {
	it, err := db.Open(context.Background(), op, ns, p)
	if err != nil {
		return nil, err
	}
	var out []string
	for err == nil {
		var doc bson.Doc
		if doc, err = it.Next(context.Background()); doc == nil {
			break
		}
		out = append(out, doc.Text()+"\n")
		op.Park()
	}
	if e := it.Close(); err == nil {
		err = e
	}
	return out, err
}

func sortLines(lines []string) {
	for i := range lines {
		for j := i; j > 0 && lines[j] < lines[j-1]; j-- {
			lines[j], lines[j-1] = lines[j-1], lines[j]
		}
	}
}

func errorText(err error) string {
	var e *mongoerr.Error
	if errors.As(err, &e) {
		return fmt.Sprintf("error %d %s: %s\n", e.Code, e.Code.Name(), e.Message)
	}
	return "error: " + err.Error() + "\n"
}

func describe(p *pipeline.Pipeline) string {
	var b strings.Builder
	for it := p.Print().Doc().Iter(); it.Next(); {
		fmt.Fprintf(&b, "%s\n", it.Value().Text())
	}
	l := p.Leading()
	if l.Filter != nil {
		fmt.Fprintf(&b, "filter %s\n", l.Filter.Source.Text())
	}
	if l.Sort != nil {
		fmt.Fprintf(&b, "sort %s\n", l.Sort.Source().Text())
	}
	if l.Skip > 0 || l.Limit > 0 {
		fmt.Fprintf(&b, "skip %d limit %d\n", l.Skip, l.Limit)
	}
	fmt.Fprintf(&b, "taken %d, %d, %d\n", l.Filtered, l.Sorted, l.Counted)
	if l.Needs.Whole {
		b.WriteString("needs whole documents\n")
	} else {
		fmt.Fprintf(&b, "needs %v\n", l.Needs.Fields)
	}
	return b.String()
}

// volatile gives documents in memory that is overwritten afterwards, so that a stage that keeps them shows.
type volatile struct {
	docs []bson.Doc
	buf  []byte
}

func (v *volatile) Next(context.Context) (bson.Doc, error) {
	for i := range v.buf {
		v.buf[i] = 0xEE
	}
	if len(v.docs) == 0 {
		return nil, nil
	}
	v.buf = append(v.buf[:0], v.docs[0]...)
	v.docs = v.docs[1:]
	return v.buf, nil
}

func (v *volatile) Close() error { return nil }

func (db *collections) Open(_ context.Context, op *Op, ns namespace.NS, p *pipeline.Pipeline) (Iterator, error) {
	db.opened++
	return Build(op, p, &volatile{docs: db.colls[ns.Coll]})
}

func (db *collections) Indexed(_ context.Context, _ *Op, ns namespace.NS, path string) bool {
	return db.indexed[ns.Coll+" "+path]
}

func (db *collections) Server(_ context.Context, _ *Op, ns namespace.NS, s *pipeline.Server) (Iterator, error) {
	return FromDocs([]bson.Doc{bson.Build().String("stage", s.Name()).String("ns", ns.String()).Value("spec", s.Spec()).Doc()}), nil
}

func (db *collections) Out(_ context.Context, _ *Op, o *pipeline.Out) (Writer, error) {
	return &outWriter{db: db, to: o.To.Coll}, nil
}

type outWriter struct {
	db   *collections
	to   string
	docs []bson.Doc
}

func (w *outWriter) Write(_ context.Context, d bson.Doc) error {
	w.docs = append(w.docs, d.Clone())
	return nil
}

func (w *outWriter) Finish(context.Context) error {
	w.db.colls[w.to] = w.docs
	return nil
}

func (w *outWriter) Abort(context.Context) {}

func (db *collections) Merge(_ context.Context, op *Op, m *pipeline.Merge) (Writer, error) {
	return &mergeWriter{db: db, stage: m, merging: NewMerging(op, m)}, nil
}

type mergeWriter struct {
	db      *collections
	stage   *pipeline.Merge
	merging *Merging
}

func (w *mergeWriter) Write(ctx context.Context, d bson.Doc) error {
	keys, err := w.merging.Keys(d, false)
	if err != nil {
		return err
	}
	coll := w.db.colls[w.stage.Into.Coll]
	for i, old := range coll {
		if !w.equal(old, keys) {
			continue
		}
		if w.stage.WhenMatched == "fail" { // which a unique index tells
			return mongoerr.New(mongoerr.DuplicateKey, "E11000 duplicate key error")
		}
		out, write, err := w.merging.Matched(ctx, old, d)
		if write {
			coll[i] = out.Clone()
		}
		return err
	}
	insert, err := w.merging.NotMatched()
	if insert {
		w.db.colls[w.stage.Into.Coll] = append(coll, w.merging.NewDocument(d, keys).Clone())
	}
	return err
}

func (w *mergeWriter) equal(old bson.Doc, keys []bson.Value) bool {
	for i, path := range w.stage.On {
		v := path.Get(old)
		if v.IsMissing() {
			v = bson.Null
		}
		if !bson.Equal(v, keys[i]) {
			return false
		}
	}
	return true
}

func (w *mergeWriter) Finish(context.Context) error {
	w.merging.Close()
	return nil
}

func (w *mergeWriter) Abort(context.Context) { w.merging.Close() }
