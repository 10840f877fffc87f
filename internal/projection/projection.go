// Package projection reshapes documents: it parses the projection of a find and the specifications of $project, $addFields
// and $unset into one tree, and applies it to raw BSON. It knows nothing of plans, cursors or stages.
package projection

import (
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Kind says what becomes of the fields that a projection does not name.
type Kind uint8

// The kinds.
const (
	Inclusion Kind = iota // they are left out
	Exclusion             // they stay
	Addition              // they stay, and those that are named get values
)

// String is the kind as explain names it.
func (k Kind) String() string { return [...]string{"inclusion", "exclusion", "addition"}[k] }

// Projection is a parsed projection. It is immutable: any number of goroutines may apply it, each with an Env of its own.
type Projection struct {
	kind       Kind
	root       *node
	source     bson.Doc
	positional bool
	exprs      []expr.Expr
}

// action is what happens to a field.
type action uint8

const (
	include action = iota
	exclude
	nested
	compute
	elemMatch
	slice
	positional
)

// node is a document that is projected: the root, or one below it.
type node struct {
	fields []field
	index  map[string]int // of fields, when there are many
	// computes says that some field here or below is computed.
	computes bool
	// positional says that a path that ends in "$" leads through here.
	positional bool
}

type field struct {
	name   string
	action action
	node   *node         // of nested
	expr   expr.Expr     // of compute
	filter *match.Filter // of elemMatch
	skip   int64         // of slice
	limit  int64         // of slice
	window bool          // slice has both
}

// linearFields is up to how many fields a node is searched from front to back.
const linearFields = 8

// find is the position of the field of a name, or -1.
func (n *node) find(name string) int {
	if n.index != nil {
		if i, ok := n.index[name]; ok {
			return i
		}
		return -1
	}
	for i := range n.fields {
		if n.fields[i].name == name {
			return i
		}
	}
	return -1
}

func (n *node) add(f field) *field {
	n.fields = append(n.fields, f)
	switch i := len(n.fields) - 1; {
	case n.index != nil:
		n.index[f.name] = i
	case i == linearFields:
		n.index = make(map[string]int)
		for i := range n.fields {
			n.index[n.fields[i].name] = i
		}
	}
	return &n.fields[len(n.fields)-1]
}

// remove takes out a field.
func (n *node) remove(i int) {
	n.fields = slices.Delete(n.fields, i, i+1)
	if n.index != nil {
		clear(n.index)
		for i := range n.fields {
			n.index[n.fields[i].name] = i
		}
	}
}

// Kind is what becomes of the fields that p does not name.
func (p *Projection) Kind() Kind { return p.kind }

// Source is p as it was given.
func (p *Projection) Source() bson.Doc { return p.source }

// Text is p for people.
func (p *Projection) Text() string { return p.source.Text() }

// Positional says whether p needs to know which array element the query matched.
func (p *Projection) Positional() bool { return p.positional }

// Expressive says whether applying p evaluates expressions and so needs an Env.
func (p *Projection) Expressive() bool { return len(p.exprs) > 0 }

// Identity says whether p leaves every document as it is.
func (p *Projection) Identity() bool { return p.kind != Inclusion && len(p.root.fields) == 0 }

// Plain says whether p takes fields as they are: it leaves a document as it is that has no other fields than p reads, and no arrays.
func (p *Projection) Plain() bool { return p.kind == Inclusion && p.root.plain() }

func (n *node) plain() bool {
	if n.computes || n.positional {
		return false
	}
	for _, f := range n.fields {
		if f.action != include && f.action != exclude && (f.action != nested || !f.node.plain()) {
			return false
		}
	}
	return true
}

// Dependencies are what a projection needs of a document.
type Dependencies struct {
	// Fields are the paths that are read, sorted; useless when Whole.
	Fields []string
	// Whole says that the whole document is read.
	Whole bool
	// Meta are the kinds of metadata that are read.
	Meta []string
}

// Dependencies is what p needs of a document: what a plan that answers from an index must have.
func (p *Projection) Dependencies() Dependencies {
	of := expr.DependenciesOf(p.exprs...)
	d := Dependencies{Fields: of.Fields, Meta: of.Meta, Whole: of.Whole || p.kind != Inclusion || p.positional}
	d.add(p.root, "")
	slices.Sort(d.Fields)
	d.Fields = slices.Compact(d.Fields)
	return d
}

// Random says whether p draws random numbers.
func (p *Projection) Random() bool { return expr.DependenciesOf(p.exprs...).Random }

func (d *Dependencies) add(n *node, prefix string) {
	for i := range n.fields {
		switch f := &n.fields[i]; f.action {
		case nested:
			d.add(f.node, prefix+f.name+".")
		case compute, exclude:
		default:
			d.Fields = append(d.Fields, prefix+f.name)
		}
	}
}

// ComputedPaths are the dotted paths that get computed values, in order.
func (p *Projection) ComputedPaths() []string { return computedPaths(nil, p.root, "") }

func computedPaths(out []string, n *node, prefix string) []string {
	for i := range n.fields {
		switch f := &n.fields[i]; f.action {
		case nested:
			out = computedPaths(out, f.node, prefix+f.name+".")
		case compute, elemMatch:
			out = append(out, prefix+f.name)
		}
	}
	return out
}

// Includes are the dotted paths that stay as they are, in order.
func (p *Projection) Includes() []string { return p.paths(nil, p.root, "", include) }

// Excludes are the dotted paths that are left out, in order.
func (p *Projection) Excludes() []string { return p.paths(nil, p.root, "", exclude) }

func (p *Projection) paths(out []string, n *node, prefix string, what action) []string {
	for i := range n.fields {
		switch f := &n.fields[i]; f.action {
		case nested:
			out = p.paths(out, f.node, prefix+f.name+".", what)
		case what:
			out = append(out, prefix+f.name)
		}
	}
	return out
}

// Renames are the fields of the first level that get the value of another one.
func (p *Projection) Renames() map[string]string {
	out := map[string]string{}
	for i := range p.root.fields {
		f := &p.root.fields[i]
		if f.action != compute {
			continue
		}
		if from, ok := expr.FieldOf(f.expr); ok && from.Len() == 1 {
			out[f.name] = from.String()
		}
	}
	return out
}

// Apply appends to dst what p makes of doc and returns it; it starts at len(dst). Expressions are evaluated in env, which is
// Reset first, so doc may not lie in it. Details say which element the query matched, for "$"; nil when it matched none.
func (p *Projection) Apply(dst []byte, doc bson.Doc, env *expr.Env, details *match.Details) (bson.Doc, error) {
	if len(p.exprs) > 0 {
		env.Reset()
		env.Root = doc
	}
	r := run{p: p, env: env, root: doc, start: len(dst), position: -1}
	if details != nil {
		r.position = details.Position
	}
	dst, err := r.object(dst, p.root, doc, 0)
	if err == nil && len(p.exprs) > 0 {
		err = checkSize(len(dst) - r.start)
	}
	if err != nil {
		return nil, err
	}
	return bson.Doc(dst[r.start:len(dst):len(dst)]), nil
}

func checkSize(n int) error {
	if n > bson.MaxInternalSize {
		return mongoerr.New(mongoerr.BSONObjectTooLarge,
			"BSONObj size: %d (0x%X) is invalid. Size must be between 0 and %d(16MB)", n, n, bson.MaxInternalSize)
	}
	return nil
}
