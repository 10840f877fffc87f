package expr

import (
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func metaOperators() []Operator {
	return []Operator{
		{Name: "$meta", Since: "2.6", Doc: "What the server knows of a document beside its fields.", Shape: special(parseMeta), Volatile: true},
	}
}

func metaKinds() []string {
	return []string{"textScore", "randVal", "searchScore", "searchHighlights", "geoNearDistance", "geoNearPoint", "recordId", "indexKey",
		"sortKey", "searchScoreDetails", "searchSequenceToken", "timeseriesBucketMinTime", "timeseriesBucketMaxTime", "vectorSearchScore",
		"score", "scoreDetails", "stream", "searchRootDocumentId"}
}

// CheckMeta is the kind of metadata that the argument of $meta names.
func CheckMeta(v bson.Value) (string, error) {
	if v.Type != bson.TypeString {
		return "", mongoerr.New(17307, "$meta only supports string arguments")
	}
	if !slices.Contains(metaKinds(), v.Str()) {
		return "", mongoerr.New(17308, "Unsupported $meta field: %s", v.Str())
	}
	return v.Str(), nil
}

// CheckStableMeta refuses the kinds of metadata that are outside of the first version of the stable API.
func CheckStableMeta(kinds ...string) error {
	for _, kind := range kinds {
		switch kind {
		case "textScore", "searchScore", "searchScoreDetails", "searchRootDocumentId", "searchHighlights", "searchSequenceToken", "indexKey", "score", "scoreDetails", "stream":
			return mongoerr.New(mongoerr.APIStrictError, "Provided apiStrict is true with an unstable meta field \"%s\"", kind)
		}
	}
	return nil
}

func parseMeta(p *Parser, op *Operator, arg bson.Value, _ *Scope) (Expr, error) {
	kind, err := CheckMeta(arg)
	if err != nil {
		return nil, err
	}
	if p.opts.Stable {
		if err := CheckStableMeta(kind); err != nil {
			return nil, err
		}
	}
	return &meta{kind}, nil
}

// meta reads a kind of metadata.
type meta struct{ kind string }

func (m *meta) Eval(env *Env) (bson.Value, error) {
	if env.Meta == nil {
		return bson.Missing, nil
	}
	return env.Meta(m.kind), nil
}

func (m *meta) Value() bson.Value          { return bson.Build().String("$meta", m.kind).Doc().Value() }
func (m *meta) children() []Expr           { return nil }
func (m *meta) fold(*Parser) (Expr, error) { return m, nil }
