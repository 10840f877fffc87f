package storage

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "seed of the model test; 0 draws one")
	stepsFlag = flag.Int("steps", 1500, "steps of the model test")
)

// TestModel does at random to a store what it does to a naive list that is filtered by deadline, and compares all that can
// be read: scans both ways, look-ups, every index, counts; now and then it validates, sweeps, restarts and changes
// indexes. Under "sliding" records lie by the times of their last modification, the clock goes on in small steps, and it is
// turned back now and then.
func TestModel(t *testing.T) {
	for i, kind := range []string{"plain", "clustered", "sliding"} {
		t.Run(kind, func(t *testing.T) {
			seed := *seedFlag
			if seed == 0 {
				seed = rand.Uint64()
			}
			t.Logf("go test ./internal/storage -run TestModel/%s -seed %d -steps %d", kind, seed, *stepsFlag)
			m := &model{fixture: newFixture(t), rng: rand.New(rand.NewPCG(seed, uint64(i))), ns: namespace.NS{DB: "db", Coll: "c"}}
			if seed%2 == 0 {
				m.online()
			}
			m.begin(kind)
			steps := *stepsFlag
			if kind == "sliding" {
				steps *= 4
			}
			for step := range steps {
				m.step(step)
			}
			t.Logf("%d documents were swept, %d of them from coarse places; %d changed ones stayed at such", m.swept, m.sweptCoarse, m.stayed)
			if kind != "clustered" && m.swept == 0 && *stepsFlag >= 1000 {
				t.Error("nothing was swept")
			}
			if kind == "sliding" && (m.sweptCoarse == 0 || m.stayed == 0) && *stepsFlag >= 1000 {
				t.Error("nothing was swept from coarse places, or nothing stayed at one")
			}
		})
	}
}

type model struct {
	*fixture
	rng  *rand.Rand
	ns   namespace.NS
	list []modelDoc // in order of insertion
	defs []*index.Definition
	// swept is how many documents were deleted by sweeps of whole stretches, sweptCoarse how many of them lay at coarse places,
	// and stayed how many changed documents have stayed at one.
	swept, sweptCoarse, stayed int64
	// sliding is whether the TTL index on _ts stays; hidesUpTo is the latest time there was.
	sliding   bool
	hidesUpTo int64
	changed   bson.Value // the _id of the last that was changed: under sliding it often is so again
}

type modelDoc struct {
	doc      bson.Doc
	modified int64
	gone     bool // deleted, or expired and seen so
}

// The indexes that come and go, all of which the naive side knows too.
var modelIndexes = []string{
	`{key: {a: 1}, name: "a"}`,
	`{key: {a: -1, b: 1}, name: "ab", sparse: true}`,
	`{key: {u: 1}, name: "u", unique: true, sparse: true}`,
	`{key: {"a.x": 1}, name: "ax"}`,
	`{key: {b: 1}, name: "b", unique: true, partialFilterExpression: {b: {$gt: 5}}}`,
	`{key: {_ts: 1}, name: "ts", expireAfterSeconds: 20}`,
	`{key: {a: "hashed", b: -1}, name: "hash"}`,
	`{key: {"$**": 1}, name: "wild"}`,
	`{key: {b: 1, "a.$**": -1}, name: "wildb", partialFilterExpression: {b: {$lt: 9}}}`,
	`{key: {d: 1}, name: "d", expireAfterSeconds: 10, hideExpired: true}`,
	`{key: {d: -1}, name: "visible", expireAfterSeconds: 10, unique: true, sparse: true}`,
}

func (m *model) begin(kind string) {
	options := bson.EmptyDoc
	if kind == "clustered" {
		options = bson.MustDoc(`{clusteredIndex: {key: {_id: 1}, unique: true}}`)
	}
	if m.sliding = kind == "sliding"; m.sliding {
		m.hidesUpTo = math.MinInt64
		m.options.HidesUpTo = func() int64 { return m.hidesUpTo }
		m.reopen()
	}
	_, err := m.CreateCollection(context.Background(), m.ns, options)
	m.must(err)
	if m.sliding {
		m.createIndexes(m.ns, `{key: {_ts: 1}, name: "ts", expireAfterSeconds: 640}`)
	}
	m.load()
}

func (m *model) load() {
	m.defs = m.current.Load().catalog.Collection(m.ns).Indexes
}

