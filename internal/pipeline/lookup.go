package pipeline

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

// Lookup is $lookup.
type Lookup struct {
	written
	// From has no Coll when the pipeline brings its own documents.
	From namespace.NS
	As   fieldpath.Path
	// Equal says that Local and Foreign are given: documents join where the two meet.
	Equal          bool
	Local, Foreign fieldpath.Path
	Let            []Let
	// Pipeline is nil when none was given.
	Pipeline *Pipeline
	// Unwind is a $unwind of As that came right behind, nil without.
	Unwind *Unwind
}

// Let is a variable of a let: evaluated on the outer document, read in the inner pipeline.
type Let struct {
	Name string
	Slot expr.Slot
	Expr expr.Expr
	// Used says whether a $merge's pipeline mentions it, which makes a missing value an error there.
	Used bool
}

func parseLookup(p *parsing, arg bson.Value) ([]Stage, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(mongoerr.FailedToParse, "the $lookup stage specification must be an object, but found %s", arg.Type)
	}
	l := &Lookup{written: written{"$lookup", arg}, From: namespace.NS{DB: p.NS.DB}}
	if err := l.checkFrom(arg.Doc()); err != nil {
		return nil, err
	}
	var from, as, local, foreign, let, sub bson.Value
	err := readStrict("$lookup", arg.Doc(), want{name: "from", to: &from}, want{name: "as", to: &as, types: aString, required: true},
		want{name: "localField", to: &local, types: aString}, want{name: "foreignField", to: &foreign, types: aString},
		want{name: "let", to: &let, types: anObject}, want{name: "pipeline", to: &sub, types: anArray, given: true}, want{name: "_internalCollation", to: new(bson.Value)},
		want{name: "_internalUnwind", to: new(bson.Value)})
	if err != nil {
		return nil, err
	}
	if l.As, err = fieldpath.New(as.Str()); err != nil {
		return nil, err
	}
	if err := l.readFrom(p, from); err != nil {
		return nil, err
	}
	if err := l.readFields(local, foreign); err != nil {
		return nil, err
	}
	switch {
	case sub.IsMissing() && !let.IsMissing():
		return nil, mongoerr.New(mongoerr.FailedToParse, "$lookup with a 'let' argument must also specify 'pipeline'")
	case sub.IsMissing() && !l.Equal:
		return nil, mongoerr.New(mongoerr.FailedToParse, "$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified")
	case sub.IsMissing():
		return one(l), nil
	}
	scope, err := p.readLet(let, &l.Let)
	if err != nil {
		return nil, err
	}
	l.Pipeline, err = p.sub("$lookup", sub, l.From, scope)
	return one(l), err
}

// checkFrom looks at from before the other fields are: without it, the pipeline must bring documents.
func (l *Lookup) checkFrom(d bson.Doc) error {
	from := d.Lookup("from")
	switch from.Type {
	case bson.TypeString, bson.TypeObject:
		return nil
	case bson.TypeMissing, bson.TypeNull:
		sub := d.Lookup("pipeline")
		if sub.Type == bson.TypeArray {
			if first := sub.Doc().Index(0); first.Type == bson.TypeObject && first.Doc().FirstKey() == "$documents" {
				return nil
			}
		}
		return mongoerr.New(mongoerr.FailedToParse, "must specify 'pipeline' when 'from' is empty")
	}
	return mongoerr.New(mongoerr.FailedToParse, "$lookup argument 'from: %s' must be a string or object, is type %s", from, from.Type)
}

func (l *Lookup) readFrom(p *parsing, from bson.Value) error {
	switch from.Type {
	case bson.TypeString:
		l.From.Coll = from.Str()
		if c := l.From.Coll; c == "" || c[0] == '.' || strings.IndexByte(c, 0) >= 0 {
			return mongoerr.New(mongoerr.InvalidNamespace, "Invalid namespace specified '%s'", l.From)
		}
		return nil
	case bson.TypeObject:
		return l.readForeignDB(p, from.Doc())
	}
	return nil
}

// readForeignDB reads {db, coll}, which only the server's own collections may be named by.
func (l *Lookup) readForeignDB(_ *parsing, d bson.Doc) error {
	var db, coll bson.Value
	if err := readStrict("$lookup.from", d, want{name: "db", to: &db, types: aString}, want{name: "coll", to: &coll, types: aString}); err != nil {
		return err
	}
	if db.IsMissing() || coll.IsMissing() || !(db.Str() == "local" && coll.Str() == "oplog.rs" || db.Str() == "config") {
		return mongoerr.New(mongoerr.FailedToParse, "$lookup with syntax {from: {db:<>, coll:<>},..} is not supported for db: %s and coll: %s", db, coll)
	}
	l.From = namespace.NS{DB: db.Str(), Coll: coll.Str()}
	return nil
}

func (l *Lookup) readFields(local, foreign bson.Value) error {
	absent := func(v bson.Value) bool { return v.IsMissing() || v.Str() == "" }
	if absent(local) != absent(foreign) {
		return mongoerr.New(mongoerr.FailedToParse, "$lookup requires both or neither of 'localField' and 'foreignField' to be specified")
	}
	if absent(local) {
		return nil
	}
	l.Equal = true
	var err error
	if l.Local, err = fieldpath.New(local.Str()); err != nil {
		return err
	}
	l.Foreign, err = fieldpath.New(foreign.Str())
	return err
}

// readLet parses the variables of a let, which do not see one another, and is the scope of what they are for.
func (p *parsing) readLet(let bson.Value, to *[]Let) (*expr.Scope, error) {
	scope := p.Scope
	if let.IsMissing() {
		return scope, nil
	}
	for it := let.Doc().Iter(); it.Next(); {
		if err := expr.CheckVariableName(it.Key()); err != nil {
			return nil, err
		}
		e, err := p.Exprs.Parse(it.Value(), p.Scope)
		if err != nil {
			return nil, err
		}
		l := Let{Name: it.Key(), Expr: e}
		scope, l.Slot = scope.Define(l.Name)
		*to = append(*to, l)
	}
	return scope, nil
}

func (l *Lookup) needs(d *Dependencies) bool {
	if l.Equal {
		d.paths(l.Local.String())
	}
	for _, v := range l.Let {
		d.exprs(v.Expr)
	}
	return true
}
