package planner

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/match"
)

// ExpressMode says which plans of a query may be express: found without a choice, told as one stage.
type ExpressMode uint8

// The modes. A write is express by its document's _id alone.
const (
	NeverExpress ExpressMode = iota
	ExpressByID
	ExpressByField
)

// Express is what MongoDB shows of a plan that finds one document at most by one field's value: a single stage that names
// the index.
type Express struct {
	// Key and Name are those of the index, "" where the records themselves are in the order of _id.
	Key, Name string
	// Write is "UPDATE" or "DELETE" for a plan of a write, "" for a read.
	Write string
	// Spec is the projection that is part of the stage, nil for none; Covered says that the index's keys have its fields.
	Spec    bson.Doc
	Covered bool
}

// ByID is the express plan by the index on _id.
func ByID() *Express { return &Express{Key: "{ _id: 1 }", Name: "_id_"} }

// Stage implements Node.
func (n *Express) Stage() string {
	if n.Write != "" {
		return "EXPRESS_" + n.Write
	}
	return n.access()
}

// access is how the document is found.
func (n *Express) access() string {
	if n.Name == "" {
		return "EXPRESS_CLUSTERED_IXSCAN"
	}
	return "EXPRESS_IXSCAN"
}

// Children implements Node.
func (*Express) Children() []Node { return nil }

// Describe implements Node.
func (n *Express) Describe(b *bson.Builder) {
	if n.Name != "" {
		b.String("keyPattern", n.Key).String("indexName", n.Name)
	}
	if n.Spec != nil {
		b.Document("projection", n.Spec).Bool("projectionCovered", n.Covered)
	}
}

// Summary is what the plan is called in one line.
func (n *Express) Summary() string {
	text := n.access()
	if n.Key != "" {
		text += " " + n.Key
	}
	if n.Write != "" {
		text += ",EXPRESS_" + n.Write
	}
	return text
}

// expressID is what p's plan by _id is shown as, nil where it is not express.
func (p *planning) expressID() *Express {
	switch {
	case p.q.Express == NeverExpress || p.q.Skip > 0:
		return nil
	case p.c.Clustered != nil:
		return &Express{}
	}
	return ByID()
}

// express is the plan of a query for one document at most by one field's value: by the index of the fewest fields, one
// that has all that is asked for before others. It is nil where there is none, and the query's plans are to be compared.
func (p *planning) express() *Plan {
	if p.q.Express != ExpressByField || p.q.Skip > 0 || len(p.q.Order) > 0 || p.c.Clustered != nil {
		return nil
	}
	eq := onlyEquality(p.root)
	if eq == nil || !hasExactBounds(eq.Value) {
		return nil
	}
	var best *Plan
	var fields int
	for _, x := range p.c.Indexes {
		if !p.isExpress(x, eq) {
			continue
		}
		plans := p.indexed([]Index{x}, true)
		if len(plans) == 0 || plans[0].Scan() == nil {
			continue
		}
		covers := isCovered(plans[0].Root)
		if best == nil || covers && !best.Express.Covered || covers == best.Express.Covered && len(x.Fields) < fields {
			best, fields = plans[0], len(x.Fields)
			best.Express = &Express{Key: x.KeyText(), Name: x.Name, Covered: covers}
		}
	}
	return best
}

// isExpress says whether x finds the document that eq asks for, and no other unless one is all that is wanted.
func (p *planning) isExpress(x Index, eq *match.Compare) bool {
	if x.Hidden || !x.Built() || !x.ordered() || x.Fields[0].Path != eq.Path.String() {
		return false
	}
	switch eq.Value.Type {
	case bson.TypeString, bson.TypeObject, bson.TypeArray:
		if !collation.Equal(x.Collator(), p.q.Collation) {
			return false
		}
	}
	return x.Unique && len(x.Fields) == 1 || p.q.Limit == 1
}

// onlyEquality is the comparison for equality that is all of a filter, nil where it is anything else.
func onlyEquality(n match.Node) *match.Compare {
	if and, ok := n.(*match.And); ok && len(and.Children) == 1 {
		n = and.Children[0]
	}
	if eq, ok := n.(*match.Compare); ok && eq.Op == match.Eq {
		return eq
	}
	return nil
}

// hasExactBounds says whether the keys of v are those of the values equal to it.
func hasExactBounds(v bson.Value) bool {
	switch v.Type {
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal, bson.TypeString, bson.TypeBool, bson.TypeDate, bson.TypeTimestamp,
		bson.TypeObjectID, bson.TypeBinary, bson.TypeObject, bson.TypeCode, bson.TypeCodeWithScope, bson.TypeMinKey, bson.TypeMaxKey:
		return true
	}
	return false
}

func isCovered(n Node) bool {
	if l, ok := n.(*Limit); ok {
		n = l.Child
	}
	p, ok := n.(*Projection)
	return ok && p.Covered
}
