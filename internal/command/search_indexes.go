package command

import (
	"context"
	"encoding/hex"
	"slices"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/fulltext/mapping"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/query"
	"github.com/ebbdb/ebb/internal/vectorsearch"
)

// A search index, for texts ("search") or vectors ("vectorSearch"), is its definition and no more: a document of config.searchIndexes. A search reads the
// collection.

const (
	// maxSearchIndexes is how many search indexes a collection has at most.
	maxSearchIndexes = 64
	// defaultSearchIndex is the name of an index that is given none.
	defaultSearchIndex = "default"
)

func searchIndexCommands() []*Command {
	return []*Command{
		{Name: "createSearchIndexes", Needs: Needs{OnCollection: actions(privilege.CreateSearchIndexes), Also: needsSynonyms}, Doc: "Makes search indexes.", Run: createSearchIndexes},
		{Name: "updateSearchIndex", Needs: Needs{OnCollection: actions(privilege.UpdateSearchIndex), Also: needsSynonyms}, Doc: "Changes a search index.", Run: updateSearchIndex},
		{Name: "dropSearchIndex", Needs: Needs{OnCollection: actions(privilege.DropSearchIndex)}, Doc: "Drops a search index.", Run: dropSearchIndex},
		{Name: "listSearchIndexes", Needs: Needs{OnCollection: actions(privilege.ListSearchIndexes)}, Doc: "Lists search indexes.", Run: listSearchIndexes},
	}
}

// needsSynonyms refuses definitions with the synonyms of collections that may not be read: searches would tell of what these hold.
func needsSynonyms(op *Op) error {
	d := op.Args.Document()
	may := op.mayReadSynonyms(d.Lookup("definition"))
	if list := d.Lookup("indexes"); list.Type == bson.TypeArray {
		for it := list.Doc().Iter(); it.Next(); {
			if it.Value().Type == bson.TypeObject {
				may = may && op.mayReadSynonyms(it.Value().Doc().Lookup("definition"))
			}
		}
	}
	return op.unless(may)
}

// mayReadSynonyms says whether the collections may be read that a definition names as those of its synonyms.
func (op *Op) mayReadSynonyms(definition bson.Value) bool {
	if definition.Type != bson.TypeObject {
		return true
	}
	list := definition.Doc().Lookup("synonyms")
	if list.Type != bson.TypeArray {
		return true
	}
	for it := list.Doc().Iter(); it.Next(); {
		if it.Value().Type != bson.TypeObject {
			continue
		}
		source := it.Value().Doc().Lookup("source")
		if source.Type != bson.TypeObject {
			continue
		}
		if coll := source.Doc().Lookup("collection"); coll.Type == bson.TypeString && !op.mayOn(namespace.NS{DB: op.DB, Coll: coll.Str()}, privilege.Find) {
			return false
		}
	}
	return true
}

// searchIndex is what is kept of one index.
type searchIndex struct {
	collection [16]byte
	kind       string // query.TextIndex or query.VectorIndex
	id, name   string
	version    int64
	created    int64 // when the version was made, in milliseconds
	definition bson.Doc
}

func (x *searchIndex) stored(coll *catalog.Collection) bson.Doc {
	b := bson.Build().Value("_id", query.SearchIndexID(coll, x.name)).String("id", x.id)
	if x.kind != query.VectorIndex { // which those without a type are, as all were once
		b.String("type", x.kind)
	}
	return b.Int64("version", x.version).Date("createdAt", x.created).Document("definition", x.definition).Doc()
}

