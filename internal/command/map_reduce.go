package command

import (
	"context"
	"math"
	"strings"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/javascript"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/pipeline"
	"github.com/ebbdb/ebb/internal/query"
)

func mapReduceCommands() []*Command {
	return []*Command{{Name: "mapReduce", Aliases: []string{"mapreduce"}, Needs: Needs{OnCollection: actions(privilege.Find), Also: needsMapReduce}, Doc: "Maps documents to keys and values, and reduces those of each key.",
		ReadConcern: true, WriteConcern: true, Written: []string{"map", "reduce", "finalize", "scope"}, Run: mapReduce, Explain: explainMapReduce}}
}

// mapReduceRequest is a mapReduce as the client asked for it.
type mapReduceRequest struct {
	query.Aggregate
	call     *query.Call
	reduce   string
	finalize string
	out      mapReduceOut
}

// warnEvery is how many mapReduces there are to a warning in the log.
const warnEvery = 128

func mapReduce(op *Op) (bson.Doc, error) {
	if op.mapReduces.Add(1)%warnEvery == 1 {
		op.Log.Warn("The map reduce command is deprecated. For more information, see https://docs.mongodb.com/manual/core/map-reduce/.")
	}
	r, err := op.parseMapReduce(op.Args)
	if err != nil {
		return nil, err
	}
	if coll := op.Query.Store.Catalog().Collection(r.NS); coll != nil && coll.IsView() {
		return nil, notOnView()
	}
	running, err := op.Query.Aggregate(op.Ctx, r.Aggregate, r.call)
	defer op.examined(r.call)
	if err != nil {
		return nil, err
	}
	defer running.Close()
	results := bson.Build().Array("results")
	for n, size := 0, 0; ; n++ {
		d, err := running.Next(op.Ctx)
		if err != nil {
			op.during = "Executor error during MapReduce command on namespace: " + r.NS.String()
			return nil, err
		}
		if d == nil {
			break
		}
		if size += len(d) + 16; size > bson.MaxDocSize {
			return nil, mongoerr.New(mongoerr.BSONObjectTooLarge, "the results of mapReduce are larger than %d bytes and do not fit into a reply", bson.MaxDocSize)
		}
		results.Document(bson.IndexKey(n), d)
	}
	if r.out.mode != "inline" {
		return r.out.reply(), nil
	}
	return results.End().Doc(), nil
}

func explainMapReduce(op *Op, v query.Verbosity) (*query.Explanation, error) {
	r, err := op.parseMapReduce(op.Args)
	if err != nil {
		return nil, err
	}
	if coll := op.Query.Store.Catalog().Collection(r.NS); coll != nil && coll.IsView() {
		return nil, notOnView()
	}
	defer op.examined(r.call)
	return op.Query.ExplainAggregate(op.Ctx, r.Aggregate, r.call, v)
}

func notOnView() error {
	return mongoerr.New(mongoerr.CommandNotSupportedOnView, "mapReduce on a view is not supported")
}

func (op *Op) parseMapReduce(a *Args) (r mapReduceRequest, err error) {
	r = mapReduceRequest{call: op.pipe()}
	if op.Query.Scripts == nil {
		return r, mongoerr.New(31246, "Cannot run server-side javascript without the javascript engine enabled")
	}
	r.NS = a.Collection(op.DB)
	r.ReadConcern = op.ReadConcern.Level
	a.Required("map", "reduce", "out")
	m := &pipeline.MapReduce{Map: op.script(a, "map"), Reduce: op.script(a, "reduce")}
	r.MapReduce = m
	if v := a.Value("finalize"); !v.IsNullish() {
		if f := op.script(a, "finalize"); f != nil {
			r.finalize = f.Source()
		}
	}
	r.out = readMapReduceOut(a)
	r.call.Globals = a.scope()
	r.call.Bypass = a.SafeBool("bypassDocumentValidation", false)
	collate(a, a.Doc("collation"), r.call)
	r.Pipeline = a.mapped()
	a.Bool("verbose", false)
	a.Bool("jsMode", false)
	if err := a.Done(); err != nil {
		return r, err
	}
	if err := readable(r.NS); err != nil {
		return r, err
	}
	r.reduce = m.Reduce.Source()
	m.Then, err = r.then(op.DB)
	return r, err
}

// script reads a function.
func (op *Op) script(a *Args, key string) *javascript.Function {
	v := a.Value(key)
	if v.Type != bson.TypeString && v.Type != bson.TypeCode {
		a.Fail(mongoerr.New(mongoerr.BadValue, "'%s' must be of string or code type", key))
		return nil
	}
	f, err := op.Query.Scripts.Compile(strings.Clone(v.Str()), func() error {
		if op.Ctx.Err() == nil {
			return nil
		}
		return context.Cause(op.Ctx)
	})
	if err != nil {
		a.Fail(err)
	}
	return f
}

func (a *Args) scope() bson.Doc {
	v := a.Value("scope")
	switch {
	case v.IsMissing():
		return nil
	case v.Type != bson.TypeObject:
		a.Fail(mongoerr.New(mongoerr.BadValue, "'scope' must be an object"))
		return nil
	}
	return v.Doc().Clone()
}

// mapped are the stages that choose what is mapped.
func (a *Args) mapped() bson.Value {
	var stages []bson.Value
	stage := func(name string, v bson.Value) { stages = append(stages, bson.Build().Value(name, v).Doc().Value()) }
	if q := a.Doc("query"); q != nil {
		stage("$match", q.Value())
	}
	if s := a.Doc("sort"); s != nil {
		if s.IsEmpty() {
			a.Fail(mongoerr.New(15976, "The mapReduce sort option must have at least one sort key"))
		}
		stage("$sort", s.Value())
	}
	if n, ok := a.IntIn("limit", math.MinInt64, math.MaxInt64); ok && n != 0 {
		if n < 0 {
			a.Fail(mongoerr.New(15958, "The limit specified to mapReduce must be positive"))
		}
		stage("$limit", bson.Int64(n))
	}
	return bson.ArrayOf(stages...)
}

