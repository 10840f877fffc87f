package command

import (
	"bytes"
	"math"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/query"
)

func createCommands() []*Command {
	return []*Command{{Name: "create", Needs: Needs{Also: needsCreate}, Doc: "Makes a collection or a view.", WriteConcern: true, ChangesTTL: true, Run: create}}
}

// Bounds of capped collections.
const (
	maxCappedSize = 1 << 50
	maxCappedMax  = math.MaxInt32
)

// createRequest is a create as the client asked for it.
type createRequest struct {
	ns      namespace.NS
	options options
	// given says which fields there are.
	given     func(key string) bool
	collation *collation.Collation
	capped    bool
	size, max int64

	clustered  bson.Value
	expire     bson.Value
	validator  bson.Doc
	viewOn     string
	isView     bool
	pipeline   bson.Value
	images     bool // changeStreamPreAndPostImages are enabled
	idIndex    bson.Value
	timeseries *Args
	encrypted  bson.Doc
}

func create(op *Op) (bson.Doc, error) {
	r, err := op.parseCreate(op.Args)
	if err != nil {
		return nil, err
	}
	if err := op.checkCreate(r); err != nil {
		return nil, err
	}
	if err := op.checkDefinable(r); err != nil {
		return nil, err
	}
	return bson.EmptyDoc, op.createCollection(r.ns, r.options.doc())
}

// createCollection makes a collection or view; one of that name with the same options is as good.
func (op *Op) createCollection(ns namespace.NS, doc bson.Doc) error {
	if op.txn != nil {
		_, err := op.txn.CreateCollection(op.Ctx, ns, doc)
		return err
	}
	var err error
	if uuid := op.Conn.appliedUUID; uuid != nil {
		_, err = op.Query.Store.CreateCollectionAs(op.patiently(), ns, doc, *uuid)
	} else {
		_, err = op.Query.Store.CreateCollection(op.patiently(), ns, doc)
	}
	if !mongoerr.Is(err, mongoerr.NamespaceExists) {
		return err
	}
	existing := op.Query.Store.Catalog().Collection(ns)
	if existing == nil {
		return err
	}
	return checkSameOptions(existing, doc)
}

func checkSameOptions(existing *catalog.Collection, doc bson.Doc) error {
	view := !doc.Lookup("viewOn").IsMissing()
	switch {
	case bytes.Equal(existing.Options.Doc, doc):
		return nil
	case view && !existing.IsView():
		return mongoerr.New(mongoerr.NamespaceExists, "namespace %s already exists, but is a collection rather than a view", existing.NS)
	case !view && existing.IsView():
		return mongoerr.New(mongoerr.NamespaceExists, "namespace %s already exists, but is a view rather than a collection", existing.NS)
	}
	return mongoerr.New(mongoerr.NamespaceExists, "namespace %s already exists, but with different options: %s", existing.NS, existing.Options.Doc)
}

func (op *Op) parseCreate(a *Args) (*createRequest, error) {
	r := &createRequest{options: options{}, given: a.Has}
	r.ns = a.Collection(op.DB)
	r.capped = a.SafeBool("capped", false)
	r.parseSize(a)
	a.SafeBool("autoIndexId", false)
	r.idIndex = a.docValue("idIndex")
	r.parseValidation(a)
	r.parseView(a)
	r.parseCollation(a)
	r.parseImages(a)
	r.parseEngine(a)
	r.clustered = a.Value("clusteredIndex")
	checkClusteredShape(a, r)
	if v, ok := a.typed("expireAfterSeconds", bson.TypeInt64, bson.TypeInt32, bson.TypeDecimal, bson.TypeDouble); ok {
		r.expire = v
	}
	if r.timeseries = a.sub("timeseries"); r.timeseries != nil {
		checkTimeseriesShape(a, r.timeseries)
	}
	if r.encrypted = a.Doc("encryptedFields"); r.encrypted != nil {
		if err := checkEncryptedFields(r.encrypted); err != nil {
			a.Fail(err)
		}
		r.options["encryptedFields"] = storedEncryption(r.ns.Coll, r.encrypted).Value()
	}
	if a.Bool("temp", false) {
		r.options["temp"] = bson.True
	}
	if v := op.readExpirationEvents(a); !v.IsMissing() {
		r.options["expirationEvents"] = v
	}
	if !op.APIStrict && a.SafeBool("ttlPaused", false) { // what listCollections shows, restores give
		r.options["ttlPaused"] = bson.True
	}
	a.Ignore("flags", "recordIdsReplicated", "unauthenticated", "isTimeseriesNamespace")
	return r, a.Done()
}

