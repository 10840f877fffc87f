package query

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/pipeline"
)

// pipeline is an array of stages whose results do not depend on the order in which documents are read, but for that of
// their own.
func (w world) pipeline() string {
	var stages []string
	single := true // each document of the collection is there at most once
	for range 1 + w.r.IntN(5) {
		stage := w.stage(&single)
		stages = append(stages, stage)
		if strings.Contains(stage, "{$group") || strings.Contains(stage, "{$count") {
			if w.chance(60) {
				stages = append(stages, w.pick("{$match: {_id: {"+w.pick("$gte", "$lt", "$eq", "$ne")+": "+w.scalar()+"}}}", "{$match: {_id: {$in: ["+w.literal()+", "+w.literal()+"]}}}", "{$match: {'_id.x': {$gte: "+w.scalar()+"}, n: {$gt: 1}}}"))
			}
			break
		}
	}
	return "[" + strings.Join(stages, ", ") + "]"
}

// literal is a scalar that $in does not take for a pattern: of strings that a collation calls equal a group may have any for
// its _id, and patterns tell them apart.
func (w world) literal() string {
	for {
		if v := w.scalar(); !strings.HasPrefix(v, "/") {
			return v
		}
	}
}

func (w world) stage(single *bool) string {
	switch w.r.IntN(14) {
	case 0, 1, 2, 3:
		return "{$match: " + w.filter(1) + "}"
	case 4:
		return "{$project: " + w.pick("{a: 1, 'n.x': 1}", "{b: '$a', n: 1}", "{a: 1, b: 1, c: {$type: '$d'}}", "{'n.x': 0}", "{a: 0, 'n.y': 0}", "{a: '$b', b: '$a', 'n.x': 1}") + "}"
	case 5:
		return "{$addFields: " + w.pick("{b: '$a'}", "{'n.x': 1}", "{c: '$n.x', a: '$b'}", "{a: '$nothing'}", "{d: {$type: '$a'}}") + "}"
	case 6:
		return "{$unset: " + w.pick("'a'", "['n.x', 'b']", "'n'") + "}"
	case 7:
		*single = false
		path := w.pick("$a", "$b", "$n", "$n.x")
		return w.pick("{$unwind: '"+path+"'}", "{$unwind: {path: '"+path+"', preserveNullAndEmptyArrays: true}}", "{$unwind: {path: '"+path+"', includeArrayIndex: 'c'}}")
	case 8:
		return "{$lookup: {from: 'c', localField: '" + w.path() + "', foreignField: '" + w.path() + "', as: '" + w.pick("c", "n.x", "j") +
			"', pipeline: [{$sort: {_id: 1}}, {$project: {_id: 1}}]}}"
	case 9:
		*single = false
		return "{$unionWith: {coll: 'c', pipeline: [{$match: " + w.filter(0) + "}]}}"
	case 10:
		if *single {
			return w.pick("{$sort: {_id: 1}}, {$limit: 5}", "{$sort: {a: -1, _id: 1}}, {$skip: 2}", "{$sort: {b: 1, c: 1, _id: 1}}, {$project: {a: 1, b: 1}}, {$limit: 7}")
		}
		return "{$sort: {a: 1}}"
	case 11:
		return "{$group: {_id: " + w.pick("'$a'", "'$n.x'", "null", "'$_id'") + "}}"
	case 12:
		if *single && w.chance(60) {
			if w.chance(50) {
				by, other := w.pick("a", "b", "c", "n.x"), w.pick("d", "n.y")
				return "{$sort: {'" + by + "': " + w.pick("1", "-1") + ", '" + other + "': 1}}, {$group: {_id: '$" + by + "'" + w.pick("", ", f: {$first: '$"+by+"'}", ", f: {$last: '$"+by+"'}") + "}}"
			}
			return w.pick("{$sort: {a: 1, b: 1, _id: 1}}, {$group: {_id: '$a', f: {$first: '$b'}}}", "{$sort: {a: -1, b: 1, _id: 1}}, {$group: {_id: '$a', l: {$last: '$b'}}}",
				"{$sort: {b: 1, a: 1, _id: 1}}, {$group: {_id: '$b', f: {$first: '$$ROOT'}}}")
		}
		return "{$group: {_id: {x: '$a', y: '$b'}, n: {$sum: 1}}}"
	default:
		return "{$count: 'n'}"
	}
}

