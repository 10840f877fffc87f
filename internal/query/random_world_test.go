package query

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// world makes random documents, indexes and queries over few paths and few values, so that they meet.
type world struct {
	r *rand.Rand
	// keyless leaves out MinKey and MaxKey, of which a $group makes something else before some stages.
	keyless bool
	// deep has arrays in arrays nearly everywhere and few values, mostly small numbers, so that what is found through one
	// element and what is found through several differ.
	deep bool
}

func (w world) pick(from ...string) string { return from[w.r.IntN(len(from))] }

// chance is true in percent of a hundred cases.
func (w world) chance(percent int) bool { return w.r.IntN(100) < percent }

func (w world) path() string {
	switch {
	case w.deep && w.chance(60):
		return w.pick("n.x", "n.x", "n.x", "n.y", "n.y", "n.x.x", "n.x.y", "n.y.x", "a.x", "a.x", "a.y", "a.x.y", "a")
	case w.chance(12):
		return w.pick("a.0", "a.0.x", "a.0.0", "b.1", "n.0", "n.0.x", "n.x.0", "n.x.0.y", "n.1.y.0", "a.x.1", "n.00", "a.0.0.0")
	}
	return w.pick("a", "a", "a", "b", "b", "b", "c", "c", "n.x", "n.x", "n.y", "n", "a.x", "a.0", "n.0.x", "n.0", "_id", "d")
}

func (w world) scalar() string {
	if w.deep && w.chance(80) {
		return w.pick("0", "1", "2", "3", "4", "5", "6", "7", "8", "9")
	}
	if w.chance(50) {
		return w.pick("0", "1", "2", "3", "4", "5", "6", "7")
	}
	if !w.keyless && w.chance(5) {
		return w.pick("MinKey", "MaxKey")
	}
	return w.pick("-1", "1.0", "2.5", "-0.0", "NaN", "Infinity", "-Infinity", `NumberLong("3")`, `NumberLong("9007199254740993")`,
		`NumberDecimal("2.50")`, `NumberDecimal("0.1")`, `NumberDecimal("NaN")`, "null", "null", `""`, `"a"`, `"A"`, `"b"`, `"ab"`, `"a.c"`, `"aé"`, `"10"`, `"9"`,
		"true", "false", date(0), date(1), date(2), date(-1), "/^a/", "/b/i", `ObjectId("65e07bd50123456789abcdef")`, `BinData(0, "aGk=")`,
		"Timestamp(5, 6)", "undefined")
}

// date is some hours from where the clock of the test stands.
func date(hours int) string { return fmt.Sprintf("Date(%d)", testTime+int64(hours)*3600_000) }

func (w world) value(depth int) string {
	simple, arrays := 70, 88
	if w.deep {
		simple, arrays = 30, 75
	}
	switch n := w.r.IntN(100); {
	case depth == 0 || n < simple:
		return w.scalar()
	case n < arrays:
		return "[" + w.list(w.r.IntN(4), func() string { return w.value(depth - 1) }) + "]"
	default:
		return w.object(depth)
	}
}

