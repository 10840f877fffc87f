package command

import (
	"encoding/hex"
	"strings"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/query"
)

func querySettingsCommands() []*Command {
	return []*Command{
		{Name: "setQuerySettings", Needs: Needs{OnCluster: actions(privilege.QuerySettings)}, Doc: "Sets which indexes queries of a shape may use, or that they are rejected.", AdminOnly: true, HoldsCommands: true, Run: setQuerySettings},
		{Name: "removeQuerySettings", Needs: Needs{OnCluster: actions(privilege.QuerySettings)}, Doc: "Removes what was set for queries of a shape.", AdminOnly: true, HoldsCommands: true, Run: removeQuerySettings},
	}
}

// shapeBytes is the length of a shape's hash, which is written as twice as many digits.
const shapeBytes = 32

func setQuerySettings(op *Op) (bson.Doc, error) {
	a := op.Args
	a.Required("settings")
	wanted := a.Doc("settings")
	r, asked, err := op.representative()
	if err != nil {
		return nil, err
	}
	var next *query.Setting
	err = op.changeSettings(func() error {
		return op.Query.Settings.Change(r.Hash, func(old *query.Setting) (*query.Setting, error) {
			next, err = op.newSetting(old, r, asked, wanted)
			return next, err
		})
	})
	if err != nil {
		return nil, err
	}
	op.forgetPlans(next)
	b := bson.Build().String("queryShapeHash", next.Hash)
	if next.Query != nil {
		b.Document("representativeQuery", next.Query)
	}
	return b.Document("settings", next.Doc).Doc(), nil
}

// newSetting is what follows old, if there is one, when wanted is set.
func (op *Op) newSetting(old *query.Setting, r query.Representative, asked, wanted bson.Doc) (*query.Setting, error) {
	if wanted.IsEmpty() {
		return nil, mongoerr.New(8727502, "settings field in setQuerySettings command cannot be empty")
	}
	given, err := readSettings(wanted)
	if err != nil {
		return nil, err
	}
	next := &query.Setting{Hash: r.Hash}
	var before settings
	if old != nil {
		next.Query, next.Shape = old.Query, old.Shape
		if before, err = readSettings(old.Doc); err != nil {
			return nil, err
		}
	}
	if asked != nil {
		if err := settable(r, given.reject.Truthy()); err != nil {
			return nil, err
		}
		next.Query, next.Shape = asked.Clone(), r.Shape
	}
	merged := before.with(given)
	if err := merged.check(); err != nil {
		return nil, err
	}
	next.Doc, next.Reject, next.Hints = merged.document(), merged.reject.Truthy(), merged.indexHints()
	return next, nil
}

// settable refuses the queries for which nothing can be set.
func settable(r query.Representative, reject bool) error {
	switch ns := r.NS; {
	case ns.DB == "admin" || ns.DB == "config" || ns.DB == "local":
		return mongoerr.New(8584900, "setQuerySettings command cannot be used on internal databases")
	case ns.IsSystem():
		return mongoerr.New(8584901, "setQuerySettings command cannot be used on system collections")
	case r.ByID:
		return mongoerr.New(7746606, "setQuerySettings command cannot be used on find queries eligible for IDHACK")
	case reject && r.System != "":
		return mongoerr.New(8705200, "Setting {reject:true} is forbidden for query containing stage: %s", r.System)
	}
	return nil
}

func removeQuerySettings(op *Op) (bson.Doc, error) {
	r, _, err := op.representative()
	if err != nil {
		return nil, err
	}
	old := op.Query.Settings.Get(r.Hash)
	if old == nil {
		return bson.EmptyDoc, nil
	}
	err = op.changeSettings(func() error {
		op.Query.Settings.Remove(r.Hash)
		return nil
	})
	if err != nil {
		return nil, err
	}
	op.forgetPlans(old)
	return bson.EmptyDoc, nil
}

// forgetPlans forgets the plans of collections that a setting names.
func (op *Op) forgetPlans(s *query.Setting) {
	if s == nil {
		return
	}
	for _, h := range s.Hints {
		if coll := op.Query.Store.Catalog().Collection(h.NS); coll != nil {
			op.Query.Plans.Clear(coll.ID)
		}
	}
}

