package ebbtest_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// dice thinks of what to do next. It looks at the truth to do what matters: to hit documents, deadlines and indexes.
type dice struct {
	r      *rand.Rand
	truth  *truth
	folder bool // the server can be started again
	ids    int  // how many different _ids there are
	waves  bool // many documents come at once
	opened int  // cursors so far
	turned bool // the clock was turned last
}

func (d *dice) n(below int) int { return d.r.IntN(below) }

func (d *dice) chance(percent int) bool { return d.r.IntN(100) < percent }

func (d *dice) pick(from ...string) string { return from[d.r.IntN(len(from))] }

func (d *dice) coll() string { return d.pick("a", "a", "a", "a", "b", "b", "c") }

// next is a line to run; it may make no sense just now.
func (d *dice) next() string {
	turned := d.turned
	d.turned = false
	if d.folder && (d.chance(1) || turned && d.chance(15)) { // what was swept just now is not cleaned yet
		return "restart " + d.pick("0", "0", "0", "7200000", "86400000", "-5000", "-7200000")
	}
	if line := d.time(); line != "" {
		return line
	}
	switch n := d.n(1000); {
	case n < 40 && d.waves:
		return d.wave()
	case n < 260:
		return "run " + d.insert(d.coll())
	case n < 430:
		return "run " + d.update(d.coll())
	case n < 490:
		return "run " + d.findAndModify(d.coll())
	case n < 560:
		return "run " + d.delete(d.coll())
	case n < 700:
		d.turned = true
		return "clock " + d.step()
	case n < 730:
		return "pass"
	case n < 800:
		return "run " + d.createIndexes(d.coll())
	case n < 825:
		coll, index := d.some()
		return fmt.Sprintf("run {dropIndexes: %q, index: %q%s}", coll, index, d.onHidden())
	case n < 880:
		return "run " + d.collMod()
	case n < 885:
		return fmt.Sprintf("run {drop: %q}", d.coll())
	case n < 893:
		return fmt.Sprintf("admin {renameCollection: 'test.%s', to: 'test.%s', dropTarget: %v}", d.coll(), d.coll(), d.chance(50))
	case n < 903:
		return "run " + d.create()
	case n < 918:
		return d.parameter()
	case n < 945:
		return d.open()
	case n < 993:
		return fmt.Sprintf("more %d %d", d.opened-d.n(4), 1+d.n(5))
	default:
		return "validate"
	}
}

// time is a line that sets the clock far away, or sets it right again, or holds expiry; most often there is none.
func (d *dice) time() string {
	t := d.truth
	switch {
	case t.suspects && d.chance(8): // set right, more or less
		return fmt.Sprintf("step %d", t.expected()-t.now-int64(d.n(3)*d.n(40_000)))
	case t.suspects && d.chance(15):
		return "clock " + d.pick("30000", "59999", "60000", "60000", "60000")
	case t.holds && d.chance(8):
		return "hold release"
	case d.chance(1):
		return "step " + d.pick("-90000", "-7200000", "-864000000", "600000", "3600000", "7200000", "7200000", "7200000", "86400000", "864000000")
	case d.chance(1) && d.chance(60):
		if d.folder && d.chance(40) {
			return "hold lastWrite"
		}
		return fmt.Sprintf("hold %d", t.now+int64(d.n(10_000))-8000)
	}
	return ""
}

func (d *dice) parameter() string {
	switch {
	case !d.truth.active() && d.chance(50): // it is off for a while only
		return "admin {setParameter: 1, ttlMonitorEnabled: true, ttlMonitorPrecise: true}"
	case d.chance(40):
		return fmt.Sprintf("admin {setParameter: 1, ttlHideExpired: %v%s}", d.chance(50), d.onHidden())
	case d.chance(15):
		return "admin {setParameter: 1, ttlChangeGraceSecs: " + d.pick("0", "0", "2", "10", "40") + "}"
	case d.chance(10): // somebody looks at each delete, for a while
		return fmt.Sprintf("run {profile: %d}", 2*d.n(2))
	case d.chance(10):
		return fmt.Sprintf("admin {setParameter: 1, ttlMonitorBatchDeletes: %v}", d.chance(70))
	}
	return fmt.Sprintf("admin {setParameter: 1, %s: %v}", d.pick("ttlMonitorEnabled", "ttlMonitorPrecise"), d.chance(30))
}

// onHidden is what a command says of documents that it would make visible.
func (d *dice) onHidden() string {
	return d.pick("", "", "", ", keepExpired: true", ", keepExpired: true", ", force: true")
}

