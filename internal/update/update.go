// Package update is the update language: it parses modifiers, replacements and pipelines once, and makes the new document
// out of the old one as raw BSON. It knows nothing of collections, indexes, storage or time: an operation tells it what
// time it is.
package update

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Kind is what an update is made of.
type Kind uint8

// The kinds of updates.
const (
	Modifiers   Kind = iota // {$set: …}
	Replacement             // a document
	Pipeline                // an array of stages
)

// Update is a parsed update. It holds buffers, so one goroutine at a time may apply it.
type Update struct {
	kind   Kind
	source bson.Value

	root       *node
	aims       *fieldpath.Aim // of root, once somebody has asked
	renames    []renaming
	filters    map[string]*arrayFilter
	positional bool
	applier    applier

	replacement    bson.Doc
	keepTimestamps bool
	stages         []stage
	buffers        [2][]byte // between stages
}

// Options are what an update is parsed under.
type Options struct {
	// ArrayFilters are the conditions that $[<identifier>] stands for.
	ArrayFilters []bson.Value
	// Multi says that all matching documents are updated, which a replacement cannot.
	Multi     bool
	Collation *collation.Collation
	// Exprs reads the expressions of a pipeline; modifiers and replacements do without.
	Exprs *expr.Parser
	// Scope declares the variables that expressions may use; nil for the system's alone.
	Scope *expr.Scope
	// BypassEmptyTimestamps keeps empty timestamps of a replacement as they are.
	BypassEmptyTimestamps bool
	// IsStage says of other names whether they are stages of an aggregation, for the error that they deserve.
	IsStage func(name string) bool
}

// Args are what an update is applied with.
type Args struct {
	// Now is the operation's time in milliseconds after the epoch.
	Now int64
	// Timestamp is the operation's cluster time: seconds in the upper half, increment in the lower.
	Timestamp uint64
	// Details say which array element the query matched; nil when it matched none.
	Details *match.Details
	// Insert says that the document is the seed of an upsert that is about to be inserted.
	Insert bool
	// Env is what expressions are evaluated in; nil will do for updates without.
	Env *expr.Env
}

// Kind is what u is made of.
func (u *Update) Kind() Kind { return u.kind }

// Source is u as it was given.
func (u *Update) Source() bson.Value { return u.source }

// Positional says whether u needs to know which array element the query matched.
func (u *Update) Positional() bool { return u.positional }

// Text is u for people.
func (u *Update) Text() string { return u.source.Text() }

// Apply appends to dst what doc becomes, and returns it with whether it differs; when it does not, the result is doc
// itself. The document starts at len(dst). An insert gets its _id in front; making one is left to the caller.
func (u *Update) Apply(dst []byte, doc bson.Doc, args Args) (out bson.Doc, changed bool, err error) {
	start := len(dst)
	switch u.kind {
	case Modifiers:
		dst, changed, err = u.modify(dst, doc, args)
	case Replacement:
		dst, changed, err = u.replaceWith(dst, doc, u.replacement, args)
	case Pipeline:
		dst, changed, err = u.runPipeline(dst, doc, args)
	}
	if err != nil {
		return nil, false, err
	}
	if !changed && !args.Insert {
		return doc, false, nil
	}
	out = doc
	if changed {
		out = bson.Doc(dst[start:len(dst):len(dst)])
	}
	if args.Insert {
		out = idFirst(out)
	}
	return out, changed, u.checkResult(out, args)
}

func (u *Update) modify(dst []byte, doc bson.Doc, args Args) ([]byte, bool, error) {
	a := &u.applier
	a.args, a.root, a.path, a.arrays, a.filters = args, doc, a.path[:0], 0, u.filters
	a.matched = ""
	if u.positional && args.Details != nil && args.Details.Position >= 0 {
		a.matched = bson.IndexKey(args.Details.Position)
	}
	a.renames = a.renames[:0]
	for i := range u.renames {
		v, err := u.renames[i].source(a)
		if err != nil {
			return dst, false, err
		}
		a.renames = append(a.renames, v)
	}
	dst, e, err := a.object(dst, u.root, doc)
	return dst, e == replaced, err
}

// idFirst is d with its _id, if there is one, before all other fields.
func idFirst(d bson.Doc) bson.Doc {
	id := d.Lookup("_id")
	if id.IsMissing() || d.FirstKey() == "_id" {
		return d
	}
	b := bson.BuildOn(make([]byte, 0, len(d))).Value("_id", id)
	for it := d.Iter(); it.Next(); {
		if it.Key() != "_id" {
			b.Value(it.Key(), it.Value())
		}
	}
	return b.Doc()
}

// checkResult refuses documents that may not be stored.
func (u *Update) checkResult(d bson.Doc, args Args) error {
	if len(d) > bson.MaxDocSize {
		if args.Insert {
			return mongoerr.New(17420, "Document to upsert is larger than %d", bson.MaxDocSize)
		}
		return mongoerr.New(17419, "Resulting document after update is larger than %d", bson.MaxDocSize)
	}
	if u.kind == Modifiers && !args.Insert {
		return nil // what was written was checked there, and _id is as it was
	}
	return CheckStorable(d)
}