// representative reads the shape that op is about: as a hash, or as a query of that shape, which asked is then.
func (op *Op) representative() (r query.Representative, asked bson.Doc, err error) {
	a := op.Args
	v := a.Value(op.Name())
	if v.Type != bson.TypeString && v.Type != bson.TypeObject {
		a.Fail(a.wrongType(op.Name(), v.Type, []bson.Type{bson.TypeString, bson.TypeObject}))
	}
	if err := a.Done(); err != nil {
		return r, nil, err
	}
	if v.Type == bson.TypeString {
		r.Hash, err = shapeHash(v.Str())
		return r, nil, err
	}
	r, err = op.represent(v.Doc())
	return r, v.Doc(), err
}

func shapeHash(digits string) (string, error) {
	raw, err := hex.DecodeString(digits)
	if err != nil {
		return "", mongoerr.New(mongoerr.BadValue, "The input string is not a valid hexadecimal string: %s", digits)
	}
	if len(raw) != shapeBytes {
		return "", mongoerr.New(mongoerr.InvalidLength, "Unexpected number of bytes in a query shape hash: %d, expected %d", len(raw), shapeBytes)
	}
	return strings.ToUpper(digits), nil
}

// represent finds out what a query stands for, read as if it had been sent.
func (op *Op) represent(doc bson.Doc) (r query.Representative, err error) {
	inner := *op
	name := doc.FirstKey()
	switch name {
	case "find", "distinct", "aggregate":
	default:
		return r, mongoerr.New(7746402, "QueryShape can not be computed for command: %s", op.table.concealWithin(doc.Value()).Doc())
	}
	inner.Command, inner.Args, inner.Sequences = op.table[name], NewArgs(name+"CommandRequest", doc), nil
	inner.Args.Required("$db")
	inner.DB, _ = inner.Args.String("$db")
	if err := inner.Args.Err(); err != nil {
		return r, err
	}
	if err := (namespace.NS{DB: inner.DB, Coll: "c"}).Check(); err != nil {
		return r, err
	}
	if err := inner.readGeneric(); err != nil {
		return r, err
	}
	switch name {
	case "find":
		f := &findRequest{}
		err := inner.parseFind(inner.Args, f)
		if err == nil {
			err = readable(f.NS)
		}
		if err != nil {
			return r, err
		}
		return op.Query.RepresentFind(op.Ctx, f.Find, &f.call)
	case "distinct":
		d, err := inner.parseDistinct(inner.Args)
		if err != nil {
			return r, err
		}
		return op.Query.RepresentDistinct(op.Ctx, d.Distinct, d.call)
	}
	g, err := inner.parseAggregate(inner.Args)
	if err != nil {
		return r, err
	}
	return op.Query.RepresentPipeline(op.Ctx, g.Aggregate, g.call)
}

// settings are the fields of a setting; missing ones are not set.
type settings struct {
	hints     []indexHint
	framework bson.Value
	reject    bson.Value
	comment   bson.Value
	hinted    bool
}

// indexHint is {ns: {db, coll}, allowedIndexes: [...]}.
type indexHint struct {
	ns      namespace.NS
	allowed bson.Doc
}

func readSettings(doc bson.Doc) (settings, error) {
	a := NewArgs("setQuerySettings.settings", doc)
	s := settings{comment: a.Value("comment"), reject: a.Value("reject")}
	if v := s.reject; v.Type != bson.TypeBool && !v.IsMissing() {
		a.Fail(a.wrongType("reject", v.Type, []bson.Type{bson.TypeBool}))
	}
	if word, ok := a.String("queryFramework"); ok {
		if word != "classic" && word != "sbe" {
			a.Fail(mongoerr.New(mongoerr.BadValue, "Unknown query framework: %s", word))
		}
		s.framework = bson.String(word)
	}
	s.readHints(a)
	a.ignoreRest()
	return s, a.Done()
}

// readHints reads the hints, of which one may stand alone.
func (s *settings) readHints(a *Args) {
	v, ok := a.typed("indexHints", bson.TypeArray, bson.TypeObject)
	if !ok {
		return
	}
	s.hinted = true
	if v.Type == bson.TypeObject {
		s.readHint(NewArgs("indexHints", v.Doc()), a)
		return
	}
	for it := v.Doc().Iter(); it.Next(); {
		if it.Value().Type != bson.TypeObject {
			a.Fail(a.wrongType("indexHints."+it.Key(), it.Value().Type, []bson.Type{bson.TypeObject}))
			return
		}
		s.readHint(NewArgs("indexHints", it.Value().Doc()), a)
	}
}