// step is by how many milliseconds to turn the clock: often to a deadline or to just before one.
func (d *dice) step() string {
	if d.chance(4) {
		return fmt.Sprint(-1 - d.n(4000))
	}
	if d.chance(40) {
		if next := d.deadline(); next != never {
			return fmt.Sprint(next - d.truth.now - int64(d.n(2)))
		}
	}
	return d.pick("1", "10", "999", "1000", "2500", "7000", "30000", "3600000")
}

// deadline is one of those to come.
func (d *dice) deadline() int64 {
	c := d.truth.colls[d.coll()]
	if c == nil || len(c.docs) == 0 {
		return never
	}
	next := int64(never)
	for range 3 {
		doc := c.docs[d.n(len(c.docs))]
		for _, ix := range c.indexes {
			if at := doc.by(ix).deadline; at > d.truth.now {
				next = min(next, at)
			}
		}
		if at := c.ownDeadline(doc); at > d.truth.now {
			next = min(next, at)
		}
	}
	return next
}

// some is a collection and the name of an index, most often one that is there.
func (d *dice) some() (coll, index string) {
	name := d.coll()
	if c := d.truth.colls[name]; c != nil && len(c.indexes) > 0 && d.chance(95) {
		return name, c.indexes[d.n(len(c.indexes))].name
	}
	return name, "none"
}

func (d *dice) date() string {
	at := d.truth.now
	switch d.n(10) {
	case 0:
	case 1, 2:
		at -= int64(d.n(10_000))
	default:
		at += int64(d.n(40)) * 1000
		if d.chance(50) {
			at += int64(d.n(1000))
		}
	}
	return fmt.Sprintf("Date(%d)", at)
}

// due is what a field of dates holds.
func (d *dice) due() string {
	switch d.n(16) {
	case 0:
		return `"2001-01-01"`
	case 1:
		return fmt.Sprint(d.truth.now / 1000)
	case 2:
		return "[" + d.date() + ", 3, " + d.date() + "]"
	case 3:
		return d.pick("[]", "null", "[1]", "["+d.date()+"]")
	}
	return d.date()
}

// values are of the fields that documents may have.
func (d *dice) value(field string) string {
	switch field {
	case "d", "e":
		return d.due()
	case "m":
		if d.chance(20) {
			return "[{d: " + d.date() + "}, {d: " + d.due() + "}]"
		}
		return "{d: " + d.due() + "}"
	case "k":
		return fmt.Sprint(d.n(5))
	case "u":
		return fmt.Sprint(d.n(d.ids))
	case "n":
		return fmt.Sprint(d.n(10))
	case "a":
		return d.pick("[1, 2, 3]", "[2]", "[]", "7", "[4, 4, 5]", fmt.Sprint(d.n(9)))
	case "ttl":
		return d.pick("1", "NumberLong(3)", "5.0", "20", "-1", "-1.0", "0", "-2", "2.5", `"3"`, "null", "NumberLong(2147483649)", "NumberDecimal('3')")
	default:
		return `"` + strings.Repeat("x", d.n(200)) + `"`
	}
}

func (d *dice) id(c *truthColl) string {
	if c != nil && c.clustered && d.chance(80) {
		if len(c.docs) > 0 && d.chance(50) {
			return c.docs[d.n(len(c.docs))].id().Text()
		}
		return d.date()
	}
	return fmt.Sprint(d.n(d.ids))
}

// fields are some fields with values, in the order of their names.
func (d *dice) fields(percent int) string {
	var out []string
	for _, f := range []string{"a", "d", "e", "k", "m", "n", "s", "ttl", "u"} {
		often := percent
		if f == "d" || f == "k" {
			often = min(2*percent, 85)
		}
		if d.chance(often) {
			out = append(out, f+": "+d.value(f))
		}
	}
	return strings.Join(out, ", ")
}

func (d *dice) document(c *truthColl) string {
	if c != nil && c.cell > 0 {
		at := d.truth.now - int64(d.n(7200_000))
		return fmt.Sprintf("{_id: %d, at: Date(%d), m: %d, v: %d}", d.r.Int32(), at, d.n(3), d.n(9))
	}
	text := fmt.Sprintf("_id: %s, %s", d.id(c), d.fields(40))
	return "{" + strings.TrimSuffix(text, ", ") + "}"
}

func (d *dice) insert(name string) string {
	c := d.truth.colls[name]
	many := 1
	if d.chance(40) {
		many = 2 + d.n(10)
	}
	docs := make([]string, many)
	for i := range docs {
		docs[i] = d.document(c)
	}
	return fmt.Sprintf("{insert: %q, documents: [%s], ordered: %v}", name, strings.Join(docs, ", "), many < 3 && d.chance(50))
}

