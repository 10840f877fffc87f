package command

import (
	"bytes"
	"context"
	"math"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/query"
	"github.com/ebbdb/ebb/internal/storage/indexddl"
	"github.com/ebbdb/ebb/internal/storage/ttlchange"
)

func collModCommands() []*Command {
	return []*Command{{Name: "collMod", Needs: Needs{Also: needsCollMod}, Doc: "Changes the options of a collection, an index or a view.", WriteConcern: true, ChangesTTL: true, Run: collMod}}
}

// collModRequest is a collMod as the client asked for it.
type collModRequest struct {
	ns        namespace.NS
	index     *indexChange
	validator bson.Value
	words     options // validationLevel and validationAction
	viewOn    string
	hasViewOn bool
	pipeline  bson.Value
	expire    bson.Value
	images    bson.Value
	// cappedSize and cappedMax are new bounds, Missing when not asked for.
	cappedSize, cappedMax bson.Value
	timeseries            *timeseriesFields // nil when not asked for
	// mixed says that something is said about measurements whose fields are of several types: Ebb keeps no buckets in which that could matter.
	mixed  bool
	legacy bool
	pause  bson.Value // ttlPaused, Missing when not asked for
	events bson.Value // expirationEvents, Missing when not asked for
	dryRun bool
	look   *preview // of a dry run; nil when nothing is asked for
	how    ttlchange.OnHidden
	// changesTTL says that something is asked for that makes a TTL expire, or hide, more or less; and extended that what is Ebb's own
	// is understood.
	changesTTL, extended bool
	// first is the name of the first option that only a collection has.
	first string
}

func collMod(op *Op) (bson.Doc, error) {
	r, err := op.parseCollMod(op.Args)
	if err != nil {
		return nil, err
	}
	if err := readable(r.ns); err != nil {
		return nil, err
	}
	if strings.HasPrefix(r.ns.Coll, bucketsPrefix) {
		return nil, mongoerr.New(mongoerr.InvalidNamespace, "collMod on a time-series collection's underlying buckets collection is not supported.")
	}
	if err := r.checkDryRun(); err != nil {
		return nil, err
	}
	if r.ns.Coll == systemViews && !r.validator.IsMissing() && op.hasViews(r.ns.DB) {
		return nil, op.checkValidator(r.ns, r.validator.Doc(), nil, nil)
	}
	if r.index != nil && r.index.unique {
		if err := op.checkUniqueConversion(r); err != nil {
			return nil, err
		}
	}
	before := op.Query.Store.Catalog().Collection(r.ns)
	reply, err := op.applyCollMod(r)
	if err == nil && op.Replica != nil && !r.dryRun && before != nil && op.leftCommit() == nil {
		if after := op.Query.Store.Catalog().Collection(r.ns); after != nil && bytes.Equal(before.Document(), after.Document()) {
			asked, index := r.kept(after)
			err = op.Query.Store.LogModified(op.patiently(), r.ns, asked, index)
		}
	}
	switch {
	case mongoerr.Is(err, mongoerr.NamespaceNotFound):
		return nil, mongoerr.New(mongoerr.NamespaceNotFound, "ns does not exist: %s", r.ns)
	case mongoerr.Is(err, mongoerr.DuplicateKey):
		return nil, mongoerr.New(mongoerr.CannotConvertIndexToUnique, "Cannot convert the index to unique: %s", mongoerr.From(err).Message)
	case err != nil:
		return nil, err
	}
	return reply, nil
}

// kept is what r asks for where c has it already, which is told as a change is, and what the index that r names has of it: nil where that
// is nothing.
func (r *collModRequest) kept(c *catalog.Collection) (asked, ofIndex bson.Doc) {
	b := bson.Build()
	if r.index != nil && r.index.has("expireAfterSeconds") {
		if d, err := r.index.find(c); err == nil {
			ofIndex = bson.Build().Int64("expireAfterSeconds", int64(d.ExpireAfterSeconds)).Doc()
			b.Object("index").String("name", d.Name).Fields(ofIndex).End()
		}
	}
	if !r.validator.IsMissing() {
		b.Value("validator", r.validator)
	}
	for _, f := range validationWords {
		if word, ok := r.words[f.name]; ok {
			b.Value(f.name, word)
		}
	}
	return b.Doc(), ofIndex
}

