package ebb_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/inspect"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
	"github.com/ebbdb/ebb/internal/member"
	"github.com/ebbdb/ebb/internal/raftlog"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

var (
	damageRounds = flag.Int("damages", 16, "how often TestRandomDamage damages a data directory")
	damageSeed   = flag.Uint64("damage-seed", 0, "the seed of TestRandomDamage; 0 is another each time")
)

// acknowledged are the documents of each collection by their _id.
type acknowledged map[string]map[int32]string

// damagedCollections are what TestRandomDamage fills.
var damagedCollections = []string{"plain", "ttl", "ts"}

// write fills a server: plain documents with indexes, a collection in the order of a TTL index, and one with a TTL index on _ts.
func (a acknowledged) write(t *testing.T, admin *mongo.Database, r *rand.Rand) {
	t.Helper()
	db := admin.Client().Database("test")
	for _, c := range []struct {
		name  string
		model mongo.IndexModel
	}{
		{"plain", mongo.IndexModel{Keys: bson.D{{Key: "a", Value: 1}, {Key: "text", Value: 1}}}},
		{"ttl", mongo.IndexModel{Keys: bson.D{{Key: "at", Value: 1}}, Options: options.Index().SetExpireAfterSeconds(1 << 30)}},
		{"ts", mongo.IndexModel{Keys: bson.D{{Key: "_ts", Value: 1}}, Options: options.Index().SetExpireAfterSeconds(1 << 30)}},
	} {
		if a[c.name] == nil {
			a[c.name] = map[int32]string{}
		}
		if _, err := db.Collection(c.name).Indexes().CreateOne(t.Context(), c.model); err != nil {
			t.Fatal(err)
		}
	}
	for range 60 {
		name := damagedCollections[r.IntN(len(damagedCollections))]
		coll, have := db.Collection(name), a[name]
		switch first := int32(len(have)); r.IntN(4) {
		case 0, 1:
			var docs []any
			for i := range int32(30) {
				text := random(r)
				docs = append(docs, bson.D{{Key: "_id", Value: first + i}, {Key: "a", Value: i}, {Key: "at", Value: bson.NewDateTimeFromTime(clock.Wall().Now())}, {Key: "text", Value: text}})
				have[first+i] = text
			}
			if _, err := coll.InsertMany(t.Context(), docs); err != nil {
				t.Fatal(err)
			}
		default:
			if first == 0 {
				continue
			}
			id, text := r.Int32N(first), random(r)
			if _, err := coll.UpdateByID(t.Context(), id, bson.D{{Key: "$set", Value: bson.D{{Key: "text", Value: text}}}}); err != nil {
				t.Fatal(err)
			}
			have[id] = text
		}
	}
}

func random(r *rand.Rand) string {
	b := make([]byte, 300+r.IntN(1500))
	for i := range b {
		b[i] = byte('a' + r.IntN(26))
	}
	return string(b)
}

// check reads everything by a scan and by an index. What cannot be read must be told to be damaged, by an error that names the file
// and has MongoDB's code for it; all else must be as it was.
func (a acknowledged) check(admin *mongo.Database) (damaged error, err error) {
	ctx := context.Background()
	for _, name := range damagedCollections {
		coll := admin.Client().Database("test").Collection(name)
		for _, o := range []*options.FindOptionsBuilder{options.Find(), options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}).SetHint("_id_")} {
			var docs []struct {
				ID   int32 `bson:"_id"`
				Text string
			}
			found, err := coll.Find(ctx, bson.D{}, o)
			if err == nil {
				err = found.All(ctx, &docs)
			}
			var refused mongo.ServerError
			if errors.As(err, &refused) && refused.HasErrorCode(301) {
				damaged = err
				continue
			}
			if err != nil {
				return damaged, fmt.Errorf("%s: %w", name, err)
			}
			for _, d := range docs {
				if a[name][d.ID] != d.Text {
					return damaged, fmt.Errorf("%s: %d has another value", name, d.ID)
				}
			}
			if len(docs) != len(a[name]) {
				return damaged, fmt.Errorf("%s has %d of %d documents", name, len(docs), len(a[name]))
			}
		}
	}
	return damaged, nil
}

