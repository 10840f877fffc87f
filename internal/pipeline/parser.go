package pipeline

import (
	"github.com/ebbdb/ebb/internal/accumulator"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/projection"
)

// Parser reads the pipelines of one operation.
type Parser struct {
	Exprs        *expr.Parser
	Filters      *match.Parser
	Projections  *projection.Parser
	Accumulators *accumulator.Parser
	Collation    *collation.Collation

	table Table
}

// Table is the stages by name.
type Table map[string]*Row

// NewTable makes the table; it is made once and shared.
func NewTable() Table {
	rows := Rows()
	t := make(Table, len(rows))
	for i := range rows {
		t[rows[i].Name] = &rows[i]
	}
	return t
}

// NewParser makes a parser of the stages in table on the parsers of the language. All of them compare strings by c, nil for bytes.
func NewParser(table Table, exprs *expr.Parser, filters *match.Parser, projections *projection.Parser, c *collation.Collation) *Parser {
	p := &Parser{Exprs: exprs, Filters: filters, Projections: projections, Collation: c, table: table}
	if c == nil {
		p.Accumulators = accumulator.NewParser(exprs, nil, nil)
	} else {
		p.Accumulators = accumulator.NewParser(exprs, c, c)
	}
	return p
}

// Options say what a pipeline is parsed for.
type Options struct {
	// NS is what the pipeline runs on, without a Coll for {aggregate: 1}.
	NS namespace.NS
	// Fused is the view on NS that a $rankFusion or $scoreFusion at the front was asked of: its inputs read the view, whose
	// pipeline does not stand in front of the stage. It has no Coll otherwise.
	Fused namespace.NS
	// Scope declares the variables of the command's let.
	Scope *expr.Scope
	// View says that the pipeline defines a view, which may not write.
	View bool
	// Watches says that there is an oplog, out of which $changeStream makes its events.
	Watches bool
	// Update says that the pipeline is an update or the whenMatched of a $merge: a few stages only.
	Update bool
}

// parsing is one run of the parser over one pipeline; the pipelines inside of stages have runs of their own.
type parsing struct {
	*Parser
	Options
	depth  int
	inside string // the stage around, "" at the top
	// facet says that some stage further around is a $facet.
	facet bool
	// at and name are the stage being parsed.
	at   int
	name string
}

// Parse reads a pipeline, an array of stages, and rewrites it.
func (p *Parser) Parse(stages bson.Value, o Options) (*Pipeline, error) {
	stages = stages.Clone()
	out, err := (&parsing{Parser: p, Options: o}).pipeline(stages)
	if err != nil {
		return nil, err
	}
	return out, out.optimize(p.Exprs.Interrupt())
}

// ParseDocs is Parse of stages that come as documents.
func (p *Parser) ParseDocs(stages []bson.Doc, o Options) (*Pipeline, error) {
	vs := make([]bson.Value, len(stages))
	for i, s := range stages {
		vs[i] = s.Value()
	}
	return p.Parse(bson.ArrayOf(vs...), o)
}

func (p *parsing) pipeline(stages bson.Value) (*Pipeline, error) {
	if p.depth > MaxDepth {
		return nil, mongoerr.New(mongoerr.MaxSubPipelineDepthExceeded, "Maximum number of nested sub-pipelines exceeded. Limit is %d", MaxDepth)
	}
	n := stages.Doc().Count()
	if n > MaxStages {
		return nil, mongoerr.New(7749501, "Pipeline length must be no longer than %d stages", MaxStages)
	}
	out := &Pipeline{NS: p.NS}
	var rows []*Row
	for it := stages.Doc().Iter(); it.Next(); p.at++ {
		parsed, row, err := p.stage(it.Value())
		if err != nil {
			return nil, err
		}
		out.Stages = append(out.Stages, parsed...)
		rows = append(rows, row)
	}
	if len(out.Stages) > MaxStages {
		return nil, mongoerr.New(7749501, "Pipeline length must be no longer than %d stages", MaxStages)
	}
	empty := emptyMatches(stages)
	if err := p.checkPositions(rows, empty); err != nil {
		return nil, err
	}
	if empty < len(out.Stages) {
		if _, near := out.Stages[empty].(*GeoNear); near {
			out.Stages = out.Stages[empty:]
		}
	}
	if err := out.checkStream(); err != nil {
		return nil, err
	}
	return out, out.checkDetails()
}

func (p *parsing) stage(v bson.Value) ([]Stage, *Row, error) {
	if v.Type != bson.TypeObject {
		return nil, nil, mongoerr.New(mongoerr.TypeMismatch, "Each element of the 'pipeline' array must be an object")
	}
	if v.Doc().Count() != 1 {
		return nil, nil, mongoerr.New(40323, "A pipeline stage specification object must contain exactly one field.")
	}
	name := v.Doc().FirstKey()
	row := p.table[name]
	if row == nil {
		return nil, nil, mongoerr.New(40324, "Unrecognized pipeline stage name: '%s'", name)
	}
	if err := p.allowed(row); err != nil {
		return nil, nil, err
	}
	p.name = name
	stages, err := row.parse(p, v.Doc().Index(0))
	if err == nil && p.facet && row.noFacet && !(p.inside == "$lookup" && row.noLookup) && !(p.inside == "$unionWith" && row.noUnion) {
		err = mongoerr.New(40600, "%s is not allowed to be used within a $facet stage", row.Name)
	}
	return stages, row, err
}

