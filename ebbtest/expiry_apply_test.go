package ebbtest_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
)

// outcome is what a reply should say.
type outcome struct {
	code   int32            // of the error, 0 for none
	counts map[string]int64 // of the reply
	errors []string         // of its writeErrors: "index code"
	value  string           // of findAndModify, canonical
}

const (
	duplicateKey     = 11000
	indexNotFound    = 27
	illegalOperation = 20
	invalidOptions   = 72
)

// loosens applies what a command says of documents that are due by rules which hide, and which it loosens: so many go or are seen
// again. after is the collection when it has done its work. While expiry is held nothing is done, unless the command says so.
func (t *truth) loosens(c, after *truthColl, command bson.Doc, due func(*truthDoc) bool) (out outcome, refused bool) {
	keep, force := command.Lookup("keepExpired").Truthy(), command.Lookup("force").Truthy()
	out.counts = map[string]int64{"deletedExpired": 0, "keptExpired": 0}
	any := slices.ContainsFunc(after.docs, due)
	switch {
	case keep:
		for _, d := range after.docs {
			if due(d) && !t.hidden(after, d) {
				out.counts["keptExpired"]++
			}
		}
	case t.held(c) && !force && any:
		*after = *c.clone()
		return outcome{code: illegalOperation}, true
	default:
		before := len(after.docs)
		after.remove(due)
		out.counts["deletedExpired"] = int64(before - len(after.docs))
	}
	return out, false
}

// held says whether expired documents are kept on purpose.
func (t *truth) held(c *truthColl) bool { return !t.enabled || t.heldUp() || c.paused }

// inGrace says whether the grace has not ended.
func (t *truth) inGrace(g grace) bool { return t.now < g.until }

// settleGraces forgets those that have ended, as a change of the collection does.
func (t *truth) settleGraces(c *truthColl) {
	if !t.inGrace(c.grace) {
		c.grace = grace{}
	}
	for i, ix := range c.indexes {
		if ix.grace != (grace{}) && !t.inGrace(ix.grace) {
			changed := *ix
			changed.grace = grace{}
			c.indexes[i] = &changed
		}
	}
}

// fresh is the grace of a TTL that is made, shortened, or kept from deleting what it hid; g is the one that it has.
func (t *truth) fresh(c *truthColl, g grace) grace {
	if t.graceSecs == 0 || len(c.docs) == 0 {
		return g
	}
	return grace{t.now, max(t.now+1000*t.graceSecs, g.until)}
}

// graceOf is an index's grace after it was changed; old is nil when it had no TTL.
func (t *truth) graceOf(c *truthColl, command bson.Doc, old, ix *truthIndex) grace {
	if !ix.ttl || ix.kind != "" {
		return grace{}
	}
	own := func(ix *truthIndex) bool { return ix.hides || ix.fields[0] == "_ts" }
	switch keep := command.Lookup("keepExpired").Truthy(); {
	case old == nil || !old.ttl:
		return t.fresh(c, grace{})
	case longer(ix, old), keep && (longer(old, ix) || t.hides(old) && !t.hides(ix)):
		return t.fresh(c, old.grace)
	case t.inGrace(old.grace) && (longer(old, ix) || own(old) && !own(ix)):
		return grace{t.now, old.grace.until}
	}
	return old.grace
}

// hides says whether what has expired by an index is hidden.
func (t *truth) hides(ix *truthIndex) bool {
	return ix.ttl && ix.kind == "" && (t.hideAll || ix.hides || ix.fields[0] == "_ts")
}

