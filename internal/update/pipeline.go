package update

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/projection"
)

// MaxStages is the largest number of stages of a pipeline.
const MaxStages = 1000

// stage is one stage of a pipeline update: a projection, or a new root.
type stage struct {
	name    string
	project *projection.Projection
	newRoot expr.Expr
}

func (p *Parser) parsePipeline(u bson.Value, o Options) (*Update, error) {
	if len(o.ArrayFilters) > 0 {
		return nil, mongoerr.New(mongoerr.FailedToParse, "arrayFilters may not be specified for pipeline-syle updates")
	}
	out := &Update{kind: Pipeline, source: u}
	for it := u.Doc().Iter(); it.Next(); {
		v := it.Value()
		switch {
		case v.Type != bson.TypeObject:
			return nil, mongoerr.New(mongoerr.TypeMismatch, "Each element of the 'pipeline' array must be an object")
		case v.Doc().Count() != 1:
			return nil, mongoerr.New(40323, "A pipeline stage specification object must contain exactly one field.")
		case len(out.stages) == MaxStages:
			return nil, mongoerr.New(mongoerr.FailedToParse, "Pipeline length must be no longer than %d stages.", MaxStages)
		}
		s, err := p.parseStage(v.Doc().FirstKey(), v.Doc().Index(0), o)
		if err != nil {
			return nil, err
		}
		out.stages = append(out.stages, s)
	}
	return out, nil
}

func (p *Parser) parseStage(name string, v bson.Value, o Options) (s stage, err error) {
	s.name = name
	switch name {
	case "$set", "$addFields":
		s.project, err = p.parseProjection(name, v, projection.AddFields, o)
	case "$project":
		s.project, err = p.parseProjection(name, v, projection.Project, o)
	case "$unset":
		var paths []string
		if paths, err = projection.UnsetPaths(v); err == nil {
			s.project, err = p.projections.Unset(paths)
			err = invalidStage(name, err)
		}
	case "$replaceRoot":
		if v, err = newRootOf(v); err == nil {
			s.newRoot, err = o.Exprs.Parse(v, o.Scope)
		}
	case "$replaceWith":
		s.newRoot, err = o.Exprs.Parse(v, o.Scope)
	default:
		if o.IsStage != nil && o.IsStage(name) {
			return s, mongoerr.New(mongoerr.InvalidOptions, "%s is not allowed to be used within an update", name)
		}
		return s, mongoerr.New(40324, "Unrecognized pipeline stage name: '%s'", name)
	}
	return s, err
}

func (p *Parser) parseProjection(name string, v bson.Value, mode projection.Mode, o Options) (*projection.Projection, error) {
	if v.Type != bson.TypeObject {
		if mode == projection.AddFields {
			return nil, mongoerr.New(40272, "%s specification stage must be an object, got %s", name, v.Type)
		}
		return nil, mongoerr.New(15969, "$project specification must be an object")
	}
	out, err := p.projections.Parse(v.Doc(), projection.Options{Mode: mode, Collation: o.Collation, Exprs: o.Exprs, Scope: o.Scope})
	return out, invalidStage(name, err)
}

func invalidStage(name string, err error) error {
	if err == nil {
		return nil
	}
	return mongoerr.Prefix("Invalid "+name+" :: caused by :: ", err)
}

// newRootOf is the newRoot of a $replaceRoot.
func newRootOf(v bson.Value) (bson.Value, error) {
	if v.Type != bson.TypeObject {
		return v, mongoerr.New(40229, "expected an object as specification for $replaceRoot stage, got %s", v.Type)
	}
	root := bson.Missing
	for it := v.Doc().Iter(); it.Next(); {
		if it.Key() != "newRoot" {
			return v, mongoerr.New(40415, "BSON field '$replaceRoot.%s' is an unknown field.", it.Key())
		}
		root = it.Value()
	}
	if root.IsMissing() {
		return v, mongoerr.New(40414, "BSON field '$replaceRoot.newRoot' is missing but a required field")
	}
	return root, nil
}

// runPipeline makes the document that the stages make of doc. Between stages it lies in two buffers by turns.
func (u *Update) runPipeline(dst []byte, doc bson.Doc, args Args) ([]byte, bool, error) {
	current := doc
	for i := range u.stages {
		buf := u.buffers[i%2][:0]
		next, err := u.stages[i].apply(buf, current, args.Env)
		if err != nil {
			return dst, false, err
		}
		u.buffers[i%2], current = next, next
	}
	return u.replaceWith(dst, doc, current, args)
}

func (s *stage) apply(buf []byte, d bson.Doc, env *expr.Env) (bson.Doc, error) {
	if s.project != nil {
		return s.project.Apply(buf, d, env, nil)
	}
	env.Reset()
	env.Root = d
	v, err := s.newRoot.Eval(env)
	if err != nil {
		return nil, err
	}
	if v.Type != bson.TypeObject {
		return nil, mongoerr.New(40228, "'%s' expression  must evaluate to an object, but resulting value was: %s. Type of resulting "+
			"value: '%s'. Input document: %s", rootName(s.name), v.Computed(), v.Type, d.Value().Computed())
	}
	return append(buf, v.Data...), nil
}

func rootName(stage string) string {
	if stage == "$replaceWith" {
		return "replacement document"
	}
	return "newRoot"
}
