package ebbtest_test

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/match"
)

// truth is what a server should hold, said as plainly as can be: lists of documents, filtered by their deadlines.
type truth struct {
	times
	hideAll bool // ttlHideExpired
	enabled bool // ttlMonitorEnabled
	precise bool // ttlMonitorPrecise
	// graceSecs is ttlChangeGraceSecs.
	graceSecs int64
	colls     map[string]*truthColl
	numbers   int // of collections and documents so far
}

type truthColl struct {
	number  int
	docs    []*truthDoc // all that is stored, in the order of their inserts
	indexes []*truthIndex
	// clustered collections, and those that expire by themselves.
	clustered bool
	seconds   int64 // of the collection itself, or never
	capped    int   // how many documents at most, or 0
	grace     grace // of its own TTL
	paused    bool  // nothing is deleted because it has expired
	// cell is the length of a cell of a time series, or 0.
	cell int64
}

// truthDoc is one document; what changes is a new one with the same number.
type truthDoc struct {
	number   int
	doc      bson.Doc
	modified int64
	// ghost: it was hidden, and is not any more since the clock was turned back; it may be deleted or not.
	ghost bool
	known map[*truthIndex]*ofIndex
	text  string // canonical
}

// ofIndex is what an index makes of a document.
type ofIndex struct {
	deadline int64
	keys     []string
}

func newDoc(number int, doc bson.Doc, modified int64) *truthDoc {
	return &truthDoc{number: number, doc: doc.Clone(), modified: modified, known: map[*truthIndex]*ofIndex{}, text: canonical(doc)}
}

// by is what an index, which never changes, makes of the document.
func (d *truthDoc) by(ix *truthIndex) *ofIndex {
	o := d.known[ix]
	if o == nil {
		o = &ofIndex{deadline: ix.deadline(d)}
		if ix.unique {
			o.keys = ix.keysOf(d.doc)
		}
		d.known[ix] = o
	}
	return o
}

// truthIndex is an index and what of its specification matters here.
type truthIndex struct {
	name     string
	spec     bson.Doc
	fields   []string
	kind     string // "" of ordered ones, otherwise "hashed", "wildcard"
	unique   bool
	sparse   bool
	hidden   bool
	partial  *match.Filter
	ttl      bool
	seconds  int64
	hides    bool
	identity string
	grace    grace
}

// grace spares what was due at a time, when a TTL was made or shortened, until another.
type grace struct{ at, until int64 }

func (t *truth) spares(g grace, deadline int64) bool { return t.now < g.until && deadline <= g.at }

const never = math.MaxInt64

func newTruth(now int64) *truth {
	return &truth{times: timesAt(now), enabled: true, precise: true, colls: map[string]*truthColl{}}
}

// active says whether what is due is deleted at once.
func (t *truth) active() bool { return t.enabled && t.precise && !t.heldUp() }

func (d *truthDoc) id() bson.Value { return d.doc.Lookup("_id") }

// datesAt are the dates at a path, through arrays.
func datesAt(v bson.Value, path []string) (out []int64) {
	switch {
	case v.Type == bson.TypeArray:
		for it := v.Doc().Iter(); it.Next(); {
			if len(path) > 0 && it.Value().Type == bson.TypeObject || len(path) == 0 && it.Value().Type == bson.TypeDate {
				out = append(out, datesAt(it.Value(), path)...)
			}
		}
	case len(path) == 0 && v.Type == bson.TypeDate:
		return []int64{v.Millis()}
	case len(path) > 0 && v.Type == bson.TypeObject:
		return datesAt(v.Doc().Lookup(path[0]), path[1:])
	}
	return out
}

// override is the document's own life in seconds: -1 for ever, 0 when it has none that is valid.
func override(doc bson.Doc) int64 {
	v := doc.Lookup("ttl")
	if !v.IsNumber() || v.Type == bson.TypeDecimal {
		return 0
	}
	f := v.AsDouble()
	if f != math.Trunc(f) || f < -1 || f > math.MaxInt32 {
		return 0
	}
	return int64(f)
}