// apply does to the truth what a command does to a server, and says how that should answer. ok is false when it would be
// chance how that goes, or when the truth does not know; nothing has changed then, and nobody should send it.
func (t *truth) apply(command bson.Doc) (out outcome, ok bool) {
	verb := command.FirstKey()
	if verb == "setParameter" {
		return t.setParameter(command)
	}
	if verb == "profile" {
		return outcome{}, true
	}
	if verb == "renameCollection" {
		return t.rename(command)
	}
	name := command.Lookup(verb).Str()
	c, there := t.colls[name]
	if c == nil {
		c = &truthColl{seconds: never}
	}
	next := c.clone()
	switch verb {
	case "create":
		ok = !there && t.create(next, command)
	case "insert":
		out, ok = t.insert(next, command)
		there = there || len(next.docs) > 0
	case "update":
		out, ok = t.updates(next, command)
		there = there || len(next.docs) > 0
	case "delete":
		out, ok = t.deletes(next, command)
	case "findAndModify":
		out, ok = t.findAndModify(next, command)
		there = there || len(next.docs) > 0
	case "createIndexes":
		out, ok = t.createIndexes(next, command)
		there = true
	case "dropIndexes":
		out, ok = t.dropIndexes(next, command)
		ok = ok && there
	case "collMod":
		out, ok = t.collMod(next, command)
		ok = ok && there
	case "drop":
		delete(t.colls, name)
		return outcome{}, there
	default:
		panic("the truth does not know " + verb)
	}
	if ok && (there || verb == "create") {
		if next.number == 0 {
			t.numbers++
			next.number = t.numbers
		}
		t.colls[name] = next
	}
	return out, ok
}

func (t *truth) setParameter(command bson.Doc) (outcome, bool) {
	for it := command.Iter(); it.Next(); {
		on := it.Value().Truthy()
		switch it.Key() {
		case "ttlHideExpired":
			if t.hideAll && !on {
				return t.stopHiding(command), true
			}
			t.hideAll = on
		case "ttlChangeGraceSecs":
			t.graceSecs = it.Value().TruncInt64()
		case "ttlMonitorEnabled":
			t.enabled = on
		case "ttlMonitorPrecise":
			t.precise = on
		}
	}
	return outcome{}, true
}

// stopHiding switches ttlHideExpired off.
func (t *truth) stopHiding(command bson.Doc) outcome {
	next := map[string]*truthColl{}
	all := outcome{counts: map[string]int64{"deletedExpired": 0, "keptExpired": 0}}
	t.hideAll = false
	for name, c := range t.colls {
		next[name] = c.clone()
		if command.Lookup("keepExpired").Truthy() {
			t.renew(next[name])
		}
		out, refused := t.loosens(c, next[name], command, func(d *truthDoc) bool {
			return c.ownDeadline(d) <= t.hiding() || slices.ContainsFunc(c.indexes, func(ix *truthIndex) bool { return !t.hides(ix) && d.by(ix).deadline <= t.hiding() })
		})
		if refused {
			t.hideAll = true
			return out
		}
		for what, n := range out.counts {
			all.counts[what] += n
		}
	}
	t.colls = next
	return all
}

// renew gives the rules a grace that hid because all did, and whose documents are kept.
func (t *truth) renew(c *truthColl) {
	expires := func(ix *truthIndex) bool { return ix.ttl && ix.kind == "" && !t.hides(ix) }
	if c.seconds == never && !slices.ContainsFunc(c.indexes, expires) {
		return
	}
	t.settleGraces(c)
	if c.seconds != never {
		c.grace = t.fresh(c, c.grace)
	}
	for i, ix := range c.indexes {
		if expires(ix) {
			changed := *ix
			changed.grace = t.fresh(c, ix.grace)
			c.indexes[i] = &changed
		}
	}
}

func (t *truth) rename(command bson.Doc) (outcome, bool) {
	from, to := strings.TrimPrefix(command.Lookup("renameCollection").Str(), "test."), strings.TrimPrefix(command.Lookup("to").Str(), "test.")
	c := t.colls[from]
	if c == nil || from == to || c.cell > 0 || t.colls[to] != nil && t.colls[to].cell > 0 || t.colls[to] != nil && !command.Lookup("dropTarget").Truthy() {
		return outcome{}, false
	}
	delete(t.colls, from)
	t.settleGraces(c)
	t.colls[to] = c
	return outcome{}, true
}

func (t *truth) create(c *truthColl, command bson.Doc) bool {
	c.clustered = command.Lookup("clusteredIndex").Type == bson.TypeObject
	if v := command.Lookup("expireAfterSeconds"); !v.IsMissing() {
		c.seconds = v.TruncInt64()
	}
	if v := command.Lookup("max"); !v.IsMissing() {
		c.capped = int(v.TruncInt64())
	}
	if command.Lookup("timeseries").Type == bson.TypeObject {
		c.cell = 3600
	}
	return true
}