// docValue reads an optional document that keeps its own nulls; Missing when absent.
func (a *Args) docValue(key string) bson.Value {
	if doc := a.Doc(key); doc != nil {
		return doc.Value()
	}
	return bson.Missing
}

func (r *createRequest) parseSize(a *Args) {
	r.size, _ = a.IntIn("size", 1, maxCappedSize)
	n, ok := a.Int("max")
	if ok && n > maxCappedMax {
		a.Fail(mongoerr.New(mongoerr.BadValue, "max in a capped collection has to be < 2^31 or not set"))
	}
	r.max = max(n, 0)
	if !r.capped {
		return
	}
	r.options["capped"] = bson.True
	r.options["size"] = bson.Int64(r.size)
	if r.size <= math.MaxInt32 {
		r.options["size"] = bson.Int32(int32(r.size))
	}
	if r.max > 0 {
		r.options["max"] = bson.Int32(int32(r.max))
	}
}

func (r *createRequest) parseValidation(a *Args) {
	r.validator = a.Doc("validator")
	if !r.validator.IsEmpty() {
		r.options["validator"] = r.validator.Value()
	}
	for _, f := range validationWords {
		if word, ok := a.enum(f.name, f.words...); ok {
			r.options[f.name] = bson.String(word)
		}
	}
	if !r.validator.IsEmpty() {
		for _, f := range validationWords {
			if _, ok := r.options[f.name]; !ok {
				r.options[f.name] = bson.String(f.def)
			}
		}
	}
}

// validationWords are the options that say what a validator does, with what they may be.
var validationWords = [...]struct {
	name, def string
	words     []string
}{
	{"validationLevel", "strict", []string{"off", "strict", "moderate"}},
	{"validationAction", "error", []string{"error", "warn", "errorAndLog"}},
}

// enum reads an optional string that must be one of the words.
func (a *Args) enum(key string, words ...string) (string, bool) {
	s, ok := a.String(key)
	if !ok {
		return "", false
	}
	for _, w := range words {
		if s == w {
			return w, true
		}
	}
	a.Fail(mongoerr.New(mongoerr.BadValue, "Enumeration value '%s' for field '%s.%s' is not a valid value.", s, a.path, key))
	return "", false
}

func (r *createRequest) parseView(a *Args) {
	var ok bool
	if r.viewOn, ok = a.String("viewOn"); ok {
		r.viewOn, r.isView = strings.Clone(r.viewOn), true
	}
	r.pipeline = a.viewPipeline("pipeline")
	if r.isView {
		r.options["viewOn"] = bson.String(r.viewOn)
		r.options["pipeline"] = bson.EmptyArr
		if !r.pipeline.IsMissing() {
			r.options["pipeline"] = r.pipeline
		}
	}
}

// viewPipeline reads an optional array of stages; those that are null are left out, as MongoDB does here.
func (a *Args) viewPipeline(key string) bson.Value {
	doc := a.Array(key)
	if doc == nil {
		return bson.Missing
	}
	var stages []bson.Value
	for it := doc.Iter(); it.Next(); {
		v := it.Value()
		if v.IsNullish() {
			continue
		}
		if v.Type != bson.TypeObject {
			a.Fail(a.wrongType(key+"."+it.Key(), v.Type, []bson.Type{bson.TypeObject}))
			return bson.Missing
		}
		stages = append(stages, v)
	}
	return bson.ArrayOf(stages...)
}