func (w world) object(depth int) string {
	var fields []string
	for _, f := range []string{"x", "y"} {
		if w.chance(75) {
			fields = append(fields, f+": "+w.value(depth-1))
		}
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

// several is an array of a few values that lie apart, mostly.
func (w world) several() string {
	switch {
	case w.chance(50):
		return "[" + w.list(w.r.IntN(4), w.scalar) + "]"
	case w.chance(50):
		return "[" + w.list(1+w.r.IntN(3), func() string { return "{x: " + w.scalar() + ", y: " + w.value(1) + "}" }) + "]"
	case w.chance(50):
		return w.scalar()
	}
	return w.value(2)
}

func (w world) list(n int, item func() string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = item()
	}
	return strings.Join(items, ", ")
}

// document is one whose _id is id; flat ones have no arrays, so that indexes are not multikey.
func (w world) document(id string, flat bool) string {
	fields := []string{"_id: " + id}
	for _, f := range []string{"a", "b", "c"} {
		switch {
		case w.chance(12):
		case flat:
			fields = append(fields, f+": "+w.scalar())
		case w.deep:
			fields = append(fields, f+": "+w.value(4))
		default:
			fields = append(fields, f+": "+w.value(2))
		}
	}
	if w.chance(80) {
		fields = append(fields, "n: "+w.nested(flat))
	}
	if w.chance(60) {
		fields = append(fields, "d: "+w.pick(date(-2), date(-1), date(0), date(1), "1", "["+date(-2)+", "+date(3)+"]"))
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

func (w world) nested(flat bool) string {
	switch {
	case flat:
		return "{x: " + w.scalar() + ", y: " + w.scalar() + "}"
	case w.deep && w.chance(80):
		return "[" + w.list(w.r.IntN(4), func() string { return "{x: " + w.several() + w.pick("", ", y: "+w.several()) + "}" }) + "]"
	case w.chance(40):
		return w.object(2)
	case w.chance(70):
		return "[" + w.list(w.r.IntN(4), func() string { return w.object(2) }) + "]"
	}
	return w.value(3)
}

// index is a specification with the given name.
func (w world) index(name string) string {
	var key []string
	used := map[string]bool{}
	for _, p := range w.indexed() {
		if !used[p] {
			used[p] = true
			key = append(key, fmt.Sprintf("%q: %s", p, w.pick("1", "1", "-1")))
		}
	}
	spec := "v: 2, name: '" + name + "', key: {" + strings.Join(key, ", ") + "}"
	switch n := w.r.IntN(100); {
	case n < 5:
		spec = "v: 2, name: '" + name + "', key: {'" + w.path() + "': 'hashed'}"
	case n < 10:
		spec = "v: 2, name: '" + name + "', " + w.pick("key: {a: 1, 'n.x': 'hashed', b: -1}", "key: {b: 'hashed', a: 1}, sparse: true", "key: {n: 'hashed'}")
	case n < 20:
		spec = "v: 2, name: '" + name + "', " + w.wildcard()
	case n < 22:
		return "{v: 2, name: '" + name + "', key: {d: 1}, expireAfterSeconds: 3600, hideExpired: true}"
	case n < 25:
		spec += ", sparse: true"
	case n < 40:
		spec += ", partialFilterExpression: " + w.partial()
	case n < 50:
		spec += ", unique: true"
	}
	if w.chance(6) {
		spec += ", hidden: true"
	}
	if w.chance(20) {
		spec += ", collation: " + w.collation()
	}
	return "{" + strings.Replace(spec, "_id: 'hashed'", "a: 'hashed'", 1) + "}"
}

// indexed are the paths of an index, in some of one family, so that several go through the same arrays.
func (w world) indexed() (paths []string) {
	switch {
	case w.deep && w.chance(55):
		return strings.Fields(w.pick("n.x", "n.x", "n.y", "a.x", "n.x.y", "n.x n.y", "n.x.x n.x.y", "n.x.x n.x.y"))
	case w.chance(25):
		return strings.Fields(w.pick("n.x n.y", "n.y n.x a", "n.x.x n.x.y", "n.x.y n.y", "a.x a.y", "a.x a.x.y", "n n.x", "a a.x", "n.x.0 n.x", "b n.x n.y", "a.0 a.0.x", "n.0.x n.0.y",
			"n.x n.x.0.y"))
	}
	for range 1 + w.r.IntN(3) {
		paths = append(paths, w.path())
	}
	return paths
}

func (w world) wildcard() string {
	return w.pick("key: {'$**': 1}", "key: {'$**': -1}", "key: {'$**': 1}, wildcardProjection: {_id: 1, 'n.x': 0}", "key: {'$**': 1}, wildcardProjection: {a: 1, n: {x: 1}}",
		"key: {'n.$**': 1}", "key: {'a.$**': 1}", "key: {a: 1, '$**': 1}, wildcardProjection: {a: 0}", "key: {'$**': -1, b: 1}, wildcardProjection: {a: 1, n: 1}",
		"key: {b: 1, 'n.$**': 1, a: -1}, partialFilterExpression: "+w.partial())
}

func (w world) partial() string {
	p := w.path()
	return w.pick(fmt.Sprintf("{%q: {$gt: %s}}", p, w.scalar()), fmt.Sprintf("{%q: {$exists: true}}", p), fmt.Sprintf("{%q: {$lte: %s}}", p, w.scalar()),
		fmt.Sprintf("{%q: %s}", p, w.scalar()), fmt.Sprintf("{%q: {$type: %s}}", p, w.types()),
		fmt.Sprintf("{%q: {$in: [%s, %s]}}", p, w.scalar(), w.scalar()), fmt.Sprintf("{$or: [{%q: {$gte: %s}}, {%q: {$lt: %s}}]}", p, w.scalar(), w.path(), w.scalar()),
		fmt.Sprintf("{%q: {$gte: %s}, %q: {$exists: true}}", p, w.scalar(), w.path()))
}

func (w world) collation() string {
	return w.pick("{locale: 'en', strength: 2}", "{locale: 'en', strength: 2}", "{locale: 'simple'}", "{locale: 'en', numericOrdering: true}")
}

func (w world) types() string {
	return w.pick("'number'", "'string'", "'null'", "'array'", "'object'", "'int'", "'double'", "'date'", "['string', 'number']", "['array', 'null']", "'minKey'", "'bool'")
}

// filter is a query of that many levels of logic.
func (w world) filter(depth int) string {
	var parts []string
	most := 4
	if w.deep {
		most = 3
	}
	for range w.r.IntN(most) {
		parts = append(parts, w.clause(depth))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func (w world) clause(depth int) string {
	if w.deep && w.chance(35) {
		return w.pick("n", "n", "n", "a", "'n.x'", "'a.x'") + ": {$elemMatch: {" + w.element(depth) + "}}"
	}
	if depth > 0 && w.chance(30) {
		return w.pick("$or", "$or", "$or", "$and", "$nor") + ": [" + w.list(1+w.r.IntN(3), func() string { return w.nonEmpty(depth - 1) }) + "]"
	}
	if w.chance(8) {
		return "$expr: " + w.expr(2)
	}
	return fmt.Sprintf("%q: %s", w.path(), w.condition(depth))
}

// expr is a comparison in an $expr, or several.
func (w world) expr(depth int) string {
	if depth > 0 && w.chance(25) {
		return "{" + w.pick("$and", "$and", "$or") + ": [" + w.list(1+w.r.IntN(3), func() string { return w.expr(depth - 1) }) + "]}"
	}
	args := []string{fmt.Sprintf("'$%s'", w.path()), w.pick("{$literal: "+w.value(2)+"}", "{$literal: "+w.scalar()+"}", "null", "'$$REMOVE'", "'$b'")}
	if w.chance(30) {
		slices.Reverse(args)
	}
	return "{" + w.pick("$eq", "$eq", "$lt", "$lte", "$gt", "$gte", "$ne") + ": [" + strings.Join(args, ", ") + "]}"
}

func (w world) nonEmpty(depth int) string {
	f := w.filter(depth)
	if f == "{}" {
		return "{" + w.clause(depth) + "}"
	}
	return f
}

// condition is what stands behind a path.
func (w world) condition(depth int) string {
	if w.chance(25) {
		return w.value(1)
	}
	if w.deep && w.chance(30) { // a span that no value need lie in for an array to match it
		low := w.r.IntN(9)
		return fmt.Sprintf("{%s: %d, %s: %d}", w.pick("$gt", "$gte"), low, w.pick("$lt", "$lte"), low+w.r.IntN(3))
	}
	if w.chance(20) {
		return "{" + w.pick("$gt", "$gte") + ": " + w.scalar() + ", " + w.pick("$lt", "$lte") + ": " + w.scalar() + "}"
	}
	return "{" + w.test(depth) + "}"
}

func (w world) test(depth int) string {
	if w.deep && w.chance(15) {
		return "$elemMatch: {" + w.element(depth) + "}"
	}
	switch w.r.IntN(16) {
	case 0, 1, 2:
		return w.pick("$lt", "$lte", "$gt", "$gte") + ": " + w.value(1)
	case 3, 4:
		return "$eq: " + w.value(2)
	case 5, 6:
		return "$in: [" + w.list(w.r.IntN(4), func() string { return w.value(1) }) + "]"
	case 7:
		return "$ne: " + w.value(1)
	case 8:
		return "$nin: [" + w.list(w.r.IntN(3), func() string { return w.value(1) }) + "]"
	case 9:
		return "$exists: " + w.pick("true", "false")
	case 10:
		return "$type: " + w.types()
	case 11:
		return w.pick("$regex: '^a'", "$regex: '^ab?'", "$regex: 'b'", "$regex: '^A', $options: 'i'", "$regex: '^a.c'", `$regex: '^a\\.'`, w.regex(), w.regex(), w.regex(), "$mod: [2, 1]", "$size: 2",
			"$bitsAllSet: [0]")
	case 12:
		return "$all: [" + w.list(1+w.r.IntN(2), w.scalar) + "]"
	case 13:
		if depth > 0 {
			return "$not: {" + w.test(depth-1) + "}"
		}
		return "$eq: null"
	default:
		return "$elemMatch: {" + w.element(depth) + "}"
	}
}

// regex is a pattern that may begin with plain text, with options.
func (w world) regex() string {
	p := w.pick("^", "^", "^", `\\A`)
	for range 1 + w.r.IntN(4) {
		p += w.pick("a", "a", "b", "aé", "é", `\\.`, "c", "?", "*", "+", "{0,1}", `\\Qa.\\E`, `\\E`, " ", "#", "(a)", "[ab]", "$", `\\d`, `a\\|b`, ".")
	}
	return "$regex: '" + p + "'" + w.pick("", "", "", ", $options: 's'", ", $options: 'x'", ", $options: 'm'", ", $options: 'i'", ", $options: 'sx'")
}

// element is what an $elemMatch asks for, of an element as a document or as a value.
func (w world) element(depth int) string {
	switch {
	case w.chance(35):
		return w.pick("$gte", "$gte", "$gt", "$ne", "$lt") + ": " + w.scalar() + w.pick("", ", $lt: "+w.scalar(), ", $lte: "+w.scalar(), ", $nin: ["+w.scalar()+"]", ", $not: {$gt: "+w.scalar()+"}")
	case depth > 0 && w.chance(15):
		return w.pick("$and", "$or", "$nor") + ": [" + w.list(1+w.r.IntN(2), func() string { return "{" + w.element(depth-1) + "}" }) + "]"
	}
	if w.deep && w.chance(20) {
		return fmt.Sprintf(w.pick("x: %s, y: %s", "'x.x': %s, 'x.y': %s", "'x.x': %s, 'x.y': %s", "'0.x': %s, x: %s"), w.condition(0), w.condition(0))
	}
	var parts []string
	for range 1 + w.r.IntN(2) {
		field := w.pick("x", "x", "x", "y", "y", "'x.y'", "'x.x'", "'0'", "'0.x'", "'x.0'")
		if depth > 0 && w.chance(20) {
			parts = append(parts, field+": {$elemMatch: {"+w.element(depth-1)+"}}")
		} else {
			parts = append(parts, field+": "+w.condition(0))
		}
	}
	return strings.Join(parts, ", ")
}

func (w world) sort() string {
	var parts []string
	used := map[string]bool{}
	for range 1 + w.r.IntN(3) {
		if p := w.path(); !used[p] {
			used[p] = true
			parts = append(parts, fmt.Sprintf("%q: %s", p, w.pick("1", "-1")))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func (w world) projection() string {
	var parts []string
	used := map[string]bool{}
	value := w.pick("1", "1", "1", "0")
	for range 1 + w.r.IntN(2) {
		if p := w.path(); !used[p] && p != "_id" {
			used[p] = true
			parts = append(parts, fmt.Sprintf("%q: %s", p, value))
		}
	}
	switch {
	case value == "1" && w.chance(60) || value == "0" && w.chance(30):
		parts = append(parts, "_id: 0")
	case value == "1" && w.chance(20):
		parts = append(parts, w.pick("z: '$a'", "z: {$add: [1, 1]}", "c: {$slice: 1}"))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