// applyCollMod makes the change, or tries it.
func (op *Op) applyCollMod(r *collModRequest) (bson.Doc, error) {
	reply := bson.Build()
	modify := func(c *catalog.Collection) (*catalog.Collection, error) {
		reply = bson.Build()
		return op.modified(op.Ctx, c, r, reply)
	}
	dryRun := func() (indexddl.DryRun, error) {
		return op.Query.DDL.DryRunModify(op.Ctx, r.ns, op.Now, modify)
	}
	if r.dryRun {
		h, err := dryRun()
		if err != nil || !r.changesTTL {
			return bson.EmptyDoc, err
		}
		err = op.appendExpiring(reply, &h, r.how, r.look)
		return reply.Doc(), err
	}
	var done ttlchange.Loosened
	apply := func(seen *catalog.Collection) (err error) {
		done, err = op.Query.DDL.ModifyWith(op.patiently(), r.ns, r.how, func(c *catalog.Collection) (*catalog.Collection, error) {
			if err := unmoved(seen, c); err != nil {
				return nil, err
			}
			return modify(c)
		})
		return err
	}
	var err error
	if r.changesTTL {
		err = op.guarded(r.ns, r.how, dryRun, apply)
	} else {
		err = apply(nil)
	}
	op.noteHidden(reply, done)
	return reply.Doc(), err
}

func (op *Op) parseCollMod(a *Args) (*collModRequest, error) {
	r := &collModRequest{words: options{}}
	r.ns = a.Collection(op.DB)
	if doc := a.Doc("index"); doc != nil {
		r.index = op.parseIndexChange(a, doc)
	}
	r.validator = a.docValue("validator")
	for _, f := range validationWords {
		if word, ok := a.enum(f.name, f.words...); ok {
			r.words[f.name] = bson.String(word)
		}
	}
	if s, ok := a.String("viewOn"); ok {
		r.viewOn, r.hasViewOn = strings.Clone(s), true
	}
	r.pipeline = a.viewPipeline("pipeline")
	r.expire = collModExpire(a)
	r.images = collModImages(a)
	r.cappedSize, r.cappedMax = collModCapped(a)
	if ts := a.sub("timeseries"); ts != nil {
		ts.enum("granularity", "seconds", "minutes", "hours")
		ts.IntIn("bucketMaxSpanSeconds", 1, maxBucketSeconds)
		ts.IntIn("bucketRoundingSeconds", 1, maxBucketSeconds)
		r.timeseries = &timeseriesFields{}
		r.timeseries.readBuckets(ts)
		if err := ts.Done(); err != nil {
			a.Fail(err)
		}
	}
	a.SafeBool("timeseriesBucketsMayHaveMixedSchemaData", false)
	r.mixed = a.Has("timeseriesBucketsMayHaveMixedSchemaData")
	r.dryRun = a.SafeBool("dryRun", false)
	r.look = op.readPreview(a, r.dryRun)
	if r.extended, r.how = !op.APIStrict, op.readOnHidden(a); r.extended {
		if pause := a.SafeBool("ttlPaused", false); a.Has("ttlPaused") {
			r.pause = bson.Bool(pause)
		}
	}
	r.events = op.readExpirationEvents(a)
	r.changesTTL = !r.expire.IsMissing() || r.timeseries != nil || r.index != nil && (r.index.has("expireAfterSeconds") || r.index.has("hideExpired"))
	r.legacy = a.Has("usePowerOf2Sizes") || a.Has("noPadding")
	if r.legacy && op.takesLegacy(r.ns) {
		a.SafeBool("usePowerOf2Sizes", false)
		a.SafeBool("noPadding", false)
	}
	for _, name := range collectionOnly {
		if a.Has(name) && r.first == "" {
			r.first = name
		}
	}
	a.Ignore("isTimeseriesNamespace")
	return r, a.Done()
}

// collectionOnly are the options that a view does not have.
var collectionOnly = [...]string{"index", "validator", "validationLevel", "validationAction", "expireAfterSeconds", "timeseries",
	"changeStreamPreAndPostImages", "cappedSize", "cappedMax", "ttlPaused", "expirationEvents", "timeseriesBucketsMayHaveMixedSchemaData"}

// takesLegacy says whether the flags of old storage engines are taken, and ignored: on collections with a TTL index, of
// which the old manual says so.
func (op *Op) takesLegacy(ns namespace.NS) bool {
	c := op.Query.Store.Catalog().Collection(ns)
	return c != nil && hasTTL(c)
}

