package command

import (
	"math"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/ttl"
)

const (
	// neverSamples and neverExamined are what "never" is about when nothing is asked for.
	neverSamples  = 5
	neverExamined = 1_000_000
	// maxNeverSamples is how many _ids each reason may come with.
	maxNeverSamples = 100
)

// neverQuestion is "never": which documents do not expire, and why not.
type neverQuestion struct {
	samples  int
	examined int64
}

// readNever reads "never"; nil when it is not there.
func readNever(a *Args) *neverQuestion {
	asked := a.sub("never")
	if asked == nil {
		return nil
	}
	q := &neverQuestion{neverSamples, neverExamined}
	if n, ok := asked.IntIn("samples", 0, maxNeverSamples); ok {
		q.samples = int(n)
	}
	if n, ok := asked.IntIn("examine", 0, math.MaxInt64); ok {
		q.examined = n
	}
	if q.examined == 0 {
		q.examined = math.MaxInt64
	}
	if err := asked.Done(); err != nil {
		a.Fail(err)
	}
	return q
}

func (op *Op) neverExpiring(r *storage.Reader, q neverQuestion) (bson.Doc, error) {
	n, err := ttl.NeverExpiring(r, q.examined, q.samples)
	if err != nil {
		return nil, err
	}
	op.Running.Stats.DocsExamined.Add(n.Examined)
	b := bson.Build().String("ns", r.Catalog().NS.String()).Date("now", op.Now).Int64("docsExamined", n.Examined).
		Bool("exact", n.All).Int64("never", n.Count).Array("reasons")
	for i := range n.Reasons {
		reason := &n.Reasons[i]
		b.Object(bson.IndexKey(i)).Int64("count", reason.Count).Array("rules")
		for j, rule := range reason.Rules {
			b.Object(bson.IndexKey(j))
			appendRuleName(b, rule.Index, rule.Field != "_id")
			b.String("field", rule.Field).String("code", rule.Code)
			if rule.Type != "" {
				b.String("type", rule.Type)
			}
			b.String("reason", rule.Why).End()
		}
		b.End().Value("samples", bson.ArrayOf(reason.Samples...)).End()
	}
	b.End()
	if n.Other > 0 {
		b.Int64("otherReasons", n.Other)
	}
	return b.Doc(), nil
}