func (r *createRequest) parseCollation(a *Args) {
	doc := a.Doc("collation")
	if doc == nil {
		return
	}
	if doc.IsEmpty() {
		a.Fail(mongoerr.New(40414, "BSON field 'create.collation.locale' is missing but a required field"))
		return
	}
	c, err := collation.Parse(doc)
	if err != nil {
		a.Fail(err)
		return
	}
	if c != nil {
		r.collation = c
		r.options["collation"] = c.Doc().Value()
	}
}

func (r *createRequest) parseImages(a *Args) {
	images := a.sub("changeStreamPreAndPostImages")
	if images == nil {
		return
	}
	if r.images = images.Bool("enabled", false); r.images {
		r.options["changeStreamPreAndPostImages"] = bson.Build().Bool("enabled", true).Doc().Value()
	}
	a.finish(images, "enabled")
}

// finish passes on what is wrong with a nested document: what it should not have first, then what it lacks.
func (a *Args) finish(sub *Args, required ...string) {
	err := sub.Done()
	if err == nil {
		sub.Required(required...)
		err = sub.Err()
	}
	if err != nil {
		a.Fail(err)
	}
}

// checkCreate applies the rules between the options and fills in what follows from them.
func (op *Op) checkCreate(r *createRequest) error {
	if err := readable(r.ns); err != nil {
		return err
	}
	for _, check := range [...]func(*createRequest) error{checkCreateBuckets, checkCreateClustered, checkCreateEncrypted, checkCreateTimeseries,
		checkCapped, op.checkIDIndex, op.checkCreateExpire, checkCreateName, op.checkCreateView, checkCreateImages, op.checkCreateValidator} {
		if err := check(r); err != nil {
			return err
		}
	}
	return op.served(r)
}

// checkDefinable refuses what no transaction makes.
func (op *Op) checkDefinable(r *createRequest) error {
	switch {
	case op.txn == nil:
	case r.timeseries != nil:
		return mongoerr.New(mongoerr.OperationNotSupportedInTransaction, "Cannot create a time-series collection in a multi-document transaction.")
	case r.isView:
		return mongoerr.New(mongoerr.OperationNotSupportedInTransaction, "Cannot create a view in a multi-document transaction.")
	case r.ns.IsSystem():
		return mongoerr.New(mongoerr.OperationNotSupportedInTransaction, "Cannot create system collection %s within a transaction.", r.ns)
	}
	return nil
}

// served refuses what there is on members of replica sets alone.
func (op *Op) served(r *createRequest) error {
	switch {
	case r.encrypted == nil:
		return nil
	case op.Replica != nil || op.applies():
		return nil
	}
	return mongoerr.New(6346402, "Encrypted collections are not supported on standalone")
}

func invalidOptions(format string, args ...any) error {
	return mongoerr.New(mongoerr.InvalidOptions, format, args...)
}

func checkCapped(r *createRequest) error {
	switch {
	case r.capped && !r.given("size"):
		return invalidOptions("the 'size' field is required when 'capped' is true")
	case !r.capped && (r.given("size") || r.given("max")):
		return invalidOptions("the 'capped' field needs to be true when either the 'size' or 'max' fields are present")
	}
	return nil
}

func checkCreateName(r *createRequest) error {
	if series, ok := strings.CutPrefix(r.ns.Coll, bucketsPrefix); ok {
		if r.timeseries == nil {
			return mongoerr.New(mongoerr.IllegalOperation, "cannot create a collection of buckets without time-series options: %s", r.ns)
		}
		r.ns.Coll = series // whose buckets are there with it
	}
	if r.isView && r.ns.IsSystem() {
		return mongoerr.New(mongoerr.InvalidNamespace, "View name cannot start with 'system.': %s", r.ns)
	}
	return nil
}