// listed is what lists show of the index. It can be used from the moment on at which it is there, and its synonym mappings while nothing is wrong
// with their documents: faults are of each of those.
func (x *searchIndex) listed(faults []string) bson.Doc {
	b := bson.Build().String("id", x.id).String("name", x.name).String("type", x.kind).String("status", "READY").Bool("queryable", true).
		Object("latestDefinitionVersion").Int64("version", x.version).Date("createdAt", x.created).End().
		Document("latestDefinition", x.definition).Array("statusDetail").End()
	if len(faults) == 0 {
		return b.Doc()
	}
	status := func(wrong bool) string {
		if wrong {
			return "FAILED"
		}
		return "READY"
	}
	isWrong := func(fault string) bool { return fault != "" }
	b.String("synonymMappingStatus", status(slices.ContainsFunc(faults, isWrong))).Array("synonymMappingStatusDetail")
	for i, fault := range faults {
		b.Object(bson.IndexKey(i)).String("status", status(isWrong(fault))).Bool("queryable", !isWrong(fault))
		if isWrong(fault) {
			b.String("message", fault)
		}
		b.End()
	}
	return b.End().Doc()
}

// check refuses a definition that is none for the index's type.
func (x *searchIndex) check() (err error) {
	if x.kind == query.TextIndex {
		_, err = mapping.Parse(x.definition)
	} else {
		_, err = vectorsearch.ParseDefinition(x.definition)
	}
	return err
}

// readSearchIndex reads what is kept; ok is false for what is none of the server's.
func readSearchIndex(d bson.Doc) (x searchIndex, ok bool) {
	id, definition := d.Lookup("_id"), d.Lookup("definition")
	if id.Type != bson.TypeObject || definition.Type != bson.TypeObject {
		return x, false
	}
	collection, name, own := id.Doc().Lookup("collection"), id.Doc().Lookup("name"), d.Lookup("id")
	if !isUUID(collection) || name.Type != bson.TypeString || own.Type != bson.TypeString {
		return x, false
	}
	_, uuid := collection.Binary()
	if len(uuid) != len(x.collection) {
		return x, false
	}
	x = searchIndex{collection: [16]byte(uuid), id: own.Str(), name: name.Str(), definition: definition.Doc()}
	if x.kind, ok = query.SearchIndexType(d); !ok {
		return x, false
	}
	if v := d.Lookup("version"); v.IsNumber() {
		x.version, _ = v.AsInt64()
	}
	if v := d.Lookup("createdAt"); v.Type == bson.TypeDate {
		x.created = v.Millis()
	}
	return x, true
}

// searchIndexes are those of a collection, by their names, and the _ids of what is kept of collections that are no more.
func (s *Server) searchIndexes(ctx context.Context, coll *catalog.Collection) (of []searchIndex, orphans []bson.Value, err error) {
	docs, err := s.Query.SearchIndexes(ctx)
	if err != nil {
		return nil, nil, err
	}
	there := map[[16]byte]bool{}
	for _, c := range s.Query.Store.Catalog().All() {
		there[c.UUID] = true
	}
	for _, d := range docs {
		switch x, ok := readSearchIndex(d); {
		case !ok:
		case x.collection == coll.UUID:
			of = append(of, x)
		case !there[x.collection]:
			orphans = append(orphans, d.Lookup("_id"))
		}
	}
	return of, orphans, nil
}

// searched is the collection that a command names, which may have search indexes.
func (op *Op) searched(ns namespace.NS) (*catalog.Collection, error) {
	coll := op.stored(ns)
	switch {
	case coll == nil:
		return nil, mongoerr.New(mongoerr.NamespaceNotFound, "Collection '%s' does not exist.", ns)
	case coll.IsView():
		return nil, mongoerr.New(mongoerr.CommandNotSupportedOnView, "search indexes on views are not supported: %s", ns)
	case coll.IsTimeSeries():
		return nil, mongoerr.New(mongoerr.CommandNotSupported, "search indexes on time-series collections are not supported: %s", ns)
	}
	return coll, nil
}