// deadline is when the document expires by an index.
func (ix *truthIndex) deadline(d *truthDoc) int64 {
	if !ix.ttl || ix.kind != "" {
		return never
	}
	if ix.fields[0] == "_ts" {
		switch own := override(d.doc); {
		case own == -1 || own == 0 && ix.seconds < 0:
			return never
		case own > 0:
			return d.modified + own*1000
		}
		return d.modified + ix.seconds*1000
	}
	at := datesAt(d.doc.Value(), strings.Split(ix.fields[0], "."))
	if len(at) == 0 || !ix.holds(d.doc) {
		return never
	}
	return slices.Min(at) + ix.seconds*1000
}

// holds says whether the partial filter takes the document.
func (ix *truthIndex) holds(doc bson.Doc) bool {
	return ix.partial == nil || matches(ix.partial, doc)
}

func matches(f *match.Filter, doc bson.Doc) bool {
	ok, err := f.Match(nil, doc)
	if err != nil {
		panic(err)
	}
	return ok
}

// ownDeadline is when the document expires by the collection's own TTL.
func (c *truthColl) ownDeadline(d *truthDoc) int64 {
	id := d.id()
	switch {
	case c.seconds == never:
		return never
	case c.cell > 0:
		at := d.doc.Lookup("at").Millis()
		return at - at%(c.cell*1000) + c.cell*1000 + c.seconds*1000
	case id.Type != bson.TypeDate || id.Millis() < 0:
		return never
	}
	return id.Millis() + c.seconds*1000
}

// expired says whether the monitor deletes the document.
func (t *truth) expired(c *truthColl, d *truthDoc) bool {
	goes := func(deadline int64, g grace) bool { return deadline <= t.now && !t.spares(g, deadline) }
	return !c.paused && (goes(c.ownDeadline(d), c.grace) ||
		slices.ContainsFunc(c.indexes, func(ix *truthIndex) bool { return goes(d.by(ix).deadline, ix.grace) }))
}

// hidden says whether nobody can see the document any more.
func (t *truth) hidden(c *truthColl, d *truthDoc) bool {
	if t.hideAll && c.ownDeadline(d) <= t.hiding() {
		return true
	}
	return slices.ContainsFunc(c.indexes, func(ix *truthIndex) bool {
		return (t.hideAll || ix.hides || ix.fields[0] == "_ts") && d.by(ix).deadline <= t.hiding()
	})
}

// seen are the documents that can be seen, of those that the filter takes.
func (t *truth) seen(c *truthColl, filter bson.Doc) (out []*truthDoc) {
	f := parseFilter(filter)
	for _, d := range c.docs {
		if !t.hidden(c, d) && matches(f, d.doc) {
			out = append(out, d)
		}
	}
	return out
}

var filters = match.NewParser()

func parseFilter(filter bson.Doc) *match.Filter {
	f, err := filters.Parse(filter, match.Options{})
	if err != nil {
		panic(err)
	}
	return f
}

func (c *truthColl) remove(gone func(*truthDoc) bool) { c.docs = slices.DeleteFunc(c.docs, gone) }

// sweep deletes what has expired, everywhere; see is shown what went of each collection.
func (t *truth) sweep(see func(c *truthColl, gone []*truthDoc)) (deleted int) {
	for _, c := range t.colls {
		var gone []*truthDoc
		c.remove(func(d *truthDoc) bool {
			due := t.expired(c, d)
			if due {
				gone = append(gone, d)
			}
			return due
		})
		if len(gone) > 0 {
			see(c, gone)
		}
		deleted += len(gone)
	}
	return deleted
}