func (op *Op) checkIDIndex(r *createRequest) error {
	if r.idIndex.IsMissing() {
		return nil
	}
	switch {
	case r.isView:
		return invalidOptions("'idIndex' is not allowed with 'viewOn'")
	case r.timeseries != nil:
		return invalidOptions("'idIndex' is not allowed with 'timeseries'")
	case r.given("clusteredIndex"):
		return invalidOptions("'idIndex' is not allowed with 'clusteredIndex'")
	}
	var inherited bson.Doc
	if r.collation != nil {
		inherited = r.collation.Doc()
	}
	d, err := op.Query.Indexes().Parse(r.idIndex.Doc(), inherited)
	if err != nil {
		return err
	}
	key := d.Key
	if v := key.Lookup("_id"); key.Count() != 1 || !v.IsNumber() || v.AsDouble() != 1 {
		return mongoerr.New(mongoerr.BadValue, "The field 'key' for an _id index must be {_id: 1}, but got %s", key)
	}
	if !bytes.Equal(d.Collation, inherited) {
		return mongoerr.New(mongoerr.BadValue, "The _id index must have the same collation as the collection. Index collation: %s, collection collation: %s", d.Collation, inherited)
	}
	return nil
}

func (op *Op) checkCreateView(r *createRequest) error {
	switch {
	case !r.isView && !r.pipeline.IsMissing():
		return invalidOptions("'pipeline' requires 'viewOn' to also be specified")
	case !r.isView:
		return nil
	case r.viewOn == "":
		return mongoerr.New(mongoerr.BadValue, "'viewOn' cannot be empty")
	case r.images:
		return invalidOptions("changeStreamPreAndPostImages cannot be enabled on a view")
	case !r.options["expirationEvents"].IsMissing():
		return invalidOptions("'expirationEvents' cannot be set on a view")
	}
	kept := options{}
	for _, name := range [...]string{"viewOn", "pipeline", "collation"} {
		if v, ok := r.options[name]; ok {
			kept[name] = v
		}
	}
	r.options = kept
	return op.Query.CheckView(op.Ctx, query.ViewDefinition{NS: r.ns, On: r.viewOn, Pipeline: kept["pipeline"], Collation: r.collation}, op.call())
}

func checkCreateImages(r *createRequest) error {
	if !r.images {
		return nil
	}
	return checkImages(r.ns)
}

// checkImages refuses images of the documents of a collection that no change stream can be opened on.
func checkImages(ns namespace.NS) error {
	switch ns.DB {
	case "admin", "local", "config":
		return invalidOptions("changeStreamPreAndPostImages collection option is not supported on the %s database", ns.DB)
	}
	return nil
}

func (op *Op) checkCreateValidator(r *createRequest) error {
	if r.isView || r.validator.IsEmpty() {
		return nil
	}
	return op.checkValidator(r.ns, r.validator, r.collation, r.options)
}

// checkValidator says what is wrong with a validator for ns, whose other options are o.
func (op *Op) checkValidator(ns namespace.NS, validator bson.Doc, c *collation.Collation, o options) error {
	switch {
	case ns.IsSystem():
		return invalidOptions("Document validators not allowed on system collection %s", ns)
	case ns.DB == "admin" || ns.DB == "local" || ns.DB == "config":
		return invalidOptions("Document validators are not allowed on collection %s in the %s database", ns, ns.DB)
	}
	return op.Query.CheckValidator(op.Ctx, validator, c, validatesAll(o), op.call())
}

// validatesAll says whether a validator under the options o lets nothing in, and logs nothing, that breaks it.
func validatesAll(o options) bool {
	action := o["validationAction"].Str()
	return action != "warn" && action != "errorAndLog" && o["validationLevel"].Str() != "moderate" && o["encryptedFields"].IsMissing()
}