// put stores a document, if its keys are free; documents that nobody can see make room. old is what it replaces, or nil.
func (t *truth) put(c *truthColl, old *truthDoc, doc bson.Doc) (free bool) {
	way := c.inTheWay(doc, old)
	if slices.ContainsFunc(way, func(d *truthDoc) bool { return !t.hidden(c, d) }) {
		return false
	}
	c.remove(func(d *truthDoc) bool { return slices.Contains(way, d) })
	t.numbers++
	made := newDoc(t.numbers, doc, t.modifiedAt())
	if old == nil {
		c.docs = append(c.docs, made)
	} else {
		made.number = old.number
		c.docs[slices.Index(c.docs, old)] = made
	}
	if seen := len(c.docs); c.capped > 0 && seen > c.capped {
		c.docs = c.docs[seen-c.capped:]
	}
	return true
}

func (t *truth) insert(c *truthColl, command bson.Doc) (out outcome, ok bool) {
	ordered := command.Lookup("ordered")
	n, fresh := int64(0), len(c.docs)
	for it := command.Lookup("documents").Doc().Iter(); it.Next(); {
		if c.cell > 0 && it.Value().Doc().Lookup("at").IsMissing() {
			return outcome{}, false
		}
		if t.put(c, nil, it.Value().Doc()) {
			n++
			continue
		}
		for _, d := range c.inTheWay(it.Value().Doc(), nil) {
			if t.active() && slices.Index(c.docs, d) >= fresh && t.expired(c, d) {
				return outcome{}, false // who comes first, the sweep or the next document?
			}
		}
		out.errors = append(out.errors, fmt.Sprintf("%s %d", it.Key(), duplicateKey))
		if ordered.IsMissing() || ordered.Truthy() {
			break
		}
	}
	out.counts = map[string]int64{"n": n}
	return out, true
}

// found are the documents that a statement is about; certain is false when it would be chance which.
func (t *truth) found(c *truthColl, q bson.Doc, many bool) (docs []*truthDoc, certain bool) {
	docs = t.seen(c, q)
	return docs, many || len(docs) <= 1
}

func (t *truth) deletes(c *truthColl, command bson.Doc) (out outcome, ok bool) {
	n := int64(0)
	for it := command.Lookup("deletes").Doc().Iter(); it.Next(); {
		s := it.Value().Doc()
		docs, certain := t.found(c, s.Lookup("q").Doc(), s.Lookup("limit").TruncInt64() == 0)
		if !certain || c.cell > 0 {
			return outcome{}, false
		}
		c.remove(func(d *truthDoc) bool { return slices.Contains(docs, d) })
		n += int64(len(docs))
	}
	return outcome{counts: map[string]int64{"n": n}}, true
}

func (t *truth) updates(c *truthColl, command bson.Doc) (out outcome, ok bool) {
	n, modified := int64(0), int64(0)
	for it := command.Lookup("updates").Doc().Iter(); it.Next(); {
		if it.Key() != "0" && t.active() && slices.ContainsFunc(c.docs, func(d *truthDoc) bool { return t.expired(c, d) }) {
			return outcome{}, false // it may be swept before the next statement
		}
		s := it.Value().Doc()
		r, certain := t.update(c, s.Lookup("q").Doc(), s.Lookup("u"), s.Lookup("multi").Truthy(), s.Lookup("upsert").Truthy())
		if !certain || c.cell > 0 {
			return outcome{}, false
		}
		n, modified = n+r.n, modified+r.modified
		if r.duplicate {
			out.errors = append(out.errors, fmt.Sprintf("%s %d", it.Key(), duplicateKey))
			break
		}
	}
	out.counts = map[string]int64{"n": n, "nModified": modified}
	return out, true
}

// updated is what one statement did.
type updated struct {
	n, modified   int64
	duplicate     bool
	before, after bson.Doc // of the last document
}

func (t *truth) update(c *truthColl, q bson.Doc, u bson.Value, many, upsert bool) (r updated, certain bool) {
	docs, certain := t.found(c, q, many)
	if !certain {
		return r, false
	}
	if len(docs) == 0 && upsert {
		return t.upsert(c, q, u)
	}
	for _, d := range docs {
		after, known := change(d.doc, u, false)
		if !known {
			return r, false
		}
		r.before, r.after = d.doc, after
		replaces := u.Type == bson.TypeObject && !strings.HasPrefix(u.Doc().FirstKey(), "$")
		if after.Text() == d.doc.Text() {
			r.n++
			if replaces {
				r.modified++
			}
			continue
		}
		if !t.put(c, d, after) {
			r.duplicate = true
			return r, !many // otherwise it would be chance whose turn it was
		}
		r.n, r.modified = r.n+1, r.modified+1
	}
	return r, true
}