func (m *model) step(n int) {
	switch p := m.rng.IntN(100); {
	case p < 40:
		m.stepInsert()
	case p < 65:
		m.stepUpdate()
	case p < 75:
		m.stepDelete()
	case p < 85:
		m.stepClock()
	case p < 88:
		m.sweep(m.ns)
		m.forgetSwept()
	case p < 90:
		m.stepSweep()
	case p < 92:
		m.stepRecluster()
	case p < 94:
		m.stepVacuum()
	case p < 98:
		m.stepIndexes()
	case p < 99:
		m.reopen()
	default:
		m.compare(n)
	}
	if n%50 == 0 {
		m.compare(n)
		m.validate(m.ns)
	}
}

// modifiedAt is when what is written now counts as modified.
func (m *model) modifiedAt() int64 {
	if !m.sliding {
		return m.Now()
	}
	return max(m.Now(), m.hidesUpTo)
}

// stepClock goes on; what has been hidden stays so where the clock is turned back.
func (m *model) stepClock() {
	most := 4000
	if m.sliding { // a cell is ten seconds wide at first
		m.hidesUpTo = max(m.hidesUpTo, m.Now())
		switch p := m.rng.IntN(20); {
		case p < 14:
			most = 500
		case p < 16:
			m.clock.Step(-time.Duration(m.rng.IntN(8000)) * time.Millisecond)
			return
		default:
			most = 80_000
		}
	}
	m.clock.Advance(time.Duration(m.rng.IntN(most)) * time.Millisecond)
	if m.sliding && m.rng.IntN(8) == 0 {
		m.stepSweep()
	}
}

// coarse is how many records lie at coarse places.
func (m *model) coarse() (n int64) {
	m.read(m.ns, func(r *Reader) error {
		c, err := r.Unhidden().Scan(RecordScan{})
		m.must(err)
		defer c.Close()
		for c.Next() {
			if id := c.Record().ID; id.IsOrdered() && id.IsCoarse() {
				n++
			}
		}
		return c.Err()
	})
	return n
}

// stepSweep deletes at once what has expired by the rule that orders, when all is in order.
func (m *model) stepSweep() {
	c := m.current.Load().collections[m.current.Load().catalog.Collection(m.ns).ID]
	for i := range c.rules.All() {
		rule := &c.rules.All()[i]
		coarse := m.coarse()
		done, ok, err := m.Sweep(context.Background(), c.ID, rule, m.Now())
		m.must(err)
		if !ok {
			continue
		}
		m.swept += done.Documents
		m.sweptCoarse += coarse - m.coarse()
		m.visible()
		m.forgetExpiredBy(rule.Index)
	}
}

func (m *model) stepRecluster() {
	_, _, err := m.Recluster(context.Background(), m.current.Load().catalog.Collection(m.ns).ID, 1+m.rng.IntN(200))
	m.must(err)
}

// document draws a document; few values, so that unique keys meet.
func (m *model) document(id int) bson.Doc {
	b := bson.Build().Int32("_id", int32(id))
	value := func(depth int) bson.Value {
		switch m.rng.IntN(9) {
		case 0:
			return bson.Double(float64(m.rng.IntN(4)))
		case 1:
			return bson.String(strings.Repeat("s", m.rng.IntN(3)))
		case 2:
			return bson.Null
		case 3:
			return bson.MustDoc(`{x: [1, 2]}`).Value()
		case 4:
			return bson.ArrayOf(bson.Int32(int32(m.rng.IntN(4))), bson.MustDoc(`{x: 3}`).Value(), bson.Int32(int32(m.rng.IntN(4))))
		case 5:
			return bson.EmptyArr
		}
		return bson.Int32(int32(m.rng.IntN(10)))
	}
	if m.rng.IntN(4) > 0 {
		b.Value("a", value(1))
	}
	if m.rng.IntN(3) > 0 {
		b.Int32("b", int32(m.rng.IntN(40)))
	}
	if m.rng.IntN(3) > 0 {
		b.Int32("u", int32(m.rng.IntN(60)))
	}
	if m.rng.IntN(3) == 0 {
		b.Value("d", m.dates())
	}
	switch m.rng.IntN(8) {
	case 0:
		seconds := 1 + m.rng.IntN(40)
		if m.sliding && m.rng.IntN(2) == 0 {
			seconds += 960 // which is long enough for a coarse place
		}
		b.Int32("ttl", int32(seconds))
	case 1:
		b.Double("ttl", float64(m.rng.IntN(10))-3)
	case 2:
		b.Value("ttl", value(1))
	}
	return b.Doc()
}