// allowed refuses stages that may not stand in the stage around. What may not stand in a $facet is refused only when the stage
// itself is in order, as in MongoDB.
func (p *parsing) allowed(row *Row) error {
	switch {
	case isFusion(row.Name) && p.at > 0:
		return mongoerr.New(10170100, "%s must be the first stage in the pipeline", row.Name)
	case p.Update && !updateStage(row.Name):
		return notInUpdate(row.Name)
	case p.View && row.last && !p.facet && p.inside != "$lookup" && p.inside != "$unionWith":
		return mongoerr.New(mongoerr.OptionNotSupportedOnView, "The aggregation stage %s in location %d of the pipeline cannot be used in a view definition because it writes to disk", row.Name, p.at)
	case p.inside == "$lookup" && row.noLookup:
		return mongoerr.New(51047, "%s is not allowed within a $lookup's sub-pipeline", row.Name)
	case p.inside == "$unionWith" && row.noUnion:
		return mongoerr.New(31441, "%s is not allowed within a $unionWith's sub-pipeline", row.Name)
	}
	return nil
}

func notInUpdate(name string) error {
	return mongoerr.New(mongoerr.InvalidOptions, "%s is not allowed to be used within an update", name)
}

func updateStage(name string) bool {
	switch name {
	case "$addFields", "$set", "$project", "$unset", "$replaceRoot", "$replaceWith":
		return true
	}
	return false
}

// emptyMatches is how many $match stages without a condition stand at the front. They are dropped before $geoNear is held to
// its place.
func emptyMatches(stages bson.Value) int {
	n := 0
	for it := stages.Doc().Iter(); it.Next(); n++ {
		spec := it.Value().Doc().Lookup("$match")
		if spec.Type != bson.TypeObject || !spec.Doc().IsEmpty() {
			break
		}
	}
	return n
}

// checkPositions looks at where the stages stand. Each stage given is one row, whatever it was parsed into; the first empty
// of them do nothing.
func (p *parsing) checkPositions(rows []*Row, empty int) error {
	if len(rows) > 0 && p.NS.Coll == "" && p.inside == "" && !rows[0].brings && rows[0].Name != "$changeStream" {
		return needsCollection(rows[0].Name)
	}
	for i, row := range rows {
		switch {
		case row.collectionless && i == 0 && p.NS.Coll != "":
			if row.Name == "$documents" {
				return mongoerr.New(mongoerr.InvalidNamespace, "'$documents' can only be run with {aggregate: 1}")
			}
			return mongoerr.New(mongoerr.InvalidNamespace, "%s must be run against the database with {aggregate: 1}", shown(row.Name))
		case row.Name == "$geoNear":
			if i > empty {
				return mongoerr.New(40603, "$geoNear was not the first stage in the pipeline")
			}
		case row.first && i > 0:
			return notFirst(row.Name)
		case row.last && i < len(rows)-1:
			return mongoerr.New(40601, "%s can only be the final stage in the pipeline", row.Name)
		}
	}
	if len(rows) == 0 && p.NS.Coll == "" && p.inside == "" {
		return needsCollection("the pipeline")
	}
	return nil
}

func notFirst(name string) error {
	return mongoerr.New(40602, "%s is only valid as the first stage in a pipeline", name)
}

func needsCollection(name string) error {
	return mongoerr.New(mongoerr.InvalidNamespace, "{aggregate: 1} is not valid for '%s'; a collection is required.", name)
}

func shown(name string) string {
	if name == "$documents" {
		return "'$documents'"
	}
	return name
}

// sub parses a pipeline inside of the stage named.
func (p *parsing) sub(inside string, stages bson.Value, ns namespace.NS, scope *expr.Scope) (*Pipeline, error) {
	return (&parsing{
		Parser:  p.Parser,
		Options: Options{NS: ns, Scope: scope, View: p.View, Watches: p.Watches},
		depth:   p.depth + 1,
		inside:  inside,
		facet:   p.facet || inside == "$facet",
	}).pipeline(stages)
}

func (p *parsing) filter(d bson.Doc, allow match.Feature) (*match.Filter, error) {
	return p.Filters.Parse(d, match.Options{Collation: p.Collation, Exprs: p.Exprs, Scope: p.Scope, Allow: allow})
}

func (p *parsing) projection(d bson.Doc, mode projection.Mode) (*projection.Projection, error) {
	return p.Projections.Parse(d, projection.Options{Mode: mode, Collation: p.Collation, Exprs: p.Exprs, Scope: p.Scope})
}

func one(s Stage) []Stage { return []Stage{s} }
