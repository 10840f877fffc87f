package command

import (
	"context"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/query"
)

// Documents implements query.ServerStages: the documents of the stages that look at the server. The pipeline has checked
// their arguments.
func (s *Server) Documents(ctx context.Context, ns namespace.NS, name string, spec bson.Value) ([]bson.Doc, error) {
	return s.allDocuments(ctx, nil, ns, name, spec)
}

// viewer gives a user what stages look at: of what others do no more than the stage has asked for.
type viewer struct {
	*Server
	user *auth.User
}

// viewer is whoever runs the command; nil where nobody logs in.
func (op *Op) viewer() *viewer {
	if !op.Authorization {
		return nil
	}
	c := op.Conn
	if u := op.user(); c.viewer == nil || c.viewer.user != u || c.viewer.Server != op.Server {
		c.viewer = &viewer{op.Server, u}
	}
	return c.viewer
}

// serverStages is what looks at the server for the command's call; nil where everybody sees the same.
func (op *Op) serverStages() query.ServerStages {
	if v := op.viewer(); v != nil {
		return v
	}
	return nil
}

// is says whether that is the viewer's name.
func (v *viewer) is(name auth.Name) bool { return v.user != nil && v.user.Name == name }

// Documents implements query.ServerStages.
func (v *viewer) Documents(ctx context.Context, ns namespace.NS, name string, spec bson.Value) ([]bson.Doc, error) {
	return v.allDocuments(ctx, v, ns, name, spec)
}

// allDocuments are those of documents, with what the stage tells of servers that read beside this one.
func (s *Server) allDocuments(ctx context.Context, whose *viewer, ns namespace.NS, name string, spec bson.Value) ([]bson.Doc, error) {
	docs, err := s.documents(ctx, whose, ns, name, spec)
	if err != nil {
		return nil, err
	}
	return s.stageBeside(ctx, ns, name, spec, docs), nil
}

func (s *Server) documents(ctx context.Context, whose *viewer, ns namespace.NS, name string, spec bson.Value) ([]bson.Doc, error) {
	switch name {
	case "$currentOp":
		return s.currentOpStage(ctx, spec.Doc(), whose), nil
	case "$listLocalSessions", "$listSessions":
		return s.sessionDocuments(spec.Doc(), whose), nil
	case "$collStats":
		return s.collStatsStage(ctx, ns, spec.Doc())
	case "$_internalAllCollectionStats":
		return s.allCollectionStats(ctx, spec.Doc())
	case "$indexStats":
		return s.indexStatsStage(ns)
	case "$planCacheStats":
		coll := s.Query.Store.Catalog().Collection(ns)
		if coll == nil {
			return nil, mongoerr.New(50933, "collection '%s' does not exist", ns)
		}
		if coll.IsTimeSeries() {
			return nil, mongoerr.New(40602, "$planCacheStats is only valid as the first stage in a pipeline").Early()
		}
		return s.Query.PlanCacheStats(coll, s.hostAndPort()), nil
	case "$querySettings":
		return s.querySettingsStage(spec.Doc()), nil
	case "$queryStats":
		return s.queryStatsStage(spec.Doc())
	case "$listSampledQueries":
		return nil, nil // nothing is sampled
	case "$listSearchIndexes":
		return s.searchIndexesStage(ctx, ns, spec.Doc())
	case "$listCatalog":
		return s.listCatalogStage(ns)
	case "$listClusterCatalog":
		return s.clusterCatalogStage(ns, spec.Doc().Lookup("shards").Truthy())
	}
	return nil, mongoerr.New(mongoerr.CommandNotSupported, "%s is not supported", name)
}

func (s *Server) collStatsStage(ctx context.Context, ns namespace.NS, spec bson.Doc) ([]bson.Doc, error) {
	coll := s.stored(ns)
	if coll != nil && coll.IsView() {
		for _, name := range []string{"storageStats", "count", "queryExecStats"} {
			if !spec.Lookup(name).IsMissing() {
				return nil, mongoerr.New(mongoerr.CommandNotSupportedOnView, "Unable to retrieve %s in $collStats stage :: caused by :: %s is a view, not a collection", name, ns)
			}
		}
	}
	views := s.views(ns)
	missing := coll == nil && !(ns.Coll == systemViews && s.hasViews(ns.DB))
	b := bson.Build().String("ns", ns.String()).String("host", s.hostAndPort()).Date("localTime", s.Query.Store.Now())
	if latency := spec.Lookup("latencyStats"); !latency.IsMissing() {
		s.appendLatencyStats(b, ns, latency.Doc().Lookup("histograms").Truthy())
	}
	if storage := spec.Lookup("storageStats"); !storage.IsMissing() {
		if missing {
			return nil, mongoerr.New(mongoerr.NamespaceNotFound, "Unable to retrieve storageStats in $collStats stage :: caused by :: Collection [%s] not found.", ns)
		}
		scale := int64(1)
		if v := storage.Doc().Lookup("scale"); v.IsNumber() {
			scale = v.TruncInt64()
		}
		b.Object("storageStats")
		if err := s.appendStorageStats(ctx, b, ns, scale); err != nil {
			return nil, err
		}
		b.End()
	}
	if !spec.Lookup("count").IsMissing() {
		if missing {
			return nil, mongoerr.New(mongoerr.NamespaceNotFound, "Unable to retrieve count in $collStats stage :: caused by :: Collection [%s] not found.", ns)
		}
		counted := ns
		if coll != nil {
			counted = coll.NS
		}
		n, err := s.count(ctx, counted)
		if err != nil {
			return nil, err
		}
		b.Number("count", n+views)
	}
	if !spec.Lookup("queryExecStats").IsMissing() {
		if missing {
			return nil, mongoerr.New(mongoerr.NamespaceNotFound, "Unable to retrieve queryExecStats in $collStats stage :: caused by :: Collection [%s] not found.", ns)
		}
		b.Object("queryExecStats").Object("collectionScans").Int64("total", 0).Int64("nonTailable", 0).End().End()
	}
	return []bson.Doc{b.Doc()}, nil
}