func (m *model) dates() bson.Value {
	date := func() bson.Value { return bson.Date(m.Now() + int64(m.rng.IntN(30_000)) - 15_000) }
	if m.rng.IntN(3) == 0 {
		return bson.ArrayOf(date(), bson.String("x"), date())
	}
	return date()
}

// hidden is the rule said again, naively: by which of the present indexes is d expired and invisible.
func (m *model) hidden(d modelDoc) bool {
	for _, def := range m.defs {
		if (def.Name == "ts" || def.HideExpired) && m.expiredAt(d, def, m.expiryClock.Time()) {
			return true
		}
	}
	return false
}

func (m *model) expired(d modelDoc, def *index.Definition) bool { return m.expiredAt(d, def, m.Now()) }

func (m *model) expiredAt(d modelDoc, def *index.Definition, now int64) bool {
	if def.Name == "ts" {
		seconds := float64(def.ExpireAfterSeconds)
		if v := d.doc.Lookup("ttl"); v.Type == bson.TypeInt32 || v.Type == bson.TypeDouble {
			switch n := v.AsDouble(); {
			case n == -1:
				return false
			case n >= 1 && n == math.Floor(n):
				seconds = n
			}
		}
		return seconds > 0 && float64(d.modified)+seconds*1000 <= float64(now)
	}
	if !def.TTL {
		return false
	}
	v := d.doc.Lookup("d")
	values := []bson.Value{v}
	if v.Type == bson.TypeArray {
		values = v.Doc().Values(nil)
	}
	return slices.ContainsFunc(values, func(v bson.Value) bool {
		return v.Type == bson.TypeDate && v.Millis()+int64(def.ExpireAfterSeconds)*1000 <= now
	})
}

// visible are the documents that are there, in natural order.
func (m *model) visible() []int {
	var out []int
	for i := range m.list {
		d := &m.list[i]
		if !d.gone && m.hidden(*d) {
			d.gone = true // it must never come back, whatever becomes of the rule
		}
		if !d.gone {
			out = append(out, i)
		}
	}
	if m.current.Load().catalog.Collection(m.ns).IsClustered() {
		sort.Slice(out, func(i, j int) bool {
			return bson.Compare(m.list[out[i]].doc.Lookup("_id"), m.list[out[j]].doc.Lookup("_id")) < 0
		})
	}
	return out
}

// taken says by which index, if any, doc is refused; self is its place in the list or -1.
func (m *model) taken(doc bson.Doc, self int) string {
	for _, i := range m.visible() {
		if i != self && bson.Equal(m.list[i].doc.Lookup("_id"), doc.Lookup("_id")) {
			return "_id_"
		}
	}
	for _, def := range m.defs {
		if !def.Unique {
			continue
		}
		var own, other index.Keys
		m.must(def.Keys(doc, &own))
		for _, i := range m.visible() {
			if i == self {
				continue
			}
			m.must(def.Keys(m.list[i].doc, &other))
			for k := range own.Len() {
				for l := range other.Len() {
					if string(own.Key(k)) == string(other.Key(l)) {
						return def.Name
					}
				}
			}
		}
	}
	return ""
}

func (m *model) sameOutcome(what string, doc bson.Doc, err error, taken string) {
	m.t.Helper()
	if (taken != "") != mongoerr.Is(err, mongoerr.DuplicateKey) || taken == "" && err != nil {
		m.t.Fatalf("%s %s: got %v, the model says taken by %q", what, doc, err, taken)
	}
	if taken != "" && taken != "_id_" && !strings.Contains(err.Error(), "index: "+taken+" ") {
		m.t.Fatalf("%s %s: got %v, the model says taken by %q", what, doc, err, taken)
	}
}

// parallel says whether the document cannot be in a compound index.
func (m *model) parallel(doc bson.Doc) bool {
	return slices.ContainsFunc(m.defs, func(d *index.Definition) bool {
		var k index.Keys
		return d.Keys(doc, &k) != nil
	})
}

// stepVacuum vacuums a little, which may leave a stretch half written.
func (m *model) stepVacuum() {
	limit := 1 + m.rng.IntN(10)
	for range 1 + m.rng.IntN(8) {
		_, _, err := m.Vacuum(context.Background(), m.current.Load().catalog.Collection(m.ns).ID, limit)
		m.must(err)
	}
}

