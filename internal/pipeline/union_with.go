package pipeline

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

// UnionWith is $unionWith.
type UnionWith struct {
	written
	// From has no Coll when the pipeline brings its own documents.
	From     namespace.NS
	Pipeline *Pipeline
}

func parseUnionWith(p *parsing, arg bson.Value) ([]Stage, error) {
	u := &UnionWith{written: written{"$unionWith", arg}, From: namespace.NS{DB: p.NS.DB}}
	sub := bson.Missing
	switch arg.Type {
	case bson.TypeString:
		u.From.Coll = arg.Str()
		if err := u.From.Check(); err != nil {
			return nil, err
		}
	case bson.TypeObject:
		var coll, db bson.Value
		err := readStrict("$unionWith", arg.Doc(), want{name: "coll", to: &coll, types: aString}, want{name: "pipeline", to: &sub, types: anArray},
			want{name: "db", to: &db, types: aString})
		if err != nil {
			return nil, err
		}
		if coll.IsMissing() && !startsWithDocuments(sub) {
			return nil, mongoerr.New(mongoerr.FailedToParse, "$unionWith stage without explicit collection must have a pipeline with $documents as first stage")
		}
		if !coll.IsMissing() {
			u.From.Coll = coll.Str()
			if err := u.From.Check(); err != nil {
				return nil, err
			}
		}
	default:
		return nil, mongoerr.New(mongoerr.FailedToParse, "the $unionWith stage specification must be an object or string, but found %s", arg.Type)
	}
	if sub.IsMissing() {
		sub = bson.EmptyArr
	}
	var err error
	u.Pipeline, err = p.sub("$unionWith", sub, u.From, p.Scope)
	return one(u), err
}

func startsWithDocuments(stages bson.Value) bool {
	if stages.Type != bson.TypeArray {
		return false
	}
	first := stages.Doc().Index(0)
	return first.Type == bson.TypeObject && first.Doc().FirstKey() == "$documents"
}

func (u *UnionWith) needs(d *Dependencies) bool { return d.everything() }
