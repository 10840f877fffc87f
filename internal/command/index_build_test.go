package command

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/build"
	"github.com/ebbdb/ebb/internal/storage/ttlchange"
)

// TestIndexBuildIsSeen: an index that is being built shows in currentOp and listIndexes, holds some commands off, and ends
// with dropIndexes and killOp.
func TestIndexBuildIsSeen(t *testing.T) {
	h := newHarness(t)
	conn := h.conn("a")
	send := func(command string) bson.Doc { return h.sendOn(t.Context(), conn, "test", bson.MustDoc(command)).Body }
	for range 2 {
		docs := make([]string, 600)
		for i := range docs {
			docs[i] = fmt.Sprintf("{a: %d}", i)
		}
		if r := send("{insert: 'c', documents: [" + strings.Join(docs, ", ") + "]}"); r.Lookup("n").Int32() != 600 {
			t.Fatal(r)
		}
	}
	op := &Op{Server: h.server, Args: NewArgs("createIndexes", bson.MustDoc("{createIndexes: 'c', indexes: [{key: {a: 1}, name: 'a'}]}"))}
	var building context.Context
	run := func(during func(*build.Underway)) error {
		op.Ctx = t.Context()
		ctx, seen, ended := op.startBuilder()
		done := func() { ended(nil) }
		defer done()
		building = ctx
		_, err := h.server.Query.DDL.CreateIndexesSeen(ctx, namespace.NS{DB: "test", Coll: "c"}, ttlchange.OnHidden{}, func(c *catalog.Collection) ([]*index.Definition, error) {
			return op.parseIndexes(c, []bson.Doc{bson.MustDoc("{key: {a: 1}, name: 'a'}")})
		}, func(b *build.Underway) { seen(b); during(b) })
		return err
	}
	err := run(func(b *build.Underway) {
		rows := h.server.operations(inprog{})
		row := rows[len(rows)-1]
		for path, want := range map[string]string{"desc": `"IndexBuildsCoordinatorMongod-0"`, "ns": `"test.c"`, "command.createIndexes": `"c"`,
			"msg": `"Index Build Index Build: 0/0 100%"`, "progress.done": "NumberLong(0)"} {
			v := row.Value()
			for _, part := range strings.Split(path, ".") {
				v = v.Doc().Lookup(part)
			}
			if v.Text() != want {
				t.Errorf("currentOp: %s is %s, want %s", path, v.Text(), want)
			}
		}
		if n := len(h.builders(t)); n != 1 {
			t.Errorf("currentOp shows %d builds", n)
		}
		uuid := bson.Binary(4, b.UUID[:]).Text()
		for command, want := range map[string]string{
			"{listIndexes: 'c'}":                          `{ v: 2, key: { a: 1 }, name: "a" } ]`,
			"{listIndexes: 'c', includeBuildUUIDs: true}": `{ spec: { v: 2, key: { a: 1 }, name: "a" }, buildUUID: ` + uuid + ` } ]`,
			"{listIndexes: 'c', includeIndexBuildInfo: true}": `{ spec: { v: 2, key: { a: 1 }, name: "a" }, indexBuildInfo: { buildUUID: ` + uuid +
				`, method: "hybrid", phase: 0, phaseStr: "initialized", opid: NumberLong(` + fmt.Sprint(b.Operation.Load()) + `), resumable: false, replicationState: { state: "In progress" } } } ]`,
		} {
			if r := send(command).Text(); !strings.Contains(r, want) {
				t.Errorf("%s: %s\nwant %s", command, r, want)
			}
		}
		for command, db := range map[string]string{"{collMod: 'c', validationLevel: 'strict'}": "test", "{reIndex: 'c'}": "test",
			"{renameCollection: 'test.c', to: 'test.d'}": "admin"} {
			r := h.sendOn(t.Context(), conn, db, bson.MustDoc(command)).Body
			if r.Lookup("code").Int32() != int32(mongoerr.BackgroundOperationInProgressForNamespace) {
				t.Errorf("%s: %s", command, r)
			}
		}
		if r := send("{insert: 'c', documents: [{a: 'beside'}]}"); r.Lookup("n").Int32() != 1 {
			t.Error(r)
		}
		if r := send("{dropIndexes: 'c', index: 'a'}"); r.Lookup("nIndexesWas").Int32() != 2 {
			t.Error(r)
		}
	})
	if !mongoerr.Is(err, mongoerr.IndexBuildAborted) {
		t.Errorf("dropIndexes: %v", err)
	}
	err = run(func(b *build.Underway) {
		h.server.Ops.Kill(b.Operation.Load())
		<-building.Done() // which another goroutine sees to
	})
	if !mongoerr.Is(err, mongoerr.Interrupted) {
		t.Errorf("killOp: %v", err)
	}
	if err := run(func(*build.Underway) {}); err != nil {
		t.Error(err)
	}
	if left := h.builders(t); len(left) != 0 {
		t.Errorf("currentOp shows %s", left)
	}
	if v, err := h.server.Query.Store.Validate(context.Background(), namespace.NS{DB: "test", Coll: "c"}, nil); err != nil || !v.Valid || v.Records != 1201 {
		t.Errorf("%+v, %v", v, err)
	}
}

// builders are the index builds that currentOp shows, idle threads among what it shows.
func (h *harness) builders(t *testing.T) []bson.Doc {
	t.Helper()
	rows, err := matching(h.server.operations(inprog{idle: true, cursors: true}), bson.MustDoc("{desc: /^IndexBuilds/}"))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}