func (m *model) stepInsert() {
	doc := m.document(m.rng.IntN(300))
	if m.parallel(doc) {
		return
	}
	taken := m.taken(doc, -1)
	err := m.insert(m.ns, doc.Text())
	m.sameOutcome("insert", doc, err, taken)
	if err == nil {
		m.list = append(m.list, modelDoc{doc: doc, modified: m.modifiedAt()})
	}
}

// pick draws a document that may be there, expired or gone.
func (m *model) pick() (i int, ok bool) {
	if len(m.list) == 0 {
		return 0, false
	}
	return m.rng.IntN(len(m.list)), true
}

func (m *model) stepUpdate() {
	i, ok := m.pick()
	if !ok {
		return
	}
	id := m.list[i].doc.Lookup("_id")
	if m.sliding && m.changed.Type != 0 && m.rng.IntN(2) == 0 {
		id = m.changed
	}
	m.changed = id
	i = m.place(id)
	doc := m.document(int(id.Int32()))
	if m.parallel(doc) {
		return
	}
	if i >= 0 && m.rng.IntN(8) == 0 {
		doc = m.list[i].doc // which must not move its last modification
	}
	taken := ""
	if i >= 0 {
		taken = m.taken(doc, i)
	}
	before := m.placeOf(id)
	there, err := m.change(m.ns, id, doc.Text())
	if after := m.placeOf(id); i >= 0 && after.IsOrdered() && after.IsCoarse() && string(after) == string(before) && string(doc) != string(m.list[i].doc) {
		m.stayed++
	}
	if there != (i >= 0) {
		m.t.Fatalf("update %s: there %v, the model says %v", id, there, i >= 0)
	}
	if i < 0 {
		return
	}
	m.sameOutcome("update", doc, err, taken)
	if err == nil && string(m.list[i].doc) != string(doc) {
		m.list[i].doc, m.list[i].modified = doc, m.modifiedAt()
	}
}

// placeOf is where the record of a document lies, nil if there is none to see.
func (m *model) placeOf(id bson.Value) (at RecordID) {
	m.read(m.ns, func(r *Reader) error {
		rec, ok, err := r.GetByID(id)
		if ok {
			at = rec.ID.Clone()
		}
		return err
	})
	return at
}

// place is where the visible document with an _id stands, or -1.
func (m *model) place(id bson.Value) int {
	for _, i := range m.visible() {
		if bson.Equal(m.list[i].doc.Lookup("_id"), id) {
			return i
		}
	}
	return -1
}

func (m *model) stepDelete() {
	i, ok := m.pick()
	if !ok {
		return
	}
	id := m.list[i].doc.Lookup("_id")
	i = m.place(id)
	there, err := m.change(m.ns, id, "")
	m.must(err)
	if there != (i >= 0) {
		m.t.Fatalf("delete %s: there %v, the model says %v", id, there, i >= 0)
	}
	if i >= 0 {
		m.list[i].gone = true
	}
}

// forgetSwept: a sweep deletes what has expired by visible rules too.
func (m *model) forgetSwept() {
	for i := range m.list {
		for _, def := range m.defs {
			m.list[i].gone = m.list[i].gone || m.expired(m.list[i], def)
		}
	}
}

func (m *model) stepIndexes() {
	ctx := context.Background()
	spec := modelIndexes[m.rng.IntN(len(modelIndexes))]
	retime := m.rng.IntN(2) == 0
	d, err := m.parser.Parse(bson.MustDoc(spec), nil)
	m.must(err)
	there := m.current.Load().catalog.Collection(m.ns).Index(d.Name)
	switch {
	case there == nil:
		m.stepCreateIndex(d, spec)
	case there.TTL && (retime || m.sliding && there.Name == "ts"):
		m.stepRetime(there)
	default:
		m.visible() // what is hidden is deleted, and nothing else
		_, err := m.DropIndexes(ctx, m.ns, func(*catalog.Collection) ([]*index.Definition, error) {
			return []*index.Definition{there}, nil
		})
		m.must(err)
		m.load()
	}
}

// forgetExpiredBy: so does a sweep by one index.
func (m *model) forgetExpiredBy(def *index.Definition) {
	for i := range m.list {
		m.list[i].gone = m.list[i].gone || m.expired(m.list[i], def)
	}
}

