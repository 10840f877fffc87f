package command

import (
	"context"
	"slices"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/parameter"
	"github.com/ebbdb/ebb/internal/replset"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// A Server may be one that answers reads for clients beside another server, which works on the same data (ReadBeside). Clients see one router: what they
// ask is answered here where Answers says so, and by the other server otherwise. Whoever calls it sees to it that it knows all that the other one has
// acknowledged before the request came.

// ReadBeside has the server be one that reads, for as long as it lives.
func (s *Server) ReadBeside(ctx context.Context) error {
	stored, err := s.Query.AnySetting(ctx, catalog.ReplicaConfigNS)
	if err != nil {
		return err
	}
	config, err := readReplicaConfig(stored)
	if err != nil {
		return err
	}
	s.readsBeside = true
	s.Replica.Follow(replset.View{Config: config, Self: 0, Term: s.ReplicaSet.Term.Load(), Primary: config.Members[0].Host, State: replset.Secondary})
	return nil
}

// LoadSettings reads anew what was set for all servers.
func (s *Server) LoadSettings(ctx context.Context) error {
	if err := s.LoadStoredSettings(ctx); err != nil {
		return err
	}
	return s.loadDefaults(ctx)
}

// IsSetting says whether a collection holds what LoadSettings reads.
func IsSetting(ns namespace.NS) bool {
	return ns == clusterParametersNS() || ns == settingsNS || ns == versionNS()
}

// readStages are the stages by which a pipeline says nothing of the server and writes nothing.
var readStages = []string{"$addFields", "$bucket", "$bucketAuto", "$count", "$densify", "$documents", "$facet", "$fill", "$geoNear", "$graphLookup", "$group",
	"$limit", "$lookup", "$match", "$project", "$redact", "$replaceRoot", "$replaceWith", "$sample", "$set", "$setWindowFields", "$skip", "$sort",
	"$sortByCount", "$unionWith", "$unset", "$unwind"}

const (
	// maxReadDepth is how deep pipelines and views lie within one another that are looked through.
	maxReadDepth = 20
	// maxAnswered is how many cursors one killCursors may name that is looked through.
	maxAnswered = 1000
)

// MayAnswer says whether a request may be one that a server answers that reads beside another one, by what it says itself: it reads, in no transaction, what
// users have stored, and says nothing of a server; or it is about cursors, some of which were opened here.
func MayAnswer(body bson.Doc) bool {
	switch body.FirstKey() {
	case "getMore", "killCursors":
		return true
	case "find", "count", "distinct":
		if body.Lookup("tailable").Truthy() || body.Lookup("awaitData").Truthy() {
			return false
		}
	case "aggregate":
		if !body.Lookup("explain").IsMissing() || !watches(body) && !isReadPipeline(body.Lookup("pipeline"), 0) {
			return false
		}
	default:
		return false
	}
	if db := body.Lookup("$db"); db.Type != bson.TypeString || slices.Contains([]string{"admin", catalog.LocalDB, "config"}, db.Str()) && !watches(body) {
		return false
	}
	for _, field := range []string{"txnNumber", "autocommit", "startTransaction", "encryptionInformation"} {
		if !body.Lookup(field).IsMissing() {
			return false
		}
	}
	concern := body.Lookup("readConcern")
	if concern.IsMissing() {
		return true
	}
	if concern.Type != bson.TypeObject || !concern.Doc().Lookup("atClusterTime").IsMissing() {
		return false
	}
	level := concern.Doc().Lookup("level")
	return level.IsMissing() || level.Type == bson.TypeString && slices.Contains([]string{"local", "majority", "available"}, level.Str())
}

// watches says whether a request opens a change stream.
func watches(body bson.Doc) bool {
	stages := body.Lookup("pipeline")
	if body.FirstKey() != "aggregate" || stages.Type != bson.TypeArray {
		return false
	}
	first := stages.Doc().Lookup("0")
	return first.Type == bson.TypeObject && first.Doc().FirstKey() == "$changeStream" && first.Doc().Lookup("$changeStream").Type == bson.TypeObject && isReadRest(stages.Doc())
}

// isReadRest says whether what comes behind the first stage has none but readStages, or splits events.
func isReadRest(stages bson.Doc) bool {
	rest := bson.Build().Array("rest")
	n := 0
	for it := stages.Iter(); it.Next(); n++ {
		split := it.Value().Type == bson.TypeObject && it.Value().Doc().FirstKey() == "$changeStreamSplitLargeEvent"
		if n > 0 && !split {
			rest.Value(bson.IndexKey(n), it.Value())
		}
	}
	return isReadPipeline(rest.End().Doc().Lookup("rest"), 0)
}

// Watches says whether a request opens a change stream, or reads on in one that was opened here.
func (s *Server) Watches(body bson.Doc) bool {
	if body.FirstKey() == "getMore" {
		id := body.Lookup("getMore")
		return id.Type == bson.TypeInt64 && s.Cursors.Watches(id.Int64())
	}
	return watches(body)
}

// IsAboutCursors says whether a request is about cursors that are open.
func IsAboutCursors(body bson.Doc) bool {
	name := body.FirstKey()
	return name == "getMore" || name == "killCursors"
}

// Answers says whether a request that may be answered here is: by the cursors that there are, and what the server knows by now. Where it is watched what
// reads, only cursors go on.
func (s *Server) Answers(body bson.Doc, watched bool) bool {
	it := body.Iter()
	it.Next()
	first := it.Value()
	switch body.FirstKey() {
	case "getMore":
		return first.Type == bson.TypeInt64 && s.hasCursor(first.Int64())
	case "killCursors":
		return s.hasCursors(body.Lookup("cursors"))
	}
	if watched {
		return false
	}
	if concern := body.Lookup("readConcern"); concern.Type == bson.TypeObject && s.isToCome(concern.Doc().Lookup("afterClusterTime")) {
		return false
	}
	if watches(body) {
		return !s.isToCome(body.Lookup("pipeline").Doc().Lookup("0").Doc().Lookup("$changeStream").Doc().Lookup("startAtOperationTime"))
	}
	db := body.Lookup("$db").Str()
	seen := seenViews{s.Query.Store.Catalog(), map[namespace.NS]bool{}}
	if stages := body.Lookup("pipeline"); stages.Type == bson.TypeArray && !seen.readsOthers(db, stages, 0) {
		return false
	}
	return first.Type != bson.TypeString || seen.isRead(namespace.NS{DB: db, Coll: first.Str()}, 0)
}

// isToCome says whether a time is one of which nothing is known here; what is none the other server refuses.
func (s *Server) isToCome(v bson.Value) bool {
	return !v.IsMissing() && (v.Type != bson.TypeTimestamp || oplog.NewTimestamp(v.Timestamp()) > s.Query.Store.LastLogged())
}

// seenViews are the views that were looked at, each once.
type seenViews struct {
	catalog *catalog.Catalog
	seen    map[namespace.NS]bool
}

// isRead says whether what a name stands for reads what users have stored.
func (v *seenViews) isRead(ns namespace.NS, depth int) bool {
	c := v.catalog.Collection(ns)
	if c == nil || !c.IsView() || v.seen[ns] {
		return true
	}
	v.seen[ns] = true
	stages := c.Options.Pipeline.ArrayValue()
	return depth < maxReadDepth && isReadPipeline(stages, 0) && v.readsOthers(ns.DB, stages, depth+1) && v.isRead(namespace.NS{DB: ns.DB, Coll: c.Options.ViewOn}, depth+1)
}

// readsOthers says whether the other collections and views that a pipeline reads are such as well.
func (v *seenViews) readsOthers(db string, stages bson.Value, depth int) bool {
	if depth > maxReadDepth {
		return false
	}
	for it := stages.Doc().Iter(); it.Next(); {
		if it.Value().Type != bson.TypeObject {
			continue
		}
		spec := it.Value().Doc().Lookup(it.Value().Doc().FirstKey())
		for _, name := range othersOf(spec) {
			if !v.isRead(namespace.NS{DB: db, Coll: name}, depth+1) {
				return false
			}
		}
		for _, inner := range pipelinesOf(spec) {
			if !v.readsOthers(db, inner, depth+1) {
				return false
			}
		}
	}
	return true
}

// othersOf are the names of collections that a stage may mean, and pipelinesOf the pipelines within it.
func othersOf(spec bson.Value) (names []string) {
	if spec.Type == bson.TypeString { // of $unionWith; a field's path is the name of no view
		return []string{spec.Str()}
	}
	if spec.Type == bson.TypeObject {
		for _, field := range []string{"from", "coll"} {
			if v := spec.Doc().Lookup(field); v.Type == bson.TypeString {
				names = append(names, v.Str())
			}
		}
	}
	return names
}

func pipelinesOf(spec bson.Value) (found []bson.Value) {
	if spec.Type != bson.TypeObject {
		return nil
	}
	for it := spec.Doc().Iter(); it.Next(); {
		if it.Value().Type == bson.TypeArray {
			found = append(found, it.Value())
		}
	}
	return found
}

// isReadPipeline says whether an array has none but readStages.
func isReadPipeline(stages bson.Value, depth int) bool {
	if stages.Type != bson.TypeArray || depth > maxReadDepth {
		return false
	}
	for it := stages.Doc().Iter(); it.Next(); {
		stage := it.Value()
		if stage.Type != bson.TypeObject {
			return false
		}
		name := stage.Doc().FirstKey()
		if !slices.Contains(readStages, name) || !isReadStage(name, stage.Doc().Lookup(name), depth) {
			return false
		}
	}
	return true
}

// isReadStage looks at the pipelines, and at the other collections, that a stage has.
func isReadStage(name string, spec bson.Value, depth int) bool {
	if spec.Type != bson.TypeObject {
		return true
	}
	switch d := spec.Doc(); name {
	case "$facet":
		for it := d.Iter(); it.Next(); {
			if !isReadPipeline(it.Value(), depth+1) {
				return false
			}
		}
	case "$lookup", "$graphLookup", "$unionWith":
		if from := d.Lookup("from"); !from.IsMissing() && from.Type != bson.TypeString || !d.Lookup("db").IsMissing() {
			return false
		}
		if inner := d.Lookup("pipeline"); !inner.IsMissing() {
			return isReadPipeline(inner, depth+1)
		}
	}
	return true
}

func (s *Server) hasCursor(id int64) bool {
	_, _, ok := s.Cursors.Owner(id)
	return ok
}

// hasCursors says whether all of an array are cursors that were opened here.
func (s *Server) hasCursors(ids bson.Value) bool {
	if ids.Type != bson.TypeArray {
		return false
	}
	n := 0
	for it := ids.Doc().Iter(); it.Next(); n++ {
		if id := it.Value(); n == maxAnswered || id.Type != bson.TypeInt64 || !s.hasCursor(id.Int64()) {
			return false
		}
	}
	return n > 0
}

// IsForAll says whether a request is about sessions of the client's, which the server that it is connected to has, too. What is for all servers
// (commandsBeside) the server that works passes on.
func IsForAll(body bson.Doc) bool {
	switch body.FirstKey() {
	case "endSessions", "killSessions", "refreshSessions":
		return true
	}
	return false
}

// WatchesReads says whether reads have to be answered by the server that works on the data, for something there is told of each: the profiler, or a test.
func (s *Server) WatchesReads() bool { return s.Profile.isOn() || s.failPoints.anyOn() }

func (f *FailPoints) anyOn() bool {
	if f == nil {
		return false
	}
	for _, p := range f.byName {
		if p.IsOn() {
			return true
		}
	}
	return false
}

// isOn says whether anything is profiled.
func (p *Profiler) isOn() bool {
	state := p.load()
	for _, of := range state.databases {
		if of.Level > 0 {
			return true
		}
	}
	return state.level > 0
}

// readParameters are those that say how reads are answered.
var readParameters = []string{"acceptApiVersion2", "allowDiskUseByDefault", "notablescan", "requireApiVersion"}

// ReadParameters tells other servers of the parameters by which this one answers reads.
func (s *Server) ReadParameters() bson.Doc {
	b := bson.Build()
	for _, name := range readParameters {
		if p := s.Params.Lookup(name); p != nil {
			b.Value(name, p.Get())
		}
	}
	return b.Doc()
}

// TakeReadParameters answers reads by the parameters of another server.
func (s *Server) TakeReadParameters(told bson.Doc) error {
	for _, name := range readParameters {
		p, v := s.Params.Lookup(name), told.Lookup(name)
		if p == nil || v.IsMissing() || bson.Equal(p.Get(), v) {
			continue
		}
		if _, err := s.Params.Set(name, v, parameter.Runtime); err != nil {
			return err
		}
	}
	return nil
}

// BecomeStored has a connection be a user's, who has logged in at the other server. It fails where no such user is stored: only that server knows then
// what the user may do.
func (s *Server) BecomeStored(ctx context.Context, c *Conn, name auth.Name) error {
	if name.DB == externalDB { // for whom somebody may vouch there, for a while
		return mongoerr.New(mongoerr.UserNotFound, "users of %s are known to the server that works alone", externalDB)
	}
	user, err := s.Users.Find(ctx, name)
	if err != nil {
		return err
	}
	if !c.allows(user) {
		return errRestricted
	}
	c.become(user)
	return nil
}

// notBeside refuses what a server that reads beside another one does not do itself.
func (op *Op) notBeside() error {
	if op.Command.writes() || op.multi || op.writesItsResult() {
		return mongoerr.New(mongoerr.NotWritablePrimary, "another server works on the data")
	}
	return nil
}