func (s *settings) readHint(hint, a *Args) {
	hint.Required("ns", "allowedIndexes")
	ns := NewArgs("indexHints.ns", hint.Doc("ns"))
	allowed := hint.Array("allowedIndexes")
	db, hasDB := ns.String("db")
	coll, hasColl := ns.String("coll")
	for _, err := range []error{hint.Err(), ns.Err()} {
		if err != nil {
			a.Fail(err)
			return
		}
	}
	switch {
	case !hasDB:
		a.Fail(mongoerr.New(8727500, "invalid index hint: 'ns.db' field is missing"))
	case !hasColl:
		a.Fail(mongoerr.New(8727501, "invalid index hint: 'ns.coll' field is missing"))
	}
	for it := allowed.Iter(); it.Next(); {
		if t := it.Value().Type; t != bson.TypeString && t != bson.TypeObject {
			a.Fail(mongoerr.New(mongoerr.FailedToParse, "Hint must be a string or an object"))
		}
	}
	s.hints = append(s.hints, indexHint{namespace.NS{DB: db, Coll: coll}, allowed})
}

// with is s with what next has set.
func (s settings) with(next settings) settings {
	if !next.framework.IsMissing() {
		s.framework = next.framework
	}
	if next.hinted {
		s.hints, s.hinted = next.hints, true
	}
	if !next.reject.IsMissing() {
		s.reject = next.reject
	}
	if !next.comment.IsMissing() {
		s.comment = next.comment
	}
	return s.simple()
}

// simple leaves out what says nothing: reject: false, and hints that allow nothing.
func (s settings) simple() settings {
	if !s.reject.Truthy() {
		s.reject = bson.Missing
	}
	var hints []indexHint
	for _, h := range s.hints {
		if !h.allowed.IsEmpty() {
			hints = append(hints, h)
		}
	}
	s.hints = hints
	return s
}

func (s settings) check() error {
	if s.reject.IsMissing() && s.framework.IsMissing() && len(s.hints) == 0 {
		return mongoerr.New(7746604, "the resulting settings cannot be empty or contain only default values")
	}
	seen := map[namespace.NS]bool{}
	for _, h := range s.hints {
		if seen[h.ns] {
			return mongoerr.New(7746608, "Collection '%s' has already index hints specified", h.ns)
		}
		seen[h.ns] = true
		for it := h.allowed.Iter(); it.Next(); {
			if v := it.Value(); v.Type == bson.TypeObject {
				if err := checkKeyPattern(v.Doc()); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// checkKeyPattern refuses what can be no index's key pattern.
func checkKeyPattern(key bson.Doc) error {
	if key.IsEmpty() {
		return mongoerr.New(9646000, "key pattern index can't be empty")
	}
	if key.FirstKey() == "$natural" {
		return nil
	}
	spec := bson.Build().Document("key", key).String("name", "x").Doc()
	if _, err := index.NewParser(match.NewParser()).Parse(spec, nil); err != nil {
		return mongoerr.New(9646001, "invalid index key pattern hint :: caused by :: %s", mongoerr.From(err).Message)
	}
	return nil
}

func (s settings) document() bson.Doc {
	b := bson.Build()
	if len(s.hints) > 0 {
		b.Array("indexHints")
		for i, h := range s.hints {
			b.Object(bson.IndexKey(i)).Object("ns").String("db", h.ns.DB).String("coll", h.ns.Coll).End().
				Value("allowedIndexes", h.allowed.ArrayValue()).End()
		}
		b.End()
	}
	for _, f := range []struct {
		name string
		v    bson.Value
	}{{"queryFramework", s.framework}, {"reject", s.reject}, {"comment", s.comment}} {
		if !f.v.IsMissing() {
			b.Value(f.name, f.v)
		}
	}
	return b.Doc()
}

func (s settings) indexHints() []query.IndexHint {
	var hints []query.IndexHint
	for _, h := range s.hints {
		hints = append(hints, query.IndexHint{NS: namespace.NS{DB: strings.Clone(h.ns.DB), Coll: strings.Clone(h.ns.Coll)}, Allowed: h.allowed.Clone()})
	}
	return hints
}

// querySettingsStage is what $querySettings gives.
func (s *Server) querySettingsStage(spec bson.Doc) []bson.Doc {
	var docs []bson.Doc
	for _, x := range s.Query.Settings.All() {
		b := bson.Build().String("queryShapeHash", x.Hash).Document("settings", x.Doc)
		if x.Query != nil {
			b.Document("representativeQuery", x.Query)
		}
		if x.Shape != nil && spec.Lookup("showDebugQueryShape").Truthy() {
			b.Document("debugQueryShape", x.Shape)
		}
		docs = append(docs, b.Doc())
	}
	return docs
}