func (m *model) stepCreateIndex(d *index.Definition, spec string) {
	refused := false
	var all []string
	var keys index.Keys
	for _, i := range m.visible() {
		if d.Keys(m.list[i].doc, &keys) != nil {
			refused = true
			continue
		}
		for k := range keys.Len() {
			all = append(all, string(keys.Key(k)))
		}
	}
	sort.Strings(all)
	if d.Unique && len(slices.Compact(slices.Clone(all))) < len(all) {
		refused = true
	}
	_, err := m.CreateIndexes(context.Background(), m.ns, m.parse(spec))
	if refused != (err != nil) {
		m.t.Fatalf("create index %s: got %v, the model says refused %v", spec, err, refused)
	}
	m.load()
}

// stepRetime moves a TTL up or down with collMod.
func (m *model) stepRetime(there *index.Definition) {
	seconds := int32(5 + m.rng.IntN(30))
	if m.sliding {
		seconds *= 20
	}
	m.visible()
	err := m.Modify(context.Background(), m.ns, func(c *catalog.Collection) (*catalog.Collection, error) {
		defs := slices.Clone(c.Indexes)
		for i, d := range defs {
			if d.ID == there.ID {
				b := bson.Build()
				for it := d.Spec.Iter(); it.Next(); {
					if it.Key() != "expireAfterSeconds" {
						b.Value(it.Key(), it.Value())
					}
				}
				changed, err := m.parser.Load(b.Int32("expireAfterSeconds", seconds).Doc(), nil)
				if err != nil {
					return nil, err
				}
				defs[i] = changed.WithID(d.ID)
			}
		}
		return c.WithIndexes(defs), nil
	})
	m.must(err)
	m.load()
}

// compare reads all there is to read and wants the model's answer.
func (m *model) compare(step int) {
	m.t.Helper()
	var want []string
	for _, i := range m.visible() {
		want = append(want, m.list[i].doc.Text())
	}
	m.read(m.ns, func(r *Reader) error {
		forward := scanTexts(m, r, RecordScan{})
		backward := slices.Clone(forward)
		slices.Reverse(backward)
		if !r.c.IsClustered() { // a TTL index orders them otherwise, and what it has ordered stays so
			slices.Sort(forward)
			slices.Sort(want)
		}
		m.same(step, "scan", forward, want)
		m.same(step, "backward scan", scanTexts(m, r, RecordScan{Reverse: true}), backward)
		n, err := r.Count()
		m.must(err)
		if n != int64(len(want)) {
			m.t.Fatalf("step %d: count %d, want %d", step, n, len(want))
		}
		m.compareIDs(r)
		for _, d := range m.defs {
			if d.Kind != index.Deadline {
				m.compareIndex(step, r, d)
			}
			m.compareDue(step, r, d)
		}
		return nil
	})
}

func (m *model) same(step int, what string, got, want []string) {
	m.t.Helper()
	if !slices.Equal(got, want) {
		m.t.Fatalf("step %d: %s\ngot  %v\nwant %v", step, what, got, want)
	}
}

func scanTexts(m *model, r *Reader, s RecordScan) (out []string) {
	c, err := r.Scan(s)
	m.must(err)
	defer c.Close()
	for c.Next() {
		out = append(out, c.Record().Doc.Text())
	}
	m.must(c.Err())
	return out
}

func (m *model) compareIDs(r *Reader) {
	m.t.Helper()
	for id := range 300 {
		rec, there, err := r.GetByID(bson.Double(float64(id)))
		m.must(err)
		i := m.place(bson.Int32(int32(id)))
		if there != (i >= 0) || there && rec.Doc.Text() != m.list[i].doc.Text() {
			m.t.Fatalf("_id %d: %s, the model says %d", id, rec.Doc, i)
		}
		if there {
			if found, err := r.GetMany([]RecordID{rec.ID}); err != nil || string(found[0].Doc) != string(rec.Doc) || found[0].Modified != m.list[i].modified {
				m.t.Fatalf("_id %d: %v %v", id, found, err)
			}
		}
	}
}

