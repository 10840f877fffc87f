// Package match is the query language: it parses a filter once into a tree that planners can look into, and says of raw
// documents and values whether they match. It knows nothing of collections, indexes, plans or time.
package match

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/expr"
)

// Filter is a parsed filter. It may be used by many goroutines at once.
type Filter struct {
	// Root is what the filter says; an And without children matches everything.
	Root Node
	// Source is the filter as it was given.
	Source bson.Doc
	// Collation is what strings are compared by, nil for bytes.
	Collation *collation.Collation
}

// Details is what a match says besides yes.
type Details struct {
	// Position is the element that matched in the outermost array that the filter's last decisive path went through, or -1:
	// what "$" stands for in updates and projections.
	Position int
	// Score is what the document scores in the search of a text index that found it; Scored says that there is such. No
	// match sets it: who finds the document does.
	Score  float64
	Scored bool
}

// Match says whether doc matches. A nil env will do for filters without $expr and $where.
func (f *Filter) Match(env *expr.Env, doc bson.Doc) (bool, error) {
	return f.Root.match(run{env: env, root: doc}, subject{value: doc.Value()})
}

// MatchDetails is Match that also fills d.
func (f *Filter) MatchDetails(env *expr.Env, doc bson.Doc, d *Details) (bool, error) {
	d.Position = -1
	return f.Root.match(run{env: env, root: doc, details: d}, subject{value: doc.Value()})
}

// MatchValue says whether v matches when it stands for the first component of every path of the filter: the identifier of
// an array filter, or the empty name of a condition on bare values.
func (f *Filter) MatchValue(env *expr.Env, v bson.Value) (bool, error) {
	return f.Root.match(run{env: env}, subject{value: v, skip: 1})
}

// run is what one evaluation carries along; it is passed by value so that none is allocated.
type run struct {
	env     *expr.Env
	details *Details
	root    bson.Doc
}

// ask is what may end the evaluation; nil where nobody can.
func (c run) ask() func() error {
	if c.env == nil {
		return nil
	}
	return c.env.Interrupt
}

// ended is why the evaluation has to end, if it has.
func (c run) ended() error {
	if c.env == nil || c.env.Interrupt == nil {
		return nil
	}
	return c.env.Interrupt()
}

// tick counts a node that is held against a value, and says now and then why the evaluation has to end: a filter of a hundred
// thousand nodes may be held against an array of a million.
func (c run) tick() error {
	if c.env == nil {
		return nil
	}
	return c.env.Tick()
}

// tickFor is tick for who looks at v: to compare megabytes by a collation takes tenths of a second.
func (c run) tickFor(v bson.Value) error {
	if c.env == nil {
		return nil
	}
	return c.env.TickFor(v)
}

// silent is c without anybody to tell positions: what is under a negation has none.
func (c run) silent() run {
	c.details = nil
	return c
}

// subject is what a node is matched against: a whole document (skip 0), or a value that stands for the first skip
// components of the paths.
type subject struct {
	value bson.Value
	skip  int
}

// Node is a part of a filter's tree. The types that implement it are all in this package.
type Node interface {
	// match says whether the subject, looked at along the node's paths, matches.
	match(c run, s subject) (bool, error)
	// test says whether one value does, taken as it is: what the value form of $elemMatch asks. Nodes without a path ask
	// their children, or treat a document as the subject.
	test(c run, v bson.Value) (bool, error)
	// print appends the node in its canonical form to a document that is being built.
	print(b *bson.Builder)
}
