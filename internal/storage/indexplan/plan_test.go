package indexplan_test

import (
	"fmt"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/indexplan"
)

func definition(t *testing.T, id uint32, spec string) *index.Definition {
	t.Helper()
	d, err := index.NewParser(nil).Parse(bson.MustDoc(spec), nil)
	if err != nil {
		t.Fatal(err)
	}
	return d.WithID(id)
}

func collection(defs ...*index.Definition) *catalog.Collection {
	return (&catalog.Collection{ID: 1, NS: namespace.NS{DB: "db", Coll: "c"}, Options: catalog.ReadOptions(nil)}).WithIndexes(defs)
}

func names(defs []*index.Definition) (out string) {
	for _, d := range defs {
		out += fmt.Sprintf("%s:%d ", d.Name, d.ID)
	}
	return out
}

// TestMake plans definitions beside what is there and what is being built.
func TestMake(t *testing.T) {
	id := definition(t, 1, `{key: {_id: 1}, name: "_id_"}`)
	ttl := definition(t, 2, `{key: {_ts: 1}, name: "ts", expireAfterSeconds: 10}`)
	building := definition(t, 3, `{key: {b: 1}, name: "b"}`)
	c := collection(id, ttl)
	for _, x := range []struct {
		name, specs, added, retimed string
		busy                        bool
		code                        mongoerr.Code
	}{
		{"what is there", `[{key: {_id: 1}, name: "_id_"}, {key: {_ts: 1}, name: "ts", expireAfterSeconds: 10}]`, "", "", false, 0},
		{"new", `[{key: {a: 1}, name: "a"}, {key: {c: 1}, name: "c"}]`, "a:0 c:0 ", "", false, 0},
		{"another TTL", `[{key: {_ts: 1}, name: "ts", expireAfterSeconds: 20}]`, "", "ts:2 ", false, 0},
		{"what is being built", `[{key: {b: 1}, name: "b"}]`, "", "", true, 0},
		{"two TTLs", `[{key: {d: 1}, name: "d", expireAfterSeconds: 20}, {key: {d: 1}, name: "d", expireAfterSeconds: 30}]`, "", "", false, mongoerr.IndexOptionsConflict},
		{"another index of the name", `[{key: {x: 1}, name: "b"}]`, "", "", false, mongoerr.IndexKeySpecsConflict},
	} {
		var defs []*index.Definition
		for _, v := range bson.MustDoc(`{s: ` + x.specs + `}`).Lookup("s").Doc().Values(nil) {
			defs = append(defs, definition(t, 0, v.Doc().String()))
		}
		p, err := indexplan.Make(c, []*index.Definition{building}, defs)
		if x.code != 0 {
			if !mongoerr.Is(err, x.code) {
				t.Errorf("%s: %v, want %d", x.name, err, x.code)
			}
			continue
		}
		if err != nil || names(p.Added) != x.added || names(p.Retimed) != x.retimed || (p.Busy != nil) != x.busy {
			t.Errorf("%s: added %s, retimed %s, busy %v, %v", x.name, names(p.Added), names(p.Retimed), p.Busy, err)
		}
		if nothing := x.added == "" && x.retimed == "" && !x.busy; p.IsNothing() != nothing {
			t.Errorf("%s: is nothing: %v", x.name, p.IsNothing())
		}
	}
}

// TestTooMany: a collection has no more than MaxIndexes, those that are being built included.
func TestTooMany(t *testing.T) {
	var there []*index.Definition
	for i := range indexplan.MaxIndexes - 1 {
		there = append(there, definition(t, uint32(1+i), fmt.Sprintf(`{key: {f%d: 1}, name: "f%d"}`, i, i)))
	}
	building := []*index.Definition{definition(t, 100, `{key: {b: 1}, name: "b"}`)}
	more := []*index.Definition{definition(t, 0, `{key: {x: 1}, name: "x"}`)}
	if _, err := indexplan.Make(collection(there...), nil, more); err != nil {
		t.Error(err)
	}
	if _, err := indexplan.Make(collection(there...), building, more); !mongoerr.Is(err, mongoerr.CannotCreateIndex) {
		t.Errorf("one too many: %v", err)
	}
}

// TestCollections: the collections that a plan, a rebuilt index and a drop make.
func TestCollections(t *testing.T) {
	id, a, b := definition(t, 1, `{key: {_id: 1}, name: "_id_"}`), definition(t, 2, `{key: {a: 1}, name: "a"}`), definition(t, 3, `{key: {b: 1}, name: "b"}`)
	c := collection(id, a, b)
	p := &indexplan.Plan{Retimed: []*index.Definition{definition(t, 2, `{key: {a: 1}, name: "a", unique: true}`), definition(t, 9, `{key: {gone: 1}, name: "gone"}`)},
		Added: []*index.Definition{definition(t, 0, `{key: {n: 1}, name: "n"}`)}}
	next, retimed := p.Retime(c)
	if names(retimed) != "a:2 " || names(next.Indexes) != "_id_:1 a:2 b:3 " || !next.Indexes[1].Unique || c.Indexes[1].Unique {
		t.Errorf("retimed %s, %s", names(retimed), names(next.Indexes))
	}
	if got := names(p.Next(c).Indexes); got != "_id_:1 a:2 b:3 n:0 " {
		t.Errorf("next: %s", got)
	}
	again := indexplan.Reshaped(c, next)
	if names(again) != "a:2 " {
		t.Errorf("reshaped: %s", names(again))
	}
	anew := []*index.Definition{again[0].WithID(7)}
	if got := names(indexplan.Anew(next, again, anew).Indexes); got != "_id_:1 a:7 b:3 " {
		t.Errorf("anew: %s", got)
	}
	if stay, err := indexplan.Without(c, []*index.Definition{a}); err != nil || names(stay) != "_id_:1 b:3 " {
		t.Errorf("without a: %s, %v", names(stay), err)
	}
	if _, err := indexplan.Without(c, c.Indexes); !mongoerr.Is(err, mongoerr.InvalidOptions) {
		t.Errorf("without _id: %v", err)
	}
}
