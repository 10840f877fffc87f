package storage

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// TestText runs testdata: each file is the life of one store, each block one thing done to it. The commands are the
// functions of commands(); a namespace is their first argument, "db.c" where there is none.
func TestText(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if filepath.Base(path) == "format.txt" {
			notOnTiKV(t, "sums are stored in another form")
		}
		x := &script{fixture: newFixture(t)}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			x.t, x.d = t, d
			run := commands()[d.Cmd]
			if run == nil {
				t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
			}
			return strings.TrimRight(run(x), "\n") + "\n"
		})
	})
}

type script struct {
	*fixture
	d *datadriven.TestData
}

func commands() map[string]func(*script) string {
	return map[string]func(*script) string{
		"create": (*script).create, "insert": (*script).insertEach, "replace": (*script).replaceOne, "delete": (*script).deleteOne,
		"find": (*script).find, "everywhere": (*script).everywhere, "advance": (*script).advance, "sweep": (*script).sweepAll,
		"index": (*script).indexes, "dropIndex": (*script).dropIndex, "collMod": (*script).collMod, "list": (*script).list,
		"drop": (*script).drop, "dropDatabase": (*script).dropDatabase, "rename": (*script).rename, "validate": (*script).validateText,
		"due": (*script).due, "stats": (*script).statsText, "hideAll": (*script).setHideAll, "restart": (*script).restart,
		"sweepAtOnce": (*script).sweepAtOnce, "recluster": (*script).recluster, "unclustered": (*script).unclustered, "vacuum": (*script).vacuumSome, "keys": (*script).keys,
		"dump": (*script).dump, "options": (*script).setOptions, "insertSized": (*script).insertSized,
	}
}

func (x *script) ns() namespace.NS {
	if len(x.d.CmdArgs) > 0 && len(x.d.CmdArgs[0].Vals) == 0 {
		return namespace.Split(x.d.CmdArgs[0].Key)
	}
	return namespace.NS{DB: "db", Coll: "c"}
}

func (x *script) lines() []string {
	return strings.FieldsFunc(x.d.Input, func(r rune) bool { return r == '\n' })
}

func (x *script) create() string {
	options := bson.EmptyDoc
	if x.d.Input != "" {
		options = bson.MustDoc(x.d.Input)
	}
	_, err := x.CreateCollection(context.Background(), x.ns(), options)
	return failed(err)
}

// outcome shows an error with its further fields.
func outcome(err error) string {
	text := failed(err)
	if err != nil && mongoerr.From(err).Extra != nil {
		text += "\n  " + mongoerr.From(err).Extra.Text()
	}
	return text
}

// insertEach inserts one document a line, each in a write of its own.
func (x *script) insertEach() (out string) {
	for _, line := range x.lines() {
		out += outcome(x.insert(x.ns(), line)) + "\n"
	}
	return out
}

// insertSized inserts a document of size bytes.
func (x *script) insertSized() string {
	var size int
	x.d.ScanArgs(x.t, "size", &size)
	doc := bson.Build().Int32("_id", int32(size)).String("s", "").Doc()
	doc = bson.Build().Int32("_id", int32(size)).String("s", strings.Repeat("x", size-len(doc))).Doc()
	return failed(x.Write(context.Background(), x.ns(), creating, func(w *Writer) error {
		_, err := w.Insert(doc)
		return err
	}))
}

func (x *script) replaceOne() (out string) {
	for _, line := range x.lines() {
		there, err := x.change(x.ns(), bson.MustDoc(line).Lookup("_id"), line)
		if err == nil && !there {
			out += "not there\n"
			continue
		}
		out += outcome(err) + "\n"
	}
	return out
}

func (x *script) deleteOne() (out string) {
	for _, line := range x.lines() {
		there, err := x.change(x.ns(), bson.MustDoc(line).Lookup("_id"), "")
		if err == nil && !there {
			out += "not there\n"
			continue
		}
		out += outcome(err) + "\n"
	}
	return out
}

// find shows the documents of a scan.
func (x *script) find() (out string) {
	x.read(x.ns(), func(r *Reader) error {
		c, err := r.Scan(RecordScan{})
		if err != nil {
			return err
		}
		defer c.Close()
		for c.Next() {
			out += c.Record().Doc.Text() + "\n"
		}
		return c.Err()
	})
	if out == "" {
		return "none"
	}
	return out
}

