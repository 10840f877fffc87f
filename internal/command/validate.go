package command

import (
	"slices"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/validation"
)

func validateCommands() []*Command {
	return []*Command{{Name: "validate", Needs: Needs{OnCollection: actions(privilege.Validate)}, Doc: "Checks that a collection and its indexes agree.", Run: validate}}
}

// validateRequest is a validate as the client asked for it.
type validateRequest struct {
	ns                                                       namespace.NS
	full, repair, fixMultikey, metadata, background, conform bool
}

func validate(op *Op) (bson.Doc, error) {
	a := op.Args
	r := validateRequest{ns: a.Collection(op.DB), full: a.truthy("full"), repair: a.truthy("repair"), metadata: a.truthy("metadata"),
		background: a.truthy("background"), conform: a.truthy("checkBSONConformance")}
	r.fixMultikey = a.truthy("fixMultikey")
	a.ignoreRest()
	if err := a.Done(); err != nil {
		return nil, err
	}
	if err := findable(r.ns); err != nil {
		return nil, err
	}
	coll := op.stored(r.ns)
	isViews := coll == nil && r.ns.Coll == systemViews && op.hasViews(r.ns.DB)
	switch {
	case isViews:
		coll = viewsCollection(r.ns)
	case coll != nil && coll.IsView():
		return nil, mongoerr.New(mongoerr.CommandNotSupportedOnView, "Cannot validate a view")
	case coll == nil:
		return nil, mongoerr.New(mongoerr.NamespaceNotFound, "Collection '%s' does not exist to validate.", r.ns)
	}
	if err := r.check(op.Replica != nil); err != nil {
		return nil, err
	}
	if r.metadata {
		return validatedMetadata(coll, r.ns), nil
	}
	if isViews {
		return validated(coll, soundViews(coll, op.views(r.ns)), r, repair{}), nil
	}
	return op.validateNow(coll, r)
}

// check refuses what does not go together. In the background a member does what it does otherwise, which holds no writer up.
func (r *validateRequest) check(member bool) error {
	const together = "Running the validate command with both { %s: true } and { %s: true } is not supported."
	switch {
	case r.metadata && (r.full || r.repair || r.fixMultikey || r.background || r.conform):
		return invalidOptions("Running the validate command with { metadata: true } is not supported with any other options")
	case r.background && r.full:
		return mongoerr.New(mongoerr.CommandNotSupported, together, "background", "full")
	case r.background && r.repair:
		return mongoerr.New(mongoerr.CommandNotSupported, together, "background", "repair")
	case r.background && !member:
		return mongoerr.New(mongoerr.CommandNotSupported, "Running validate command with { background: true } is not supported on standalone servers, on which there are no checkpoints to read")
	case r.conform && (r.repair || r.fixMultikey):
		return invalidOptions(together, "checkBSONConformance", "repair")
	}
	return nil
}

// mode is what MongoDB calls the kind of repair.
func (r *validateRequest) mode() string {
	switch {
	case r.repair:
		return "FixErrors"
	case r.fixMultikey:
		return "AdjustMultikey"
	}
	return "None"
}

// validateNow reads everything; with repair, indexes that are wrong are made anew and everything is read again.
func (op *Op) validateNow(coll *catalog.Collection, r validateRequest) (bson.Doc, error) {
	v, err := op.Query.Store.Validate(op.Ctx, coll.NS, r.conforms())
	if err != nil {
		return nil, err
	}
	fixed := repair{wrong: v}
	if r.repair && wrongIndexes(v) || r.fixMultikey && unmarked(v) {
		if coll, err = op.rebuildIndexes(coll.NS); err != nil {
			return nil, err
		}
		if op.leftCommit() != nil { // nobody sees them yet
			return bson.EmptyDoc, nil
		}
		if v, err = op.Query.Store.Validate(op.Ctx, coll.NS, r.conforms()); err != nil {
			return nil, err
		}
		fixed.done = !wrongIndexes(v)
	}
	return validated(coll, v, r, fixed), nil
}

// conforms is what every document is held against besides being well-formed; nil for nothing.
func (r *validateRequest) conforms() func(bson.Doc) error {
	if !r.conform {
		return nil
	}
	return func(d bson.Doc) error { return bson.Conform(d, r.full) }
}

// repair is what was found before indexes were made anew, and whether they are right since.
type repair struct {
	wrong *validation.Result
	done  bool
}

