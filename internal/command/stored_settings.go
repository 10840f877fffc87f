package command

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/operation"
	"github.com/ebbdb/ebb/internal/parameter"
	"github.com/ebbdb/ebb/internal/query"
	"github.com/ebbdb/ebb/internal/serverlog"
	"github.com/ebbdb/ebb/internal/storage"
)

// What is set for the server as a whole is stored where MongoDB stores it: the version of the features in admin.system.version,
// and a document a parameter in config.clusterParameters. The query settings are such a parameter, too, although no
// command shows them as one. A change is written down first and holds afterwards; one is made at a time.

// querySettingsName is the parameter that holds the query settings.
const querySettingsName = "querySettings"

func versionNS() namespace.NS { return namespace.NS{DB: "admin", Coll: "system.version"} }

func clusterParametersNS() namespace.NS {
	return namespace.NS{DB: "config", Coll: "clusterParameters"}
}

// LoadStoredSettings reads what was set before the server was started. It is called before anybody is served. What cannot be read is
// as if it had not been set.
func (s *Server) LoadStoredSettings(ctx context.Context) error {
	version, err := s.Query.StoredSetting(ctx, versionNS(), bson.String(fcvName))
	if err != nil {
		return err
	}
	if v := version.Lookup("version"); v.Type == bson.TypeString && isFCV(v.Str()) {
		if err := s.Params.Lookup(fcvName).Set(v); err != nil {
			return err
		}
	}
	for _, p := range clusterTable() {
		doc, err := s.Query.StoredSetting(ctx, clusterParametersNS(), bson.String(p.name))
		if err != nil {
			return err
		}
		s.loadClusterParameter(p, doc)
	}
	doc, err := s.Query.StoredSetting(ctx, clusterParametersNS(), bson.String(querySettingsName))
	if err == nil && doc != nil {
		s.loadSettings(ctx, doc)
	}
	return err
}

func (s *Server) loadClusterParameter(p clusterParameter, stored bson.Doc) {
	if stored == nil {
		return
	}
	doc, err := p.read(withoutIdentity(stored))
	if err != nil {
		s.Log.Warn("A stored cluster parameter cannot be used", "name", p.name, "error", err)
		return
	}
	s.cluster.restore(p.name, doc, stored.Lookup("clusterParameterTime"))
}

// withoutIdentity is the value of a parameter that is stored as d.
func withoutIdentity(d bson.Doc) bson.Doc {
	b := bson.Build()
	for it := d.Iter(); it.Next(); {
		if it.Key() != "_id" && it.Key() != "clusterParameterTime" {
			b.Value(it.Key(), it.Value())
		}
	}
	return b.Doc()
}

// alter runs f, which writes a setting down (query.Engine.StoreSetting) and then has it hold, alone among those that do. Where the operation waits no longer for
// others to have the setting, f goes on without it: from StoreSetting on it must not touch what belongs to the operation.
func (op *Op) alter(f func(ctx context.Context, s *Server) error) error {
	s := op.Server
	_, err := storage.Apart(op.patiently(), s.Query.Store, func(ctx context.Context, _ *struct{}) error {
		if err := s.takeTurn(ctx); err != nil {
			return err
		}
		defer func() { <-s.altering }()
		return f(ctx, s)
	})
	return err
}

// takeTurn waits until nobody changes a setting, for as long as one may be waited for.
func (s *Server) takeTurn(ctx context.Context) error {
	within := ctx
	if p := kv.PatienceOf(ctx); p != nil && p.Timeout > 0 {
		var cancel context.CancelFunc
		within, cancel = clock.WithTimeout(ctx, p.Clock, p.Timeout)
		defer cancel()
	}
	select {
	case s.altering <- struct{}{}:
		return nil
	case <-within.Done():
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return kv.ErrImpatient
}

// storeVersion writes the version of the features down.
func (op *Op) storeVersion(p *parameter.Parameter, version string) error {
	return op.alter(func(ctx context.Context, s *Server) error {
		doc := bson.Build().String("_id", fcvName).String("version", version).Doc()
		err := s.Query.StoreSetting(ctx, versionNS(), doc, op.Now)
		if err == nil {
			err = p.Set(bson.String(version))
		}
		if err == nil {
			s.Log.Info("setFeatureCompatibilityVersion succeeded", "newVersion", version)
		}
		return err
	})
}

// storeParameter writes a parameter of the cluster down, for alter.
func (op *Op) storeParameter(ctx context.Context, name string, v clusterValue) error {
	if err := op.enterWrites(); err != nil {
		return err
	}
	defer op.Writes.Leave()
	doc := bson.Build().String("_id", name).Timestamp("clusterParameterTime", v.seconds, v.increment).Fields(v.doc).Doc()
	return op.Query.StoreSetting(ctx, clusterParametersNS(), doc, op.Now)
}

// changeSettings makes a change of the query settings and writes all of them down; when that fails they are what they were.
func (op *Op) changeSettings(change func() error) error {
	return op.alter(func(ctx context.Context, s *Server) error {
		settings := &s.Query.Settings
		before := settings.All()
		if err := change(); err != nil {
			return err
		}
		err := op.storeParameter(ctx, querySettingsName, s.cluster.next(settingsArray(settings.All()), op.Now))
		if err != nil {
			settings.Replace(before)
		}
		return err
	})
}

func settingsArray(all []*query.Setting) bson.Doc {
	b := bson.Build().Array("settingsArray")
	for i, x := range all {
		b.Object(bson.IndexKey(i)).String("queryShapeHash", x.Hash).Document("settings", x.Doc)
		if x.Query != nil {
			b.Document("representativeQuery", x.Query)
		}
		b.End()
	}
	return b.End().Doc()
}

// loadSettings takes the query settings over that doc stores.
func (s *Server) loadSettings(ctx context.Context, doc bson.Doc) {
	list := doc.Lookup("settingsArray")
	if list.Type != bson.TypeArray {
		return
	}
	var all []*query.Setting
	for it := list.Doc().Iter(); it.Next(); {
		if it.Value().Type != bson.TypeObject {
			continue
		}
		x, err := s.loadSetting(ctx, it.Value().Doc())
		if err != nil {
			s.Log.Warn("A stored query setting cannot be used", "setting", serverlog.Client(it.Value().String()), "error", serverlog.Client(err))
			continue
		}
		all = append(all, x)
	}
	s.Query.Settings.Replace(all)
	s.cluster.restore(querySettingsName, nil, doc.Lookup("clusterParameterTime"))
}

func (s *Server) loadSetting(ctx context.Context, stored bson.Doc) (*query.Setting, error) {
	hash, err := shapeHash(stored.Lookup("queryShapeHash").Str())
	if err != nil {
		return nil, err
	}
	read, err := readSettings(stored.Lookup("settings").Doc())
	if err != nil {
		return nil, err
	}
	x := &query.Setting{Hash: hash, Doc: read.document(), Reject: read.reject.Truthy(), Hints: read.indexHints()}
	asked := stored.Lookup("representativeQuery")
	if asked.Type != bson.TypeObject {
		return x, nil
	}
	op := &Op{Server: s, Ctx: ctx, Now: clock.Millis(s.Clock), Conn: NewConn(0, "", ""), Running: &operation.Operation{}}
	// A server whose setting makes it panic would never start again; the setting holds by its hash alone.
	_ = s.round(ctx, "The query of a stored query setting cannot be read", func(context.Context) error {
		if r, err := op.represent(asked.Doc()); err == nil {
			x.Query, x.Shape = asked.Doc().Clone(), r.Shape
		}
		return nil
	})
	return x, nil
}