// wave is more documents than are deleted one by one. They expire together.
func (d *dice) wave() string {
	for _, name := range []string{"a", "b", "c"} {
		if c := d.truth.colls[name]; c != nil && c.clustered && d.chance(70) {
			return fmt.Sprintf("days %s %d %d {n: %d, k: %d}", name, d.truth.now-int64(d.n(5000)), 250+d.n(80), d.n(10), d.n(5))
		}
	}
	fields := []string{fmt.Sprintf("n: %d", d.n(10))}
	if d.chance(80) {
		fields = append(fields, "d: "+d.date())
	}
	for _, f := range []string{"a", "ttl", "k", "e"} {
		if d.chance(25) {
			fields = append(fields, f+": "+d.value(f))
		}
	}
	return fmt.Sprintf("wave %s %d %d {%s}", d.pick("a", "a", "a", "b"), 1000*(1+d.n(3))+d.n(2)*130, 250+d.n(80), strings.Join(fields, ", "))
}

// filter is about one document, by its _id or a unique key, or about many.
func (d *dice) filter(c *truthColl, many bool) string {
	switch {
	case many && d.chance(60):
		return d.pick(fmt.Sprintf("{k: %d}", d.n(5)), fmt.Sprintf("{n: {$gte: %d}}", d.n(12)), "{d: {$exists: false}}", fmt.Sprintf("{d: {$lt: %s}}", d.date()), "{a: 2}",
			fmt.Sprintf("{u: {$lt: %d}}", d.n(8)))
	case d.chance(15):
		return fmt.Sprintf("{u: %d}", d.n(d.ids))
	case d.chance(20):
		return fmt.Sprintf("{_id: %s, k: %d}", d.id(c), d.n(5))
	}
	return fmt.Sprintf("{_id: %s}", d.id(c))
}

// modifiers are an update that is no replacement. Those of many documents leave unique keys alone.
func (d *dice) modifiers(c *truthColl, many bool) string {
	fields := []string{"a", "d", "d", "d", "d", "e", "k", "m", "n", "s", "ttl"}
	if !many {
		fields = append(fields, "u")
	}
	f := d.pick(fields...)
	switch n := d.n(20); {
	case n < 3:
		return fmt.Sprintf("{$unset: {%s: 1}}", f)
	case n < 6:
		return fmt.Sprintf("{$inc: {n: %d}}", d.n(3)-1)
	case n < 8 && f != "m": // a stage goes into objects
		return fmt.Sprintf("[{$set: {%s: %s}}]", f, d.value(f))
	case n < 10 && !many:
		return fmt.Sprintf("{$set: {d: %s, k: %s}}", d.value("d"), d.value("k"))
	case n < 12 && !many:
		return fmt.Sprintf("{$set: {%s: %s}, $setOnInsert: {_id: %s}}", f, d.value(f), d.id(c))
	}
	return fmt.Sprintf("{$set: {%s: %s}}", f, d.value(f))
}

func (d *dice) update(name string) string {
	c := d.truth.colls[name]
	statements := make([]string, 1+max(0, d.n(8)-5))
	for i := range statements {
		many := d.chance(30)
		filter, u := d.filter(c, many), d.modifiers(c, many)
		if !many && d.chance(25) {
			u = "{" + d.fields(40) + "}"
		}
		statements[i] = fmt.Sprintf("{q: %s, u: %s, multi: %v, upsert: %v}", filter, u, many, d.chance(25))
	}
	return fmt.Sprintf("{update: %q, updates: [%s]}", name, strings.Join(statements, ", "))
}

func (d *dice) findAndModify(name string) string {
	c := d.truth.colls[name]
	if d.chance(25) {
		return fmt.Sprintf("{findAndModify: %q, query: %s, remove: true}", name, d.filter(c, false))
	}
	u := d.modifiers(c, false)
	if d.chance(25) {
		u = "{" + d.fields(40) + "}"
	}
	return fmt.Sprintf("{findAndModify: %q, query: %s, update: %s, new: %v, upsert: %v}", name, d.filter(c, false), u, d.chance(50), d.chance(40))
}