// collModExpire reads the TTL of the collection as a whole: a number, or "off".
func collModExpire(a *Args) bson.Value {
	v := a.Value("expireAfterSeconds")
	if !v.IsMissing() && !v.IsNumber() && v.Type != bson.TypeString {
		a.Fail(a.wrongType("expireAfterSeconds", v.Type, []bson.Type{bson.TypeString, bson.TypeInt64, bson.TypeInt32, bson.TypeDecimal, bson.TypeDouble}))
	}
	return v
}

func collModImages(a *Args) bson.Value {
	images := a.sub("changeStreamPreAndPostImages")
	if images == nil {
		return bson.Missing
	}
	on := images.Bool("enabled", false)
	a.finish(images, "enabled")
	return bson.Bool(on)
}

func collModCapped(a *Args) (size, most bson.Value) {
	if n, ok := a.IntIn("cappedSize", 1, maxCappedSize); ok {
		size = bson.Int64(n)
	}
	if n, ok := a.Int("cappedMax"); ok {
		if n > maxCappedMax {
			a.Fail(mongoerr.New(mongoerr.BadValue, "max in a capped collection has to be < 2^31 or not set"))
		}
		most = bson.Int64(max(n, 0))
	}
	return size, most
}

// checkDryRun refuses to try anything but making an index unique, which MongoDB lets try, and changing a TTL.
func (r *collModRequest) checkDryRun() error {
	if r.dryRun && (r.index == nil || !r.index.has("unique")) && !(r.changesTTL && r.extended) {
		return invalidOptions("dry run mode is only valid with unique index modifications")
	}
	return nil
}

// modified is c as r asks for it; reply gets what is told of the changes.
func (op *Op) modified(ctx context.Context, c *catalog.Collection, r *collModRequest, reply *bson.Builder) (*catalog.Collection, error) {
	if c.IsView() {
		return op.modifiedView(ctx, c, r)
	}
	if c.IsOplog() || op.Replica != nil && c.OfReplicaSet() { // replSetResizeOplog changes what there is to change
		return nil, invalidOptions("Cannot run collMod on %s", c.NS)
	}
	if c.IsTimeSeries() {
		return op.modifiedSeries(c, r, reply)
	}
	switch {
	case r.hasViewOn:
		return nil, invalidOptions("option not supported on a collection: viewOn")
	case !r.pipeline.IsMissing():
		return nil, invalidOptions("option not supported on a collection: pipeline")
	case r.timeseries != nil:
		return nil, invalidOptions("option only supported on a time-series collection: timeseries")
	case r.mixed:
		return nil, invalidOptions("option only supported on a time-series collection: timeseriesBucketsMayHaveMixedSchemaData")
	}
	o := readOptions(c.Options.Doc)
	if err := op.setExpire(c, o, r.expire); err != nil {
		return nil, err
	}
	if err := setCapped(c, o, r); err != nil {
		return nil, err
	}
	if err := op.setValidation(c, o, r); err != nil {
		return nil, err
	}
	if err := setImages(c, o, r.images); err != nil {
		return nil, err
	}
	setPaused(o, r.pause, reply)
	setExpirationEvents(o, r.events, reply)
	next := c.WithOptions(catalog.ReadOptions(o.doc()))
	if r.index == nil {
		return next, nil
	}
	return op.withIndexChange(next, r.index, reply)
}

func setImages(c *catalog.Collection, o options, on bson.Value) error {
	if on.IsMissing() {
		return nil
	}
	o.set("changeStreamPreAndPostImages", bson.Missing)
	if !on.Bool() {
		return nil
	}
	o.set("changeStreamPreAndPostImages", bson.Build().Bool("enabled", true).Doc().Value())
	return checkImages(c.NS)
}

// setPaused pauses deleting, or has it go on.
func setPaused(o options, v bson.Value, reply *bson.Builder) {
	if v.IsMissing() {
		return
	}
	was, paused := o["ttlPaused"]
	reply.Bool("ttlPaused_old", paused && was.Truthy()).Bool("ttlPaused_new", v.Bool())
	o.set("ttlPaused", bson.Missing)
	if v.Bool() {
		o.set("ttlPaused", bson.True)
	}
}