// readDefinition reads one element of createSearchIndexes.
func readDefinition(a *Args) (x searchIndex, err error) {
	kind, given := a.String("type")
	a.Required("definition")
	x.definition = a.owned("definition")
	x.name = defaultSearchIndex
	if name, ok := a.String("name"); ok {
		x.name = string([]byte(name))
	}
	if err := a.Done(); err != nil {
		return x, err
	}
	switch {
	case !given || kind == query.TextIndex:
		x.kind = query.TextIndex
	case kind == query.VectorIndex:
		x.kind = query.VectorIndex
	default:
		return x, mongoerr.New(mongoerr.BadValue, "the type of a search index must be 'search' or 'vectorSearch', and is '%s'", kind)
	}
	if x.name == "" {
		return x, mongoerr.New(mongoerr.BadValue, "the name of a search index cannot be empty")
	}
	return x, x.check()
}

func createSearchIndexes(op *Op) (bson.Doc, error) {
	a := op.Args
	ns := a.Collection(op.DB)
	a.Required("indexes")
	specs := a.Array("indexes")
	if err := a.Done(); err != nil {
		return nil, err
	}
	var made []searchIndex
	for it := specs.Iter(); it.Next(); {
		if it.Value().Type != bson.TypeObject {
			return nil, mongoerr.New(mongoerr.TypeMismatch, "BSON field 'createSearchIndexes.indexes.%s' is the wrong type '%s', expected type 'object'", it.Key(), it.Value().Type)
		}
		var sub Args
		sub.reset("createSearchIndexes.indexes", it.Value().Doc(), nil)
		x, err := readDefinition(&sub)
		if err != nil {
			return nil, err
		}
		made = append(made, x)
	}
	if len(made) == 0 {
		return nil, mongoerr.New(mongoerr.BadValue, "Must specify at least one index to create")
	}
	coll, err := op.searched(ns)
	if err != nil {
		return nil, err
	}
	now := op.Now
	err = op.alterSearchIndexes(coll, func(have []searchIndex) (change searchIndexChange, err error) {
		if len(have)+len(made) > maxSearchIndexes {
			return change, mongoerr.New(mongoerr.CannotCreateIndex, "a collection has no more than %d search indexes", maxSearchIndexes)
		}
		for i := range made {
			x := &made[i]
			same := func(y searchIndex) bool { return x.name == y.name }
			if slices.ContainsFunc(have, same) || slices.ContainsFunc(made[:i], same) {
				return change, mongoerr.New(mongoerr.IndexAlreadyExists, "Index '%s' already exists", x.name)
			}
			id := newObjectID(now)
			x.id, x.created = hex.EncodeToString(id[:]), now
			change.put = append(change.put, x.stored(coll))
		}
		return change, nil
	})
	if err != nil {
		return nil, err
	}
	b := bson.Build().Array("indexesCreated")
	for i, x := range made {
		b.Object(bson.IndexKey(i)).String("id", x.id).String("name", x.name).End()
	}
	return b.End().Doc(), nil
}

// searchIndexChange is what is kept from now on, and the _ids of what is not any more.
type searchIndexChange struct {
	put  []bson.Doc
	drop []bson.Value
}

// alterSearchIndexes makes the change that plan wants by what a collection has. What is kept for collections that are no more is forgotten with it.
func (op *Op) alterSearchIndexes(coll *catalog.Collection, plan func(have []searchIndex) (searchIndexChange, error)) error {
	now := op.Now
	return op.alter(func(ctx context.Context, s *Server) error {
		if err := op.enterWrites(); err != nil {
			return err
		}
		defer s.Writes.Leave()
		have, orphans, err := s.searchIndexes(ctx, coll)
		if err != nil {
			return err
		}
		change, err := plan(have)
		if err != nil {
			return err
		}
		return s.Query.ChangeSettings(ctx, catalog.SearchIndexesNS, append(orphans, change.drop...), change.put, now)
	})
}