// everywhere shows what each way of reading finds: by its _id the document with each _id given, and all else of all.
func (x *script) everywhere() string {
	var b strings.Builder
	for _, line := range x.lines() {
		id := bson.MustDoc(line).Lookup("_id")
		x.read(x.ns(), func(r *Reader) error {
			rec, there, err := r.GetByID(id)
			fmt.Fprintf(&b, "by _id %s: %v\n", id, there)
			if rid, stored, _ := r.find(id); stored {
				_, again, err := r.Get(rid)
				many, _ := r.GetMany([]RecordID{rid})
				fmt.Fprintf(&b, "by record id: %v, among many: %v, stored: %v\n", again, many[0].Doc != nil, true)
				if err != nil || again != there {
					return fmt.Errorf("%s: %v", rec.Doc, err)
				}
			}
			return err
		})
	}
	fmt.Fprintf(&b, "scan: %s\n", x.ids(x.ns()))
	x.read(x.ns(), func(r *Reader) error {
		n, err := r.Count()
		fmt.Fprintf(&b, "count: %d\n", n)
		for _, d := range r.Catalog().Indexes {
			if d.Kind == index.Ordered {
				fmt.Fprintf(&b, "index %s: %s\n", d.Name, indexText(x, r, d))
			}
		}
		return err
	})
	return b.String()
}

func indexText(x *script, r *Reader, d *index.Definition) string {
	c, err := r.ScanIndex(IndexScan{Index: d})
	x.must(err)
	defer c.Close()
	var out []string
	for c.Next() {
		v, err := d.KeyValue(c.Entry().Key, c.Entry().TypeBits)
		x.must(err)
		out = append(out, v.Text())
	}
	x.must(c.Err())
	return strings.Join(out, " ")
}

func (x *script) advance() string {
	by, err := time.ParseDuration(x.d.CmdArgs[0].Key)
	x.must(err)
	x.clock.Advance(by)
	return fmt.Sprintf("%d ms", x.Now()-epoch.UnixMilli())
}

func (x *script) sweepAll() string { return fmt.Sprintf("%d deleted", x.fixture.sweep(x.ns())) }

func (x *script) indexes() string {
	made, err := x.CreateIndexes(context.Background(), x.ns(), x.parse(x.lines()...))
	if err != nil {
		return outcome(err)
	}
	out := fmt.Sprintf("%d before, %d after", made.Before, made.After)
	if made.Collection {
		out += ", with the collection"
	}
	if len(made.Retimed) > 0 {
		out += fmt.Sprintf(", %d retimed", len(made.Retimed))
	}
	return out
}

func (x *script) dropIndex() string {
	before, err := x.DropIndexes(context.Background(), x.ns(), func(c *catalog.Collection) (out []*index.Definition, err error) {
		for _, name := range x.lines() {
			out = append(out, c.Index(name))
		}
		return out, nil
	})
	if err != nil {
		return outcome(err)
	}
	return fmt.Sprintf("%d before", before)
}

// collMod gives the index called name the fields of the document in the second line.
func (x *script) collMod() string {
	name, fields := x.lines()[0], bson.MustDoc(x.lines()[1])
	return outcome(x.Modify(context.Background(), x.ns(), func(c *catalog.Collection) (*catalog.Collection, error) {
		defs := slices.Clone(c.Indexes)
		for i, d := range defs {
			if d.Name != name {
				continue
			}
			b := bson.Build()
			for it := d.Spec.Iter(); it.Next(); {
				if fields.Lookup(it.Key()).IsMissing() {
					b.Value(it.Key(), it.Value())
				}
			}
			changed, err := x.parser.Load(b.Fields(fields).Doc(), nil)
			if err != nil {
				return nil, err
			}
			defs[i] = changed.WithID(d.ID)
		}
		return c.WithIndexes(defs), nil
	}))
}

func (x *script) setOptions() string {
	return outcome(x.Modify(context.Background(), x.ns(), func(c *catalog.Collection) (*catalog.Collection, error) {
		return c.WithOptions(catalog.ReadOptions(bson.MustDoc(x.d.Input))), nil
	}))
}