// compareIndex walks an index, parking at random, and wants the keys of all visible documents in order.
func (m *model) compareIndex(step int, r *Reader, d *index.Definition) {
	m.t.Helper()
	var want []string
	var keys index.Keys
	anyMultikey := false
	for _, i := range m.visible() {
		m.must(d.Keys(m.list[i].doc, &keys))
		anyMultikey = anyMultikey || keys.IsMultikey()
		for k := range keys.Len() {
			v, err := d.KeyValue(keys.Key(k), keys.TypeBits(k))
			m.must(err)
			want = append(want, fmt.Sprintf("%x %s %s", keys.Key(k), v.Text(), m.list[i].doc.Lookup("_id")))
		}
	}
	sort.SliceStable(want, func(i, j int) bool { return keyOf(want[i]) < keyOf(want[j]) })
	got := m.walkIndex(r, d, false)
	if !slices.Equal(sorted(got), sorted(want)) || !sort.SliceIsSorted(got, func(i, j int) bool { return keyOf(got[i]) < keyOf(got[j]) }) {
		m.t.Fatalf("step %d: index %s\ngot  %v\nwant %v", step, d.Name, got, want)
	}
	back := m.walkIndex(r, d, true)
	slices.Reverse(back)
	m.same(step, "backward index "+d.Name, back, got)
	if d.Wild != nil {
		m.comparePaths(step, r, d)
	} else if bits := r.Multikey(d); anyMultikey && slices.Max(bits) == 0 {
		m.t.Fatalf("step %d: index %s is not multikey", step, d.Name)
	}
}

func (m *model) comparePaths(step int, r *Reader, d *index.Definition) {
	m.t.Helper()
	var keys index.Keys
	for _, i := range m.visible() {
		if m.must(d.Keys(m.list[i].doc, &keys)); !r.MultikeyPaths(d).HasAll(&keys) {
			m.t.Fatalf("step %d: index %s is not multikey in %v", step, d.Name, keys.Paths())
		}
	}
}

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

func keyOf(s string) string { return s[:strings.IndexByte(s, ' ')] }

func (m *model) walkIndex(r *Reader, d *index.Definition, reverse bool) (out []string) {
	scan := IndexScan{Index: d, Reverse: reverse}
	for parked := true; parked; {
		parked = false
		c, err := r.ScanIndex(scan)
		m.must(err)
		for c.Next() {
			e := c.Entry()
			rec, there, err := r.Get(e.RecordID)
			m.must(err)
			if !there {
				m.t.Fatalf("index %s shows a record that is not there", d.Name)
			}
			v, err := d.KeyValue(e.Key, e.TypeBits)
			m.must(err)
			out = append(out, fmt.Sprintf("%x %s %s", e.Key, v.Text(), rec.Doc.Lookup("_id")))
			if m.rng.IntN(5) == 0 {
				scan.After = &IndexPosition{slices.Clone(e.Key), e.RecordID.Clone()}
				parked = true
				break
			}
		}
		m.must(c.Err())
		m.must(c.Close())
	}
	return out
}

// compareDue wants the earliest deadline among all stored documents, which are at least the visible ones.
func (m *model) compareDue(step int, r *Reader, d *index.Definition) {
	m.t.Helper()
	rule, ok := r.Rules().ForIndexID(d.ID)
	if !ok {
		return
	}
	earliest := int64(math.MaxInt64)
	due := map[string]bool{}
	for _, i := range m.visible() {
		if m.expired(m.list[i], d) {
			due[m.list[i].doc.Lookup("_id").String()] = true
		}
		if at, _ := rule.Deadline(m.list[i].doc, m.list[i].modified); at < earliest {
			earliest = at
		}
	}
	next, ok, err := r.Dates().Next(rule)
	m.must(err)
	if earliest != math.MaxInt64 && (!ok || next > earliest) {
		m.t.Fatalf("step %d: next deadline by %s is %d, want at most %d", step, d.Name, next, earliest)
	}
	var after []byte
	for more := true; more; more = after != nil {
		var ids []RecordID
		ids, after, err = r.Due(rule, m.Now(), after, 1+m.rng.IntN(4))
		m.must(err)
		for _, id := range ids {
			rec, _, err := r.stored(id)
			m.must(err)
			if at, _ := rule.Deadline(rec.Doc, rec.Modified); at > m.Now() {
				m.t.Fatalf("step %d: %s is due by %s at %d, now is %d", step, rec.Doc, d.Name, at, m.Now())
			}
			delete(due, rec.Doc.Lookup("_id").String())
		}
	}
	if len(due) > 0 {
		m.t.Fatalf("step %d: %v should be due by %s", step, due, d.Name)
	}
}