// change changes the time. What was hidden and is not any more may have been deleted, unless expiry was held.
func (t *truth) change(times func()) {
	kept := !t.enabled || t.heldUp()
	hidden := map[*truthDoc]bool{}
	for _, c := range t.colls {
		for _, d := range c.docs {
			hidden[d] = t.hidden(c, d)
		}
	}
	times()
	for _, c := range t.colls {
		for _, d := range c.docs {
			d.ghost = !kept && hidden[d] && !t.hidden(c, d)
		}
	}
}

// keysOf are a document's keys in an index, as text; none when it is not in it.
func (ix *truthIndex) keysOf(doc bson.Doc) []string {
	if !ix.holds(doc) {
		return nil
	}
	keys, there := []string{""}, false
	for _, f := range ix.fields {
		v := doc.Lookup(f)
		there = there || !v.IsMissing()
		var longer []string
		for _, text := range keyTexts(v) {
			for _, k := range keys {
				longer = append(longer, k+"|"+text)
			}
		}
		keys = longer
	}
	if ix.sparse && !there {
		return nil
	}
	return keys
}

func keyTexts(v bson.Value) (out []string) {
	switch {
	case v.IsMissing():
		return []string{"null"}
	case v.Type != bson.TypeArray:
		return []string{v.Text()}
	}
	for it := v.Doc().Iter(); it.Next(); {
		out = append(out, it.Value().Text())
	}
	if out == nil {
		return []string{"undefined"}
	}
	return out
}

// inTheWay are the documents other than but that have a unique key of doc.
func (c *truthColl) inTheWay(doc bson.Doc, but *truthDoc) (out []*truthDoc) {
	id := doc.Lookup("_id")
	keys := map[*truthIndex][]string{}
	for _, ix := range c.indexes {
		if ix.unique {
			keys[ix] = ix.keysOf(doc)
		}
	}
	for _, d := range c.docs {
		if d == but {
			continue
		}
		taken := c.cell == 0 && bson.Identical(d.id(), id)
		for ix, k := range keys {
			taken = taken || meet(k, d.by(ix).keys)
		}
		if taken {
			out = append(out, d)
		}
	}
	return out
}

func meet(a, b []string) bool {
	return slices.ContainsFunc(a, func(k string) bool { return slices.Contains(b, k) })
}

func (c *truthColl) index(name string) *truthIndex {
	for _, ix := range c.indexes {
		if ix.name == name {
			return ix
		}
	}
	return nil
}

func (c *truthColl) clone() *truthColl {
	n := *c
	n.docs, n.indexes = slices.Clone(c.docs), slices.Clone(c.indexes)
	return &n
}

// readIndex reads a specification.
func readIndex(spec bson.Doc) *truthIndex {
	ix := &truthIndex{name: spec.Lookup("name").Str(), spec: spec.Clone(), hides: spec.Lookup("hideExpired").Truthy(), hidden: spec.Lookup("hidden").Truthy(),
		unique: spec.Lookup("unique").Truthy(), sparse: spec.Lookup("sparse").Truthy()}
	for it := spec.Lookup("key").Doc().Iter(); it.Next(); {
		ix.fields = append(ix.fields, it.Key())
		if it.Value().Type == bson.TypeString {
			ix.kind = it.Value().Str()
		}
		if strings.HasSuffix(it.Key(), "$**") {
			ix.kind = "wildcard"
		}
	}
	if v := spec.Lookup("expireAfterSeconds"); !v.IsMissing() {
		ix.ttl, ix.seconds = true, v.TruncInt64()
	}
	partial := spec.Lookup("partialFilterExpression")
	if !partial.IsMissing() {
		ix.partial = parseFilter(partial.Doc())
	}
	ix.identity = fmt.Sprint(spec.Lookup("key"), ix.unique, ix.sparse, partial)
	return ix
}

// canonical is a document with its fields in the order of their names.
func canonical(doc bson.Doc) string {
	var fields []string
	for it := doc.Iter(); it.Next(); {
		fields = append(fields, it.Key()+": "+it.Value().Text())
	}
	slices.Sort(fields)
	return "{" + strings.Join(fields, ", ") + "}"
}