// namedSearchIndex reads which index a command is about.
func (op *Op) namedSearchIndex(read func(*Args)) (ns namespace.NS, is func(searchIndex) bool, text string, err error) {
	a := op.Args
	ns = a.Collection(op.DB)
	id, byID := a.String("id")
	name, byName := a.String("name")
	if read != nil {
		read(a)
	}
	if err := a.Done(); err != nil {
		return ns, nil, "", err
	}
	switch {
	case byID && byName:
		return ns, nil, "", invalidOptions("Cannot set both 'name' and 'id' for %s.", op.Name())
	case byID:
		return ns, func(x searchIndex) bool { return x.id == id }, id, nil
	case byName:
		return ns, func(x searchIndex) bool { return x.name == name }, name, nil
	}
	return ns, nil, "", nil
}

// changeSearchIndex makes a change of the one index that a command is about.
func (op *Op) changeSearchIndex(read func(*Args), change func(coll *catalog.Collection, x searchIndex) (searchIndexChange, error)) (bson.Doc, error) {
	ns, is, text, err := op.namedSearchIndex(read)
	if err == nil && is == nil {
		err = invalidOptions("Must set either 'name' or 'id' for %s.", op.Name())
	}
	if err != nil {
		return nil, err
	}
	coll, err := op.searched(ns)
	if err != nil {
		return nil, err
	}
	err = op.alterSearchIndexes(coll, func(have []searchIndex) (searchIndexChange, error) {
		i := slices.IndexFunc(have, is)
		if i < 0 {
			return searchIndexChange{}, mongoerr.New(mongoerr.IndexNotFound, "Search index '%s' of %s cannot be found", text, ns)
		}
		return change(coll, have[i])
	})
	if err != nil {
		return nil, err
	}
	return bson.EmptyDoc, nil
}

func updateSearchIndex(op *Op) (bson.Doc, error) {
	var definition bson.Doc
	read := func(a *Args) {
		a.Required("definition")
		definition = a.owned("definition")
	}
	return op.changeSearchIndex(read, func(coll *catalog.Collection, x searchIndex) (searchIndexChange, error) {
		x.definition, x.version, x.created = definition, x.version+1, op.Now
		return searchIndexChange{put: []bson.Doc{x.stored(coll)}}, x.check()
	})
}

func dropSearchIndex(op *Op) (bson.Doc, error) {
	return op.changeSearchIndex(nil, func(coll *catalog.Collection, x searchIndex) (searchIndexChange, error) {
		return searchIndexChange{drop: []bson.Value{query.SearchIndexID(coll, x.name)}}, nil
	})
}

func listSearchIndexes(op *Op) (bson.Doc, error) {
	var cursor cursorOptions
	ns, is, _, err := op.namedSearchIndex(func(a *Args) { cursor = a.simpleCursor() })
	if err != nil {
		return nil, err
	}
	rows, err := op.searchIndexRows(op.Ctx, op.stored(ns), is)
	if err != nil {
		return nil, err
	}
	return op.openRows(ns, rows, cursor)
}

// searchIndexRows is what lists show of a collection's indexes, of all of them where is is nil.
func (s *Server) searchIndexRows(ctx context.Context, coll *catalog.Collection, is func(searchIndex) bool) (rows []bson.Doc, err error) {
	if coll == nil {
		return nil, nil
	}
	have, _, err := s.searchIndexes(ctx, coll)
	if err != nil {
		return nil, err
	}
	for _, x := range have {
		if is != nil && !is(x) {
			continue
		}
		var faults []string
		if x.kind == query.TextIndex {
			if faults, err = s.Query.SynonymFaults(ctx, coll.NS.DB, x.definition); err != nil {
				return nil, err
			}
		}
		rows = append(rows, x.listed(faults))
	}
	return rows, nil
}

// searchIndexesStage is $listSearchIndexes.
func (s *Server) searchIndexesStage(ctx context.Context, ns namespace.NS, spec bson.Doc) ([]bson.Doc, error) {
	id, name := spec.Lookup("id"), spec.Lookup("name")
	return s.searchIndexRows(ctx, s.stored(ns), func(x searchIndex) bool {
		return (id.IsMissing() || id.Str() == x.id) && (name.IsMissing() || name.Str() == x.name)
	})
}