// allCollectionStats is $collStats of each collection that there is. Views have none, nor has what is dropped meanwhile.
func (s *Server) allCollectionStats(ctx context.Context, spec bson.Doc) ([]bson.Doc, error) {
	var docs []bson.Doc
	for _, coll := range s.Query.Store.Catalog().All() {
		if coll.IsView() {
			continue
		}
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		of, err := s.collStatsStage(ctx, coll.NS, spec)
		if mongoerr.Is(err, mongoerr.NamespaceNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		docs = append(docs, of...)
	}
	return docs, nil
}

func (s *Server) count(ctx context.Context, ns namespace.NS) (int64, error) {
	view, err := s.Query.Store.View(ctx)
	if err != nil {
		return 0, err
	}
	defer view.Close()
	r, ok := view.Collection(ns)
	if !ok {
		return 0, nil
	}
	if r.Catalog().IsTimeSeries() {
		return r.Dates().Cells()
	}
	return r.Count()
}

func (s *Server) indexStatsStage(ns namespace.NS) ([]bson.Doc, error) {
	coll := s.Query.Store.Catalog().Collection(ns)
	if coll == nil {
		return nil, nil
	}
	if coll.IsView() {
		return nil, mongoerr.New(mongoerr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns)
	}
	var docs []bson.Doc
	for _, d := range coll.Indexes {
		use := s.Query.IndexUse(d.ID)
		docs = append(docs, bson.Build().String("name", d.Name).Document("key", d.Key).String("host", s.hostAndPort()).
			Object("accesses").Int64("ops", use.Ops).Date("since", use.Since).End().Document("spec", d.Spec).Doc())
	}
	return docs, nil
}

func (s *Server) listCatalogStage(ns namespace.NS) ([]bson.Doc, error) {
	c := s.Query.Store.Catalog()
	if ns.Coll == "" {
		if ns.DB != "admin" {
			return nil, mongoerr.New(mongoerr.InvalidNamespace, "Collectionless $listCatalog must be run against the 'admin' database with {aggregate: 1}")
		}
		var docs []bson.Doc
		for _, coll := range c.All() {
			docs = append(docs, catalogRow(coll))
		}
		return docs, nil
	}
	coll := c.Collection(ns)
	if coll == nil {
		return nil, nil
	}
	return []bson.Doc{catalogRow(coll)}, nil
}

func catalogRow(coll *catalog.Collection) bson.Doc {
	b := bson.Build().String("db", coll.NS.DB).String("name", coll.NS.Coll).String("type", collectionType(coll))
	if coll.IsView() {
		return b.String("viewOn", coll.Options.ViewOn).Value("pipeline", coll.Options.Pipeline.ArrayValue()).Doc()
	}
	b.Object("md").String("ns", coll.NS.String()).Object("options").Binary("uuid", 4, coll.UUID[:]).Fields(coll.Options.Doc).End().Array("indexes")
	for i, d := range coll.Indexes {
		b.Object(bson.IndexKey(i)).Document("spec", d.Spec).Bool("ready", true).End()
	}
	return b.End().End().String("ns", coll.NS.String()).Doc()
}

// clusterCatalogStage lists the collections of a database, or of all when it is the admin database that is asked. Nothing
// lies on shards here, which the list says when it is asked for them.
func (s *Server) clusterCatalogStage(ns namespace.NS, shards bool) ([]bson.Doc, error) {
	var docs []bson.Doc
	for _, coll := range s.Query.Store.Catalog().All() {
		if ns.DB != "admin" && coll.NS.DB != ns.DB {
			continue
		}
		b := bson.Build().String("ns", coll.NS.String()).String("db", coll.NS.DB).String("type", collectionType(coll)).
			Document("options", coll.Options.Doc).Object("info").Bool("readOnly", coll.IsView())
		if !coll.IsView() {
			b.Binary("uuid", 4, coll.UUID[:])
		}
		b.End()
		if listsIDIndex(coll) {
			b.Document("idIndex", idIndexOf(coll))
		}
		b.Bool("sharded", false)
		if shards {
			b.Array("shards").End()
		}
		docs = append(docs, b.Doc())
	}
	return docs, nil
}

// appendLatencyStats appends how long reads, writes and commands on a namespace took, in microseconds.
func (s *Server) appendLatencyStats(b *bson.Builder, ns namespace.NS, histograms bool) {
	s.usage.mu.RLock()
	counters := s.usage.mu.of[ns.String()]
	s.usage.mu.RUnlock()
	if counters == nil {
		counters = &used{}
	}
	b.Object("latencyStats")
	for _, kind := range [4]struct {
		name string
		of   *latency
	}{{"reads", &counters.reads}, {"writes", &counters.writes}, {"commands", &counters.commands}, {"transactions", &latency{}}} {
		b.Object(kind.name)
		if histograms {
			kind.of.spread.Load().print(b)
		}
		b.Int64("latency", kind.of.micros.Load()).Int64("ops", kind.of.count.Load()).Int64("queryableEncryptionLatencyMicros", 0).End()
	}
	b.End()
}