// mapReduceOut is where results go: mode is inline, replace, merge or reduce.
type mapReduceOut struct {
	mode, db, coll string
}

func readMapReduceOut(a *Args) (o mapReduceOut) {
	v := a.Value("out")
	switch v.Type {
	case bson.TypeString:
		return mapReduceOut{mode: "replace", coll: strings.Clone(v.Str())}
	case bson.TypeObject:
		if err := o.read(v.Doc()); err != nil {
			a.Fail(err)
		}
		return o
	}
	a.Fail(mongoerr.New(mongoerr.BadValue, "'out' must be either a string or an object"))
	return o
}

func (o *mapReduceOut) read(d bson.Doc) error {
	if inline := d.Lookup("inline"); !inline.IsMissing() {
		switch {
		case d.Count() != 1:
			return mongoerr.New(mongoerr.InvalidOptions, "'inline' must be specified alone")
		case !inline.IsNumber() || inline.AsDouble() != 1:
			return mongoerr.New(mongoerr.BadValue, "'inline' takes only numeric '1'")
		}
		o.mode = "inline"
		return nil
	}
	fields := 1
	for _, key := range [...]string{"sharded", "nonAtomic"} {
		switch v := d.Lookup(key); {
		case v.IsMissing():
			continue
		case v.Type != bson.TypeBool:
			return mongoerr.New(mongoerr.BadValue, "%s field value must be boolean", key)
		case !v.Bool():
			return mongoerr.New(mongoerr.BadValue, "%s field value must be true", key)
		}
		fields++
	}
	if err := o.readTarget(d); err != nil {
		return err
	}
	if db := d.Lookup("db"); !db.IsMissing() {
		if db.Type != bson.TypeString {
			return mongoerr.New(mongoerr.BadValue, "db field value must be string")
		}
		if o.db = strings.Clone(db.Str()); o.db == "admin" || o.db == "config" || o.db == "local" {
			return mongoerr.New(mongoerr.CommandNotSupported, "cannot target internal database as output")
		}
		fields++
	}
	switch {
	case d.Count() != fields:
		return mongoerr.New(mongoerr.BadValue, "'out' supports only output type with collection name, optional 'sharded' and optional 'db'")
	case !d.Lookup("sharded").IsMissing() && o.mode == "replace":
		return invalidOptions("Combination of 'out.sharded' and 'replace' output mode is not supported.")
	case !d.Lookup("sharded").IsMissing():
		return invalidOptions("Cannot use mapReduce to create a new sharded collection. Please create and shard the target collection before proceeding.")
	}
	return nil
}

func (o *mapReduceOut) readTarget(d bson.Doc) error {
	for _, mode := range [...]string{"replace", "merge", "reduce"} {
		v := d.Lookup(mode)
		if v.IsMissing() {
			continue
		}
		if v.Type != bson.TypeString {
			return mongoerr.New(mongoerr.BadValue, "'%s' supports only string consisting of output collection name", mode)
		}
		o.mode, o.coll = mode, strings.Clone(v.Str())
		return nil
	}
	return mongoerr.New(mongoerr.BadValue, "'out' requires 'replace', 'merge' or 'reduce'")
}

// reply says where the results are.
func (o *mapReduceOut) reply() bson.Doc {
	if o.db == "" {
		return bson.Build().String("result", o.coll).Doc()
	}
	return bson.Build().Object("result").String("db", o.db).String("collection", o.coll).End().Doc()
}

// then are the stages that finish the results and put them where they belong.
func (r *mapReduceRequest) then(db string) (bson.Value, error) {
	var stages []bson.Value
	if r.finalize != "" {
		stages = append(stages, finalized(r.finalize))
	}
	if r.out.mode == "inline" {
		return bson.ArrayOf(stages...), nil
	}
	to := namespace.NS{DB: db, Coll: r.out.coll}
	if r.out.db != "" {
		to.DB = r.out.db
	}
	if err := readable(to); err != nil {
		return bson.Missing, err
	}
	target := bson.Build().String("db", to.DB).String("coll", to.Coll).Doc().Value()
	switch r.out.mode {
	case "replace":
		stages = append(stages, bson.Build().Value("$out", target).Doc().Value())
	case "merge":
		stages = append(stages, merged(target, bson.String("replace")))
	case "reduce":
		again := []bson.Value{functionOf(r.reduce, bson.String("$_id"), bson.ArrayOf(bson.String("$value"), bson.String("$$new.value")))}
		if r.finalize != "" {
			again = append(again, finalized(r.finalize))
		}
		stages = append(stages, merged(target, bson.ArrayOf(again...)))
	}
	return bson.ArrayOf(stages...), nil
}

func finalized(source string) bson.Value {
	return functionOf(source, bson.String("$_id"), bson.String("$value"))
}

// functionOf is the stage that makes a function's result the value.
func functionOf(source string, args ...bson.Value) bson.Value {
	return bson.Build().Object("$project").Object("value").Object("$function").String("body", source).
		Value("args", bson.ArrayOf(args...)).String("lang", "js").End().End().End().Doc().Value()
}

func merged(target, whenMatched bson.Value) bson.Value {
	return bson.Build().Object("$merge").Value("into", target).Value("whenMatched", whenMatched).String("whenNotMatched", "insert").End().Doc().Value()
}