// damageOne damages one file below dir.
func damageOne(t *testing.T, dir string, r *rand.Rand) (name, what string) {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.IntN(2) == 0 { // one that holds data
		paths = slices.DeleteFunc(paths, func(path string) bool {
			base := filepath.Base(path)
			return !strings.HasSuffix(base, ".log") && !strings.HasSuffix(base, ".sst") && !strings.HasPrefix(base, "MANIFEST-")
		})
	}
	path := paths[r.IntN(len(paths))]
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	kind := r.IntN(4)
	if len(b) == 0 {
		kind = 3
	}
	switch kind {
	case 0:
		at := r.IntN(len(b))
		b[at] ^= 1 << r.IntN(8)
		what = fmt.Sprintf("a bit of byte %d of %d", at, len(b))
	case 1:
		at := r.IntN(len(b))
		n := min(1+r.IntN(16<<10), len(b)-at)
		clear(b[at : at+n])
		what = fmt.Sprintf("%d zeros from %d of %d", n, at, len(b))
	case 2:
		b = b[:r.IntN(len(b))]
		what = fmt.Sprintf("cut to %d", len(b))
	case 3:
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		return filepath.Base(path), "deleted"
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return filepath.Base(path), what
}

// survives opens a damaged directory: either it is refused, with an error that names the file, or everything is served that was acknowledged,
// but for what says that it is damaged. What is wrong ebb.Check finds too.
func (a acknowledged) survives(t *testing.T, dir, name, what string) (outcome string) {
	t.Helper()
	names := func(text string) bool {
		parts := strings.SplitN(name, ".", 3)
		return strings.Contains(text, name) || parts[0] == "marker" && strings.Contains(text, "marker."+parts[1])
	}
	checked, err := ebb.Check(dir, nil)
	if err != nil {
		t.Errorf("%s, %s: check: %v", name, what, err)
		return
	}
	found := strings.Join(slices.Concat(checked.Damages, checked.Foreign), "\n")
	s, err := ebb.Open(ebb.Options{Port: ebb.AnyPort, DBPath: dir})
	if err != nil {
		if strings.Contains(err.Error(), "is damaged") && !errors.Is(err, ebb.ErrDamaged) {
			t.Errorf("%s, %s: the error is not ErrDamaged: %v", name, what, err)
		}
		if !names(err.Error()) {
			t.Errorf("%s, %s: the error does not name the file: %v", name, what, err)
		}
		if !names(found) {
			t.Errorf("%s, %s: the check has not found it: %q", name, what, found)
		}
		return "refused"
	}
	if err := s.Close(); err != nil {
		t.Errorf("%s, %s: close: %v", name, what, err)
	}
	outcome = "served"
	serving(t, ebb.Options{Port: ebb.AnyPort, DBPath: dir}, func(admin *mongo.Database) {
		damaged, err := a.check(admin)
		if err != nil {
			t.Errorf("%s, %s: SILENT LOSS: %v", name, what, err)
		}
		if damaged == nil {
			return
		}
		outcome = "served in part"
		if !names(damaged.Error()) {
			t.Errorf("%s, %s: the error does not name the file: %v", name, what, damaged)
		}
		if !names(found) {
			t.Errorf("%s, %s: the check has not found it: %q", name, what, found)
		}
		expect(t, answer(t, admin, bson.D{{Key: "serverStatus", Value: 1}}), true, "pebble", "readOnly")
		_, err = admin.Client().Database("test").Collection("plain").InsertOne(context.Background(), bson.D{{Key: "_id", Value: -1}})
		var refused mongo.ServerError
		if !errors.As(err, &refused) || !refused.HasErrorCode(20) {
			t.Errorf("%s, %s: an insert answers %v", name, what, err)
		}
	})
	return outcome
}

// TestEmptiedStore: a directory whose store was emptied, or is gone, is refused and found by a check, whichever sign of it is left; one whose
// first start was cut off is begun.
func TestEmptiedStore(t *testing.T) {
	for _, sign := range []string{"tmp", "ebb.origin"} {
		dir := t.TempDir()
		serving(t, ebb.Options{Port: ebb.AnyPort, DBPath: dir}, func(*mongo.Database) {})
		for _, gone := range []string{"tmp", "ebb.origin"} {
			if gone != sign {
				if err := os.RemoveAll(filepath.Join(dir, gone)); err != nil {
					t.Fatal(err)
				}
			}
		}
		store := filepath.Join(dir, "store")
		refused := func(want string) {
			t.Helper()
			if s, err := ebb.Open(ebb.Options{Port: ebb.AnyPort, DBPath: dir}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), sign) {
				t.Errorf("%s: opened: %v, %v", sign, s, err)
			}
			if c, err := ebb.Check(dir, nil); err != nil || !strings.Contains(strings.Join(c.Damages, ""), want) {
				t.Errorf("%s: checked: %+v, %v", sign, c, err)
			}
		}
		if err := errors.Join(os.RemoveAll(store), os.Mkdir(store, 0o700)); err != nil {
			t.Fatal(err)
		}
		refused("holds no store any more")
		if err := os.Remove(store); err != nil {
			t.Fatal(err)
		}
		refused("is missing")
		if err := errors.Join(os.RemoveAll(filepath.Join(dir, sign)), os.Mkdir(store, 0o700)); err != nil { // as a first start leaves it
			t.Fatal(err)
		}
		serving(t, ebb.Options{Port: ebb.AnyPort, DBPath: dir}, func(*mongo.Database) {})
	}
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "store", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func copyDir(t *testing.T, from string) (to string) {
	t.Helper()
	to = filepath.Join(t.TempDir(), "data")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestRandomDamage damages one file after the other of a data directory whose server was stopped, and of one whose server was killed.
func TestRandomDamage(t *testing.T) {
	seed := *damageSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("go test . -run RandomDamage -timeout 0 -args -damages %d -damage-seed %d", *damageRounds, seed)
	r := rand.New(rand.NewPCG(seed, 0))
	dir, killed := filepath.Join(t.TempDir(), "data"), ""
	a := acknowledged{}
	o := ebb.Options{Port: ebb.AnyPort, DBPath: dir}
	serving(t, o, func(admin *mongo.Database) { a.write(t, admin, r) })
	serving(t, o, func(admin *mongo.Database) {
		a.write(t, admin, r)
		answer(t, admin, bson.D{{Key: "fsync", Value: 1}, {Key: "lock", Value: true}})
		for isWhole := false; !isWhole; { // nothing goes on meanwhile
			note := read(t, dir, "EBB-SYNCED")
			killed = filepath.Join(t.TempDir(), "killed")
			err := os.CopyFS(killed, os.DirFS(dir))
			isWhole = err == nil && bytes.Equal(note, read(t, dir, "EBB-SYNCED"))
		}
		answer(t, admin, bson.D{{Key: "fsyncUnlock", Value: 1}})
	})
	count := map[string]int{}
	for _, from := range []string{killed, dir} {
		if outcome := a.survives(t, copyDir(t, from), "nothing", "undamaged"); outcome != "served" {
			t.Fatal(outcome)
		}
		for range (*damageRounds + 1) / 2 {
			to := copyDir(t, from)
			name, what := damageOne(t, to, r)
			outcome := a.survives(t, to, name, what)
			if testing.Verbose() {
				t.Log(name, what, outcome)
			}
			count[outcome]++
			if err := os.RemoveAll(to); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Log(count)
}

// TestSalvage copies what can be read of a damaged directory: what mongorestore would read is what was acknowledged, but for what is
// told to be lost.
func TestSalvage(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	dir := filepath.Join(t.TempDir(), "data")
	a := acknowledged{}
	for range 2 {
		serving(t, ebb.Options{Port: ebb.AnyPort, DBPath: dir}, func(admin *mongo.Database) { a.write(t, admin, r) })
	}
	last := func(pattern string) func(*testing.T, string) string {
		return func(t *testing.T, dir string) string {
			names := match(t, filepath.Join(dir, "store"), pattern)
			return names[len(names)-1]
		}
	}
	largest := func(t *testing.T, dir string) (name string) {
		size := int64(0)
		for _, path := range match(t, filepath.Join(dir, "store"), "*.sst") {
			if info, err := os.Stat(path); err == nil && info.Size() > size {
				name, size = path, info.Size()
			}
		}
		return name
	}
	remove := func(_ []byte) []byte { return nil }
	flip := func(b []byte) []byte { b[len(b)/3] ^= 1; return b }
	cut := func(b []byte) []byte { return b[:len(b)*2/3] }
	for _, c := range []struct {
		name  string
		file  func(t *testing.T, dir string) string // nil: see store
		spoil func([]byte) []byte                   // nil removes it
		store func(t kv.Txn, key, value []byte)     // does something to the store as it is
		least int                                   // documents of each collection, in hundredths
		whole bool                                  // nothing is told to be lost
		bare  bool                                  // the catalogue may be lost
	}{
		{name: "nothing", least: 100, whole: true},
		{name: "the manifest is missing", file: last("MANIFEST-*"), spoil: remove, least: 100},
		{name: "the manifest has a flipped bit", file: last("MANIFEST-*"), spoil: flip, least: 100},
		{name: "the marker is missing", file: last("marker.manifest.*"), spoil: remove, least: 100},
		{name: "a table is missing", file: last("*.sst"), spoil: remove, least: 1, bare: true},
		{name: "a table has a flipped bit", file: largest, spoil: flip, least: 1, bare: true},
		{name: "a log is missing", file: last("*.log"), spoil: remove, least: 1},
		{name: "a log is torn", file: last("*.log"), spoil: cut, least: 1},
		{name: "a log has a flipped bit", file: last("*.log"), spoil: flip, least: 1},
		{name: "a row of the catalogue is damaged", least: 100, bare: true, store: func(t kv.Txn, key, value []byte) {
			if key[0] == layout.MetaPrefix && key[1] == layout.MetaCollection {
				t.Set(key, value[:len(value)/2])
			}
		}},
		{name: "the entries of indexes are gone", least: 100, whole: true, store: func(t kv.Txn, key, _ []byte) {
			if key[0] == layout.IndexPrefix {
				t.Delete(key)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			damaged, out := copyDir(t, dir), filepath.Join(t.TempDir(), "dump")
			if c.file != nil {
				spoil(t, c.file(t, damaged), c.spoil)
			}
			if c.store != nil {
				spoilKeys(t, filepath.Join(damaged, "store"), c.store)
			}
			before := sumOf(t, damaged)
			s, err := ebb.Salvage(damaged, out)
			if err != nil {
				t.Fatal(err)
			}
			if sumOf(t, damaged) != before {
				t.Error("the damaged directory was changed")
			}
			if (s.LostCount == 0) != c.whole {
				t.Errorf("lost: %q", s.Lost)
			}
			if s.IsComplete() != c.whole {
				t.Errorf("complete: %v, of %v", s.IsComplete(), s.Copied)
			}
			right := a.dumped(t, out)
			for _, name := range damagedCollections {
				if of := copiedOf(s, "test."+name); c.whole && (of.Documents != int64(right[name]) || of.Of != int64(len(a[name]))) {
					t.Errorf("%s: %+v", name, of)
				}
				if right[name]*100 < c.least*len(a[name]) {
					t.Errorf("%s: %d of %d documents", name, right[name], len(a[name]))
				}
				if c.bare {
					continue // which may have had the catalogue
				}
				var meta bson.M
				text, err := os.ReadFile(filepath.Join(out, "test", name+".metadata.json"))
				if err == nil {
					err = bson.UnmarshalExtJSON(text, false, &meta)
				}
				if err != nil || meta["collectionName"] != name || len(meta["indexes"].(bson.A)) != 2 {
					t.Errorf("%s: metadata %s, %v", name, text, err)
				}
			}
		})
	}
}

// TestSalvageTimeSeries: the measurements of a time series are copied as mongorestore wants them, which puts them into a new one by its buckets.
func TestSalvageTimeSeries(t *testing.T) {
	dir, out := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "dump")
	measurements := func(admin *mongo.Database) (all []bson.M) {
		cursor, err := admin.Client().Database("test").Collection("series").Find(t.Context(), bson.D{}, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
		if err == nil {
			err = cursor.All(t.Context(), &all)
		}
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	var was, is []bson.M
	serving(t, ebb.Options{Port: ebb.AnyPort, DBPath: dir}, func(admin *mongo.Database) {
		db := admin.Client().Database("test")
		if err := db.CreateCollection(t.Context(), "series", options.CreateCollection().SetTimeSeriesOptions(options.TimeSeries().SetTimeField("t").SetMetaField("m"))); err != nil {
			t.Fatal(err)
		}
		var docs []any
		for i := range 3000 {
			docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "t", Value: bson.DateTime(i * 1000)}, {Key: "m", Value: bson.D{{Key: "s", Value: i % 2}}}, {Key: "v", Value: i}})
		}
		if _, err := db.Collection("series").InsertMany(t.Context(), docs); err != nil {
			t.Fatal(err)
		}
		was = measurements(admin)
	})
	s, err := ebb.Salvage(dir, out)
	if err != nil {
		t.Fatal(err)
	}
	if c := copiedOf(s, "test.series"); !s.IsComplete() || c.Documents != 3000 || c.Of != 3000 {
		t.Errorf("%+v, lost: %q", c, s.Lost)
	}
	var meta struct{ Options bson.D }
	text, err := os.ReadFile(filepath.Join(out, "test", "series.metadata.json"))
	if err == nil {
		err = bson.UnmarshalExtJSON(text, false, &meta)
	}
	if err != nil {
		t.Fatal(err)
	}
	serving(t, ebb.Options{Port: ebb.AnyPort, DBPath: filepath.Join(t.TempDir(), "other")}, func(admin *mongo.Database) {
		db := admin.Client().Database("test")
		if err := db.RunCommand(t.Context(), append(bson.D{{Key: "create", Value: "series"}}, meta.Options...)).Err(); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(out, "test", "system.buckets.series.bson"))
		if err != nil {
			t.Fatal(err)
		}
		for in := bytes.NewReader(b); in.Len() > 0; {
			bucket, err := bson.ReadDocument(in)
			if err == nil {
				_, err = db.Collection("system.buckets.series").InsertOne(t.Context(), bucket)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		is = measurements(admin)
	})
	if !reflect.DeepEqual(was, is) {
		t.Errorf("%d measurements, and there were %d", len(is), len(was))
	}
}

// copiedOf is how much was copied of a collection.
func copiedOf(s *ebb.Salvaged, namespace string) ebb.Copied {
	for _, c := range s.Copied {
		if c.Namespace == namespace {
			return c
		}
	}
	return ebb.Copied{}
}

// spoil changes a file, or removes it.
func spoil(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if b = change(b); b == nil {
		err = os.Remove(path)
	} else {
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// spoilKeys changes keys of a store whose files are sound.
func spoilKeys(t *testing.T, dir string, change func(txn kv.Txn, key, value []byte)) {
	t.Helper()
	e, err := pebblekv.Open(dir, pebblekv.Options{CommitKey: storage.CommitKey()})
	if err != nil {
		t.Fatal(err)
	}
	txn, err := e.Begin()
	if err != nil {
		t.Fatal(err)
	}
	view, err := e.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	it, err := view.NewIter(kv.IterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for it.Next() {
		value, err := it.Value()
		if err != nil {
			t.Fatal(err)
		}
		change(txn, bytes.Clone(it.Key()), value)
	}
	if err := errors.Join(it.Err(), it.Close()); err != nil {
		t.Fatal(err)
	}
	view.Close()
	if err := errors.Join(txn.Commit(t.Context(), kv.Synced), e.Close()); err != nil {
		t.Fatal(err)
	}
}

// sumOf is of the names, sizes and contents of all files of a directory.
func sumOf(t *testing.T, dir string) string {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		fmt.Fprintln(h, path, len(b))
		h.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// dumped counts the documents in all files of a dump that are as they were acknowledged. Their texts are random.
func (a acknowledged) dumped(t *testing.T, out string) (right map[string]int) {
	t.Helper()
	type document struct{ id, text string }
	of := map[document]string{}
	for name, docs := range a {
		for id, text := range docs {
			of[document{fmt.Sprint(id), text}] = name
		}
	}
	right = map[string]int{}
	for _, path := range match(t, out, "*/*.bson") {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for in := bytes.NewReader(b); in.Len() > 0; {
			raw, err := bson.ReadDocument(in)
			if err != nil {
				t.Fatal(err)
			}
			id, _ := raw.Lookup("_id").AsInt64OK()
			text, _ := raw.Lookup("text").StringValueOK()
			if name, ok := of[document{fmt.Sprint(id), text}]; ok {
				right[name]++
			}
		}
	}
	return right
}

// TestCheckReadsReplicationLog: a check finds what is damaged of a member's log as well.
func TestCheckReadsReplicationLog(t *testing.T) {
	dir := t.TempDir()
	serving(t, ebb.Options{Port: ebb.AnyPort, DBPath: dir}, func(*mongo.Database) {})
	log := filepath.Join(dir, member.LogDir)
	d, err := raftlog.OpenDisk(log, vfs.Default, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if c, err := ebb.Check(dir, nil); err != nil || len(c.Damages) > 0 {
		t.Fatalf("of a log that is whole: %+v, %v", c, err)
	}
	markers, err := filepath.Glob(filepath.Join(log, inspect.MarkerPrefix+"*"))
	if err != nil || len(markers) != 1 {
		t.Fatal(markers, err)
	}
	if err := os.Remove(markers[0]); err != nil {
		t.Fatal(err)
	}
	if c, err := ebb.Check(dir, nil); err != nil || len(c.Damages) != 1 || !strings.Contains(c.Damages[0], inspect.MarkerPrefix) {
		t.Errorf("without its marker: %+v, %v", c, err)
	}
}