func (x *script) list() (out string) {
	v, err := x.View(context.Background())
	x.must(err)
	defer v.Close()
	for _, coll := range v.Catalog().All() {
		out += fmt.Sprintf("%s %s\n", coll.NS, coll.Options.Doc.Text())
		for _, d := range coll.Indexes {
			out += fmt.Sprintf("  %s\n", d.Spec.Text())
		}
	}
	if out == "" {
		return "none"
	}
	return out
}

func (x *script) drop() string {
	_, err := x.DropCollection(context.Background(), x.ns())
	x.garbage.Wait()
	nothingLeft(x.t, x.Store)
	return failed(err)
}

func (x *script) dropDatabase() string {
	dropped, err := x.DropDatabase(context.Background(), x.d.CmdArgs[0].Key)
	x.garbage.Wait()
	nothingLeft(x.t, x.Store)
	if err != nil {
		return failed(err)
	}
	return fmt.Sprintf("%d dropped", len(dropped))
}

func (x *script) rename() string {
	return failed(x.Rename(context.Background(), x.ns(), namespace.Split(x.d.CmdArgs[1].Key), x.d.HasArg("dropTarget")))
}

func (x *script) validateText() (out string) {
	v, err := x.Validate(context.Background(), x.ns(), nil)
	if err != nil {
		return failed(err)
	}
	out = fmt.Sprintf("valid %v, %d records", v.Valid, v.Records)
	for _, i := range v.Indexes {
		out += fmt.Sprintf(", %s %d", i.Name, i.Keys)
	}
	return out + "\n" + strings.Join(v.Errors, "\n")
}

// due shows the deadlines that each rule knows of, relative to the test's beginning.
func (x *script) due() (out string) {
	x.read(x.ns(), func(r *Reader) error {
		for i := range r.Rules().All() {
			rule := &r.Rules().All()[i]
			next, ok, err := r.Dates().Next(rule)
			if err != nil {
				return err
			}
			n, err := r.Dates().Count(rule, x.Now(), 1000)
			if err != nil {
				return err
			}
			if !ok {
				out += fmt.Sprintf("%q: no deadline\n", rule.Name())
				continue
			}
			out += fmt.Sprintf("%q: next %d ms, %d due\n", rule.Name(), next-epoch.UnixMilli(), n)
		}
		return nil
	})
	return out
}

func (x *script) statsText() string {
	v, err := x.View(context.Background())
	x.must(err)
	defer v.Close()
	r, ok := v.Collection(x.ns())
	if !ok {
		return "no collection"
	}
	number := func(n int64, err error) int64 { x.must(err); return n }
	out := fmt.Sprintf("%d documents, %d stored, %d bytes", number(r.Count()), number(r.Stored()), number(r.Bytes()))
	for _, d := range r.Catalog().Indexes {
		out += fmt.Sprintf(", %s %d", d.Name, number(r.Entries(d)))
	}
	return out
}

func (x *script) setHideAll() string {
	x.hideAll = x.d.CmdArgs[0].Key == "true"
	return fmt.Sprint(x.hideAll)
}

func (x *script) restart() string {
	x.reopen()
	return "ok"
}

// dump shows every key and value of the store; of a catalogue entry without its uuid.
func (x *script) dump() (out string) {
	x.garbage.Wait()
	v, err := x.View(context.Background())
	x.must(err)
	defer v.Close()
	it, err := v.reader.NewIter(kv.IterOptions{})
	x.must(err)
	defer it.Close()
	for it.Next() {
		value, err := it.Value()
		x.must(err)
		text := fmt.Sprintf("%x", value)
		if it.Key()[0] == layout.MetaPrefix && it.Key()[1] == layout.MetaCollection {
			b := bson.Build()
			for e := bson.Doc(value).Iter(); e.Next(); {
				if e.Key() == "uuid" {
					b.String("uuid", e.Value().Type.String())
					continue
				}
				b.Value(e.Key(), e.Value())
			}
			text = b.Doc().Text()
		}
		key := it.Key()
		head := 1
		if key[0] == layout.MetaPrefix || key[0] == layout.CounterPrefix {
			head = 2
		}
		out += fmt.Sprintf("%s %x: %s\n", key[:head], key[head:], text)
	}
	x.must(it.Err())
	return out
}