func (d *dice) delete(name string) string {
	many := d.chance(25)
	return fmt.Sprintf("{delete: %q, deletes: [{q: %s, limit: %d}]}", name, d.filter(d.truth.colls[name], many), 1-btoi(many))
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (d *dice) seconds() string { return d.pick("0", "1", "2", "5", "10", "20", "40") }

// index is a specification; indexes that are the same have the same name.
func (d *dice) index() string {
	if d.chance(25) {
		return fmt.Sprintf("{key: {_ts: 1}, name: 'ts', expireAfterSeconds: %s}", d.pick("-1", "1", "3", "10", "20", "40"))
	}
	ttl := ""
	if d.chance(85) {
		ttl = ", expireAfterSeconds: " + d.seconds()
		if d.chance(30) {
			ttl += ", hideExpired: true"
		}
	}
	if d.chance(50) {
		key := d.pick("d: 1", "d: 1", "d: 1", "d: -1", "e: 1", "'m.d': 1", "'m.d': -1")
		form := d.pick("", "", "", "", ", sparse: true", ", partialFilterExpression: {n: {$gte: 5}}", ", partialFilterExpression: {k: {$exists: true}}", ", unique: true")
		return fmt.Sprintf("{key: {%s}, name: %q%s%s}", key, strings.ReplaceAll(key+form, "'", ""), form, ttl)
	}
	spec := d.pick("key: {u: 1}, unique: true, sparse: true", "key: {u: 1}, unique: true, partialFilterExpression: {u: {$exists: true}}", "key: {u: -1, k: 1}, unique: true, sparse: true",
		"key: {k: 1}", "key: {k: -1, d: 1}", "key: {d: 1, _id: 1}", "key: {d: -1, n: 1}", "key: {a: 1}", "key: {a: 1, k: -1}", "key: {n: 1}", "key: {n: 1, k: 1}, partialFilterExpression: {n: {$gte: 5}}",
		"key: {k: 'hashed'}", "key: {k: 'hashed'}"+ttl, "key: {'$**': 1}", "key: {n: -1}, sparse: true", "key: {d: 1, k: 1}, partialFilterExpression: {k: {$exists: true}}")
	return fmt.Sprintf("{%s, name: %q}", spec, strings.ReplaceAll(spec, "'", ""))
}

func (d *dice) createIndexes(name string) string {
	specs := []string{d.index()}
	for d.chance(30) {
		specs = append(specs, d.index())
	}
	return fmt.Sprintf("{createIndexes: %q, indexes: [%s]%s}", name, strings.Join(specs, ", "), d.onHidden())
}

func (d *dice) collMod() string {
	coll, name := d.some()
	if c := d.truth.colls[coll]; c != nil && (c.paused || d.chance(4)) && d.chance(60) {
		return fmt.Sprintf("{collMod: %q, ttlPaused: %v}", coll, !c.paused)
	}
	if c := d.truth.colls[coll]; c != nil && (c.clustered || c.cell > 0) && d.chance(60) {
		return fmt.Sprintf("{collMod: %q, expireAfterSeconds: %s%s}", coll, d.pick("0", "1", "10", "100", "'off'", "3600"), d.onHidden())
	}
	what := "expireAfterSeconds: " + d.pick(d.seconds(), d.seconds(), "-1")
	switch d.n(8) {
	case 0:
		what = fmt.Sprintf("hidden: %v", d.chance(40))
	case 1, 2:
		what = fmt.Sprintf("hideExpired: %v", d.chance(50))
	case 3:
		what += fmt.Sprintf(", hideExpired: %v", d.chance(50))
	}
	return fmt.Sprintf("{collMod: %q, index: {name: %q, %s}%s}", coll, name, what, d.onHidden())
}

func (d *dice) create() string {
	byDate := ", clusteredIndex: {key: {_id: 1}, unique: true}, expireAfterSeconds: 10"
	options := d.pick("", "", byDate, byDate, byDate, ", clusteredIndex: {key: {_id: 1}, unique: true}",
		", capped: true, size: 1000000, max: 7", ", timeseries: {timeField: 'at', metaField: 'm'}, expireAfterSeconds: 3600")
	return fmt.Sprintf("{create: %q%s}", d.coll(), options)
}

// open is a cursor along the collection's order, its _id or an index.
func (d *dice) open() string {
	name := d.coll()
	hints := []string{"{$natural: 1}", "{$natural: 1}", "{$natural: -1}", "{_id: 1}"}
	if c := d.truth.colls[name]; c != nil {
		for _, ix := range c.indexes {
			if ix.isWhole() {
				hints = append(hints, fmt.Sprintf("%q", ix.name), fmt.Sprintf("%q", ix.name))
			}
		}
		if c.clustered || c.cell > 0 {
			hints = hints[:3]
		}
	}
	d.opened++
	return fmt.Sprintf("open %d {find: %q, hint: %s, batchSize: %d, noCursorTimeout: true}", d.opened, name, d.pick(hints...), d.n(6))
}

// isWhole says whether every document is in the index, and it can be hinted for all of them.
func (ix *truthIndex) isWhole() bool {
	return ix.kind == "" && ix.partial == nil && !ix.sparse && !ix.hidden && !slices.Contains(ix.fields, "_ts")
}