func (t *truth) upsert(c *truthColl, q bson.Doc, u bson.Value) (r updated, certain bool) {
	b := bson.Build()
	for it := q.Iter(); it.Next(); {
		if it.Value().Type != bson.TypeObject {
			b.Value(it.Key(), it.Value())
		}
	}
	var known bool
	if r.after, known = change(b.Doc(), u, true); !known || r.after.Lookup("_id").IsMissing() {
		return r, false
	}
	r.duplicate = !t.put(c, nil, r.after)
	if !r.duplicate {
		r.n = 1
	}
	return r, true
}

// change is a document after an update: a replacement, modifiers or a pipeline of such stages, of top-level fields.
func change(doc bson.Doc, u bson.Value, inserts bool) (after bson.Doc, known bool) {
	if u.Type == bson.TypeArray {
		for it := u.Doc().Iter(); it.Next(); {
			if doc, known = change(doc, it.Value(), inserts); !known {
				return nil, false
			}
		}
		return doc, true
	}
	if !strings.HasPrefix(u.Doc().FirstKey(), "$") {
		b := bson.Build()
		if id := doc.Lookup("_id"); !id.IsMissing() {
			if own := u.Doc().Lookup("_id"); !own.IsMissing() && own.Text() != id.Text() {
				return nil, false
			}
			b.Value("_id", id)
		}
		for it := u.Doc().Iter(); it.Next(); {
			if it.Key() != "_id" || doc.Lookup("_id").IsMissing() {
				b.Value(it.Key(), it.Value())
			}
		}
		return b.Doc(), true
	}
	fields := map[string]bson.Value{}
	var names []string
	for it := doc.Iter(); it.Next(); {
		names = append(names, it.Key())
		fields[it.Key()] = it.Value()
	}
	for it := u.Doc().Iter(); it.Next(); {
		for f := it.Value().Doc().Iter(); f.Next(); {
			if !slices.Contains(names, f.Key()) {
				names = append(names, f.Key())
			}
			switch it.Key() {
			case "$set":
				fields[f.Key()] = f.Value()
			case "$unset":
				fields[f.Key()] = bson.Missing
			case "$setOnInsert":
				if inserts {
					if v := fields[f.Key()]; f.Key() == "_id" && !v.IsMissing() && v.Text() != f.Value().Text() {
						return nil, false
					}
					fields[f.Key()] = f.Value()
				}
			case "$inc":
				sum, fine := bson.Add(orZero(fields[f.Key()]), f.Value())
				if !fine {
					return nil, false
				}
				fields[f.Key()] = sum
			default:
				return nil, false
			}
		}
	}
	b := bson.Build()
	for _, name := range names {
		if v := fields[name]; !v.IsMissing() {
			b.Value(name, v)
		}
	}
	return b.Doc(), true
}

func orZero(v bson.Value) bson.Value {
	if v.IsMissing() {
		return bson.Int32(0)
	}
	return v
}

func (t *truth) findAndModify(c *truthColl, command bson.Doc) (out outcome, ok bool) {
	q := command.Lookup("query").Doc()
	if c.cell > 0 {
		return outcome{}, false
	}
	if command.Lookup("remove").Truthy() {
		docs, certain := t.found(c, q, false)
		out.value = "null"
		if certain && len(docs) == 1 {
			out.value = canonical(docs[0].doc)
			c.remove(func(d *truthDoc) bool { return d == docs[0] })
		}
		return out, certain
	}
	r, certain := t.update(c, q, command.Lookup("update"), false, command.Lookup("upsert").Truthy())
	shown := r.before
	if command.Lookup("new").Truthy() {
		shown = r.after
	}
	out.value = "null"
	if shown != nil {
		out.value = canonical(shown)
	}
	if r.duplicate {
		out = outcome{code: duplicateKey}
	}
	return out, certain
}