func (op *Op) setExpire(c *catalog.Collection, o options, v bson.Value) error {
	switch {
	case v.IsMissing():
		return nil
	case !c.IsClustered() && !c.IsTimeSeries():
		return invalidOptions("'expireAfterSeconds' option is only supported on collections clustered by _id")
	case v.Type == bson.TypeString:
		if v.Str() != "off" {
			return invalidOptions("Invalid string value for the 'clusteredIndex::expireAfterSeconds' option. Got: '%s'. Accepted value is 'off'", v.Str())
		}
		o.set("expireAfterSeconds", bson.Missing)
		return nil
	}
	n, err := op.wholeCollectionTTL(v)
	if err == nil {
		o.set("expireAfterSeconds", bson.Int64(n))
	}
	return err
}

func setCapped(c *catalog.Collection, o options, r *collModRequest) error {
	for _, bound := range [...]struct {
		option, name string
		v            bson.Value
	}{{"cappedSize", "size", r.cappedSize}, {"cappedMax", "max", r.cappedMax}} {
		if bound.v.IsMissing() {
			continue
		}
		if !c.Options.Capped {
			return invalidOptions("collMod: option '%s' only valid on a capped collection", bound.option)
		}
		n := bound.v.Int64()
		switch {
		case bound.name == "max" && n == 0:
			o.set("max", bson.Missing)
		case n <= math.MaxInt32:
			o.set(bound.name, bson.Int32(int32(n)))
		default:
			o.set(bound.name, bound.v)
		}
	}
	return nil
}

func (op *Op) setValidation(c *catalog.Collection, o options, r *collModRequest) error {
	for name, word := range r.words {
		o.set(name, word)
	}
	if !r.validator.IsMissing() {
		if r.validator.Doc().IsEmpty() {
			o.set("validator", bson.Missing)
			return nil
		}
		o.set("validator", r.validator)
		for _, f := range validationWords {
			if _, ok := o[f.name]; !ok {
				o.set(f.name, bson.String(f.def))
			}
		}
	}
	validator := o["validator"]
	if validator.IsMissing() || r.validator.IsMissing() && len(r.words) == 0 {
		return nil
	}
	coll, err := collationOf(c)
	if err != nil {
		return err
	}
	return op.checkValidator(c.NS, validator.Doc(), coll, o)
}

func collationOf(c *catalog.Collection) (*collation.Collation, error) {
	if c.Options.Collation == nil {
		return nil, nil
	}
	return collation.Parse(c.Options.Collation)
}

// modifiedView is the view c on another collection, or with another pipeline.
func (op *Op) modifiedView(ctx context.Context, c *catalog.Collection, r *collModRequest) (*catalog.Collection, error) {
	switch {
	case r.first != "":
		return nil, invalidOptions("option not supported on a view: %s", r.first)
	case r.hasViewOn && r.viewOn == "":
		return nil, mongoerr.New(mongoerr.BadValue, "'viewOn' option must be non-empty")
	case r.hasViewOn && (namespace.NS{DB: c.NS.DB, Coll: r.viewOn}).Check() != nil:
		return nil, mongoerr.New(mongoerr.InvalidNamespace, "invalid namespace for 'viewOn': %s", r.viewOn)
	case !r.hasViewOn && r.pipeline.IsMissing():
		return c, nil
	}
	o := readOptions(c.Options.Doc)
	if r.hasViewOn {
		o.set("viewOn", bson.String(r.viewOn))
	}
	if !r.pipeline.IsMissing() {
		o.set("pipeline", r.pipeline)
	}
	own, err := collationOf(c)
	if err != nil {
		return nil, err
	}
	v := query.ViewDefinition{NS: c.NS, On: o["viewOn"].Str(), Pipeline: o["pipeline"], Collation: own}
	if err := op.Query.CheckView(ctx, v, op.call()); err != nil {
		return nil, err
	}
	return c.WithOptions(catalog.ReadOptions(o.doc())), nil
}

// withIndexChange is c with one of its indexes changed.
func (op *Op) withIndexChange(c *catalog.Collection, change *indexChange, reply *bson.Builder) (*catalog.Collection, error) {
	d, err := change.find(c)
	if err != nil {
		return nil, err
	}
	changes, err := op.indexChanges(c, d, change, reply)
	if err != nil || len(changes) == 0 {
		return c, err
	}
	changed, err := op.Query.Indexes().Changed(d, changes)
	if err != nil {
		return nil, err
	}
	defs := append([]*index.Definition(nil), c.Indexes...)
	for i := range defs {
		if defs[i].ID == d.ID {
			defs[i] = changed
		}
	}
	return c.WithIndexes(defs), nil
}