// unmarked says whether an index is multikey and is not marked so.
func unmarked(v *validation.Result) bool {
	return slices.ContainsFunc(v.Indexes, func(i validation.IndexResult) bool { return i.Unmarked })
}

func wrongIndexes(v *validation.Result) bool {
	for _, i := range v.Indexes {
		if !i.Valid {
			return true
		}
	}
	return false
}

// viewsCollection is the collection that MongoDB keeps views in, which here are in the catalogue.
func viewsCollection(ns namespace.NS) *catalog.Collection {
	c := &catalog.Collection{NS: ns, UUID: derivedUUID(ns)}
	c.Indexes = []*index.Definition{{Name: "_id_", Spec: idIndexOf(c)}}
	return c
}

// soundViews is what is found in it: the catalogue is read whole, or the server does not start.
func soundViews(coll *catalog.Collection, views int64) *validation.Result {
	return &validation.Result{Valid: true, Records: views, Indexes: []validation.IndexResult{{Name: coll.Indexes[0].Name, Valid: true, Keys: views}}}
}

func validatedMetadata(coll *catalog.Collection, ns namespace.NS) bson.Doc {
	b := bson.Build().String("ns", ns.String()).Binary("uuid", 4, coll.UUID[:]).Int32("nIndexes", int32(len(coll.Indexes)))
	b.Object("keysPerIndex").End().Object("indexDetails")
	for _, d := range coll.Indexes {
		b.Object(d.Name).Bool("valid", true).End()
	}
	b.End().Bool("valid", true).Bool("repaired", false).String("repairMode", "None")
	for _, list := range [...]string{"warnings", "errors", "extraIndexEntries", "missingIndexEntries", "corruptRecords"} {
		b.Array(list).End()
	}
	return b.Doc()
}

func validated(coll *catalog.Collection, v *validation.Result, r validateRequest, fixed repair) bson.Doc {
	b := bson.Build().String("ns", r.ns.String()).Binary("uuid", 4, coll.UUID[:]).Number("nInvalidDocuments", v.Invalid).
		Number("nNonCompliantDocuments", v.Nonconforming).Number("nrecords", v.Records).Int32("nIndexes", int32(len(coll.Indexes)))
	b.Object("keysPerIndex")
	for _, i := range v.Indexes {
		b.Number(i.Name, i.Keys)
	}
	b.End().Object("indexDetails")
	for _, i := range v.Indexes {
		b.Object(i.Name).Bool("valid", i.Valid)
		if len(i.Warnings) > 0 {
			b.Strings("warnings", i.Warnings)
		}
		if len(i.Errors) > 0 {
			b.Strings("errors", i.Errors)
		}
		if d := coll.Index(i.Name); d != nil {
			b.Document("spec", d.Spec)
		}
		b.End()
	}
	b.End().Bool("valid", v.Valid).Bool("repaired", fixed.done).String("repairMode", r.mode())
	b.Strings("warnings", v.Warnings).Strings("errors", indexErrors(v))
	findings(b, "extraIndexEntries", v.Extra)
	findings(b, "missingIndexEntries", v.Missing)
	b.Array("corruptRecords")
	for n, id := range v.Corrupt {
		b.String(bson.IndexKey(n), id.String())
	}
	b.End()
	if r.repair {
		removed, inserted := int64(0), int64(0)
		if fixed.done {
			removed, inserted = fixed.wrong.AllExtra, fixed.wrong.AllMissing
		}
		b.Int32("numRemovedCorruptRecords", 0).Number("numRemovedExtraIndexEntries", removed).Number("numInsertedMissingIndexEntries", inserted).
			Int32("numDocumentsMovedToLostAndFound", 0).Int32("numOutdatedMissingIndexEntry", 0)
	}
	return b.Doc()
}

// indexErrors are the collection's errors, with one more where an index has some.
func indexErrors(v *validation.Result) []string {
	errors := append([]string(nil), v.Errors...)
	for _, i := range v.Indexes {
		if !i.Valid {
			errors = append(errors, "Index '"+i.Name+"' is inconsistent. See the 'indexDetails' field for more detail.")
		}
	}
	return errors
}

func findings(b *bson.Builder, name string, found []validation.Finding) {
	b.Array(name)
	for n, f := range found {
		b.Object(bson.IndexKey(n)).String("indexName", f.Index).String("recordId", f.RecordID.String()).Binary("indexKey", 0, f.Key).End()
	}
	b.End()
}