func (t *truth) createIndexes(c *truthColl, command bson.Doc) (out outcome, ok bool) {
	before, named, added := c.clone(), []string(nil), []*truthIndex(nil)
	out.counts = map[string]int64{"deletedExpired": 0, "keptExpired": 0}
	var loose []*truthIndex
	for it := command.Lookup("indexes").Doc().Iter(); it.Next(); {
		ix := readIndex(it.Value().Doc())
		if slices.Contains(named, ix.name) {
			return outcome{}, false
		}
		named = append(named, ix.name)
		if ix.unique && strings.Contains(ix.fields[0], ".") { // keysOf does not go into objects
			return outcome{}, false
		}
		if c.cell > 0 || c.capped > 0 && ix.ttl || c.clustered && ix.fields[0] == "_id" {
			return outcome{}, false
		}
		same := slices.IndexFunc(c.indexes, func(o *truthIndex) bool { return o.name == ix.name || o.identity == ix.identity })
		if same < 0 {
			c.indexes = append(c.indexes, ix)
			added = append(added, ix)
			continue
		}
		old := c.indexes[same]
		switch {
		case old.name != ix.name || old.identity != ix.identity || old.ttl != ix.ttl || old.hides != ix.hides || old.hidden != ix.hidden:
			return outcome{}, false
		case old.seconds != ix.seconds && ix.fields[0] != "_ts":
			return outcome{}, false
		case longer(old, ix):
			loose = append(loose, old)
		}
		c.indexes[same] = ix
	}
	if len(c.indexes) > 8 {
		return outcome{}, false
	}
	if len(loose) > 0 {
		var refused bool
		out, refused = t.loosens(before, c, command, func(d *truthDoc) bool {
			return slices.ContainsFunc(loose, func(ix *truthIndex) bool { return d.by(ix).deadline <= t.hiding() })
		})
		if refused {
			return out, true
		}
	}
	if len(added) > 0 {
		code, certain := t.build(before, c, command, added)
		if !certain {
			return outcome{}, false
		}
		if code != 0 {
			c.indexes = before.indexes
			return outcome{code: code}, true
		}
	}
	changed := len(added) > 0
	for i, ix := range c.indexes {
		old := before.index(ix.name)
		if old == nil || old.seconds != ix.seconds {
			changed = true
			next := *ix
			next.grace = t.graceOf(c, command, old, ix)
			c.indexes[i] = &next
		} else {
			c.indexes[i] = old
		}
	}
	if changed {
		t.settleGraces(c)
	}
	return out, true
}

// build makes way for new indexes and says why they cannot be. What is hidden, as the collection was before, is in nobody's way,
// unless it is to be kept; it is deleted while expiry is not held, and where it is in no grace; otherwise what is in the way
// alone, and while expiry is held only by force. certain is false when more are in the way than a build bears with.
func (t *truth) build(before, c *truthColl, command bson.Doc, added []*truthIndex) (code int32, certain bool) {
	keep, force := command.Lookup("keepExpired").Truthy(), command.Lookup("force").Truthy()
	hidden := func(d *truthDoc) bool { return t.hidden(before, d) }
	if !keep && !t.held(c) {
		c.remove(func(d *truthDoc) bool {
			return t.hideAll && before.ownDeadline(d) <= t.hiding() && !t.inGrace(before.grace) ||
				slices.ContainsFunc(before.indexes, func(ix *truthIndex) bool {
					return t.hides(ix) && d.by(ix).deadline <= t.hiding() && !t.inGrace(ix.grace)
				})
		})
	}
	way := map[*truthDoc]bool{}
	for _, ix := range added {
		holders := map[string][]*truthDoc{}
		for _, d := range c.docs {
			for _, k := range slices.Compact(slices.Sorted(slices.Values(d.by(ix).keys))) {
				holders[k] = append(holders[k], d)
			}
		}
		for _, all := range holders {
			if len(all) == 1 {
				continue
			}
			seen := slices.DeleteFunc(slices.Clone(all), hidden)
			if len(seen) > 1 || keep {
				return duplicateKey, true
			}
			for _, d := range all {
				way[d] = hidden(d)
			}
		}
	}
	inTheWay := func(d *truthDoc) bool { return way[d] }
	if len(way) > fewInTheWay {
		return 0, false
	}
	if t.held(c) && !force && slices.ContainsFunc(c.docs, inTheWay) {
		return illegalOperation, true
	}
	c.remove(inTheWay)
	return 0, true
}