// TestRandomPipelines tries random pipelines: rewritten, planned and hinted they give what the stages do one after the other
// on all documents.
func TestRandomPipelines(t *testing.T) {
	tryWorlds(t, world{keyless: true}, (*tried).tryPipeline)
}

func (x *tried) tryPipeline() bool {
	text := x.world.pipeline()
	want, err := x.runStages(text)
	if err != nil {
		return false
	}
	hints := []bson.Value{bson.Missing, natural()}
	for _, d := range x.coll.Indexes {
		if !d.Sparse && d.PartialFilter == nil && !d.Hidden {
			hints = append(hints, bson.String(d.Name))
		}
	}
	for _, hint := range hints {
		call := x.call()
		r, err := x.engine.Aggregate(context.Background(), Aggregate{NS: x.ns, Pipeline: bson.MustParse(text), Hint: hint}, call)
		var got []string
		if err == nil {
			got, err = x.drain(r)
		}
		switch {
		case err != nil && !hint.IsMissing() && acceptable(err):
		case err != nil:
			x.t.Errorf("seed %d: %s with hint %s: %v\nin\n%s", x.seed, text, hint, err, x.log.String())
		case !slices.Equal(got, want):
			x.t.Errorf("seed %d: %s with hint %s:\n  %q\nshould not be there, but\n  %q\nin\n%s", x.seed, text, hint, missingIn(got, want), missingIn(want, got), x.log.String())
		}
	}
	return true
}

// runStages runs the stages without any of them being rewritten for the others.
func (x *tried) runStages(text string) ([]string, error) {
	ctx, call := context.Background(), x.call()
	lang, err := x.engine.language(ctx, call, x.coll)
	x.must(err)
	pl := &pipeline.Pipeline{NS: x.ns}
	for it := bson.MustParse(text).Doc().Iter(); it.Next(); {
		one, err := x.engine.pipelineParser(lang).Parse(bson.ArrayOf(it.Value()), pipeline.Options{NS: x.ns, Scope: lang.scope})
		if err != nil {
			return nil, err
		}
		pl.Stages = append(pl.Stages, one.Stages...)
	}
	r := x.engine.newRunning(x.ns.DB, call, lang, &views{store: x.engine.Store, now: call.Now})
	if r.Iterator, err = x.engine.openPipeline(ctx, r.op, pl, natural(), r.views, call); err != nil {
		r.views.release()
		return nil, err
	}
	return x.drain(r)
}

// missingIn is what is in a more often than in b; both are sorted.
func missingIn(a, b []string) (out []string) {
	for _, s := range a {
		if len(b) > 0 && b[0] == s {
			b = b[1:]
			continue
		}
		for len(b) > 0 && b[0] < s {
			b = b[1:]
		}
		if len(b) > 0 && b[0] == s {
			b = b[1:]
			continue
		}
		out = append(out, s)
	}
	return out
}

// drain is what r gives, sorted. Of equal values of a group it does not matter which stands for them.
func (x *tried) drain(r *Running) (out []string, err error) {
	err = r.All(context.Background(), func(d bson.Doc) error {
		var fields []string
		for it := d.Iter(); it.Next(); {
			fields = append(fields, fmt.Sprintf("%s: %x", it.Key(), r.lang.canonical(nil, it.Value())))
		}
		slices.Sort(fields)
		out = append(out, strings.Join(fields, ", "))
		if x.world.chance(5) {
			r.Park()
		}
		return nil
	})
	slices.Sort(out)
	return out, err
}