// fewInTheWay is fewer than a build keeps waiting for a key.
const fewInTheWay = 900

// longer says whether what has expired by old might not have by ix.
func longer(old, ix *truthIndex) bool {
	return old.seconds >= 0 && (ix.seconds < 0 || ix.seconds > old.seconds)
}

func (t *truth) dropIndexes(c *truthColl, command bson.Doc) (out outcome, ok bool) {
	ix := c.index(command.Lookup("index").Str())
	if ix == nil {
		return outcome{code: indexNotFound}, true
	}
	before := c.clone()
	c.indexes = slices.DeleteFunc(c.indexes, func(o *truthIndex) bool { return o == ix })
	if t.hides(ix) {
		var refused bool
		out, refused = t.loosens(before, c, command, func(d *truthDoc) bool { return d.by(ix).deadline <= t.hiding() })
		if refused {
			return out, true
		}
	}
	t.settleGraces(c)
	return out, true
}

func (t *truth) collMod(c *truthColl, command bson.Doc) (out outcome, ok bool) {
	if v := command.Lookup("ttlPaused"); !v.IsMissing() {
		c.paused = v.Truthy()
		t.settleGraces(c)
		return outcome{}, true
	}
	if v := command.Lookup("expireAfterSeconds"); !v.IsMissing() {
		return t.collModOwn(c, command)
	}
	m := command.Lookup("index").Doc()
	if c.cell > 0 && !m.Lookup("expireAfterSeconds").IsMissing() {
		return outcome{code: invalidOptions}, true
	}
	old := c.index(m.Lookup("name").Str())
	if old == nil {
		return outcome{code: indexNotFound}, true
	}
	ix := *old
	if v := m.Lookup("hidden"); !v.IsMissing() {
		ix.hidden = v.Truthy()
	}
	if v := m.Lookup("hideExpired"); !v.IsMissing() {
		ix.hides = v.Truthy()
	}
	if v := m.Lookup("expireAfterSeconds"); !v.IsMissing() {
		ix.ttl, ix.seconds = true, v.TruncInt64()
	}
	if ix.ttl && (len(ix.fields) != 1 || ix.kind != "" || c.capped > 0) || ix.hides && !ix.ttl || ix.fields[0] == "_ts" && ix.seconds == 0 || ix.fields[0] != "_ts" && ix.seconds < 0 {
		return outcome{}, false
	}
	before := c.clone()
	c.indexes[slices.Index(c.indexes, old)] = &ix
	if t.hides(old) && (longer(old, &ix) || !t.hides(&ix)) {
		var refused bool
		out, refused = t.loosens(before, c, command, func(d *truthDoc) bool { return d.by(old).deadline <= t.hiding() })
		if refused {
			return out, true
		}
	}
	ix.grace = t.graceOf(c, command, old, &ix)
	t.settleGraces(c)
	return out, true
}

// collModOwn changes the TTL of a clustered collection or a time series.
func (t *truth) collModOwn(c *truthColl, command bson.Doc) (out outcome, ok bool) {
	if !c.clustered && c.cell == 0 {
		return outcome{}, false
	}
	v, seconds := command.Lookup("expireAfterSeconds"), int64(never)
	if v.Type != bson.TypeString {
		seconds = v.TruncInt64()
	}
	before := c.clone()
	c.seconds = seconds
	if t.hideAll && seconds > before.seconds {
		var refused bool
		out, refused = t.loosens(before, c, command, func(d *truthDoc) bool { return before.ownDeadline(d) <= t.hiding() })
		if refused {
			return out, true
		}
	}
	switch keep := command.Lookup("keepExpired").Truthy(); {
	case seconds == never:
		c.grace = grace{}
	case before.seconds == never:
		c.grace = t.fresh(c, grace{})
	case seconds < before.seconds, keep && seconds > before.seconds:
		c.grace = t.fresh(c, before.grace)
	case t.inGrace(before.grace) && seconds > before.seconds:
		c.grace.at = t.now
	}
	t.settleGraces(c)
	return out, true
}
