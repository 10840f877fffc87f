package pipeline

import (
	"math"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Server is a stage whose documents the server makes of what it knows: $collStats, $indexStats, $currentOp and their like.
// Its argument has been checked.
type Server struct{ written }

func server(name string, arg bson.Value) ([]Stage, error) {
	return one(&Server{written{name, arg}}), nil
}

func (s *Server) needs(*Dependencies) bool { return false }

// parseCollStats reads the argument as MongoDB does: field by field, null as nothing, the last of the same name. What is left
// has no nulls, and a scale that is an int.
func parseCollStats(_ *parsing, arg bson.Value) ([]Stage, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(5447000, "$collStats must take a nested object but found: $collStats: %s", arg)
	}
	given := map[string]bson.Doc{}
	for it := arg.Doc().Iter(); it.Next(); {
		name, v := it.Key(), it.Value()
		switch name {
		case "latencyStats", "storageStats", "count", "queryExecStats", "operationStats", "targetAllNodes":
		default:
			return nil, mongoerr.New(40415, "BSON field '$collStats.%s' is an unknown field.", name)
		}
		if v.Type == bson.TypeNull || v.Type == bson.TypeUndefined {
			continue
		}
		if name == "targetAllNodes" {
			if v.Type != bson.TypeBool {
				return nil, wrongType("$collStats."+name, v.Type, aBool)
			}
			continue
		}
		if v.Type != bson.TypeObject {
			return nil, wrongType("$collStats."+name, v.Type, anObject)
		}
		option, err := collStatsOption(name, v.Doc())
		if err != nil {
			return nil, err
		}
		given[name] = option
	}
	b := bson.Build()
	for _, name := range []string{"latencyStats", "storageStats", "count", "queryExecStats", "operationStats"} {
		if option, ok := given[name]; ok {
			b.Document(name, option)
		}
	}
	return server("$collStats", b.Doc().Value())
}

const allCollectionStats = "$_internalAllCollectionStats"

// parseAllCollectionStats parses what is $collStats of each collection that there is.
func parseAllCollectionStats(p *parsing, arg bson.Value) ([]Stage, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(6789103, "%[1]s must take a nested object but found: %[1]s: %[2]s", allCollectionStats, arg)
	}
	if p.NS.DB != "admin" || p.NS.Coll != "" {
		return nil, mongoerr.New(6789104, "The %s stage must be run on the admin database", allCollectionStats)
	}
	stats := bson.EmptyDoc.Value()
	if err := readStrict(allCollectionStats, arg.Doc(), want{name: "stats", to: &stats, types: anObject}); err != nil {
		return nil, err
	}
	of, err := parseCollStats(p, stats)
	if err != nil {
		return nil, err
	}
	return server(allCollectionStats, of[0].Spec())
}

func collStatsOption(name string, d bson.Doc) (bson.Doc, error) {
	switch name {
	case "latencyStats":
		var histograms bson.Value
		return d, readStrict("$collStats.latencyStats", d, want{name: "histograms", to: &histograms, types: aBool, given: true})
	case "storageStats":
		return storageStats(d)
	case "count", "queryExecStats":
		if !d.IsEmpty() {
			return nil, mongoerr.New(31170, "The '%s' option to $collStats must be an empty object", name)
		}
	}
	return d, nil
}

// storageStats reads what it knows and ignores the rest.
func storageStats(d bson.Doc) (bson.Doc, error) {
	b := bson.Build()
	for it := d.Iter(); it.Next(); {
		v, types := it.Value(), aBool
		switch it.Key() {
		case "scale":
			types = []bson.Type{bson.TypeInt64, bson.TypeInt32, bson.TypeDecimal, bson.TypeDouble}
		case "verbose", "waitForLock", "numericOnly":
		default:
			continue
		}
		if v.Type == bson.TypeNull || v.Type == bson.TypeUndefined {
			continue
		}
		if !hasType(types, v.Type) {
			return nil, wrongType("$collStats.storageStats."+it.Key(), v.Type, types)
		}
		if it.Key() != "scale" {
			b.Value(it.Key(), v)
			continue
		}
		n := min(v.RoundInt64(), math.MaxInt32)
		if n < 1 {
			return nil, mongoerr.New(mongoerr.BadValue, "BSON field 'scale' value must be >= 1, actual value '%d'", n)
		}
		b.Int32("scale", int32(n))
	}
	return b.Doc(), nil
}

func parseIndexStats(_ *parsing, arg bson.Value) ([]Stage, error) {
	if arg.Type != bson.TypeObject || !arg.Doc().IsEmpty() {
		return nil, mongoerr.New(28803, "The $indexStats stage specification must be an empty object")
	}
	return server("$indexStats", arg)
}

func parsePlanCacheStats(_ *parsing, arg bson.Value) ([]Stage, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(mongoerr.FailedToParse, "$planCacheStats value must be an object. Found: %s", arg.Type)
	}
	seen, all := false, false
	for it := arg.Doc().Iter(); it.Next(); {
		switch {
		case it.Key() != "allHosts":
			return nil, mongoerr.New(mongoerr.FailedToParse, "$planCacheStats parameter is unrecognized: %s", it.Key())
		case seen:
			return nil, mongoerr.New(mongoerr.FailedToParse, "$planCacheStats 'allHosts' may be given once only")
		case it.Value().Type != bson.TypeBool:
			return nil, mongoerr.New(13111, "wrong type for field (allHosts) %s != bool", it.Value().Type)
		}
		seen, all = true, it.Value().Bool()
	}
	if all {
		return nil, mongoerr.New(4503200, "$planCacheStats stage supports allHosts parameter only for sharded clusters")
	}
	return server("$planCacheStats", arg)
}

func parseCurrentOp(p *parsing, arg bson.Value) ([]Stage, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(mongoerr.TypeMismatch, "$currentOp options must be specified in an object, but found: %s", arg.Type)
	}
	var ignored, local, allNodes bson.Value
	wants := []want{{name: "localOps", to: &local, types: aBool, given: true}, {name: "targetAllNodes", to: &allNodes, types: aBool, given: true}}
	for _, name := range []string{"allUsers", "idleConnections", "idleSessions", "truncateOps", "idleCursors", "backtrace"} {
		wants = append(wants, want{name: name, to: &ignored, types: aBool, given: true})
	}
	if err := readStrict("$currentOp", arg.Doc(), wants...); err != nil {
		return nil, err
	}
	switch {
	case allNodes.Truthy() && local.Truthy():
		return nil, mongoerr.New(mongoerr.FailedToParse, "The 'localOps' parameter of the $currentOp stage cannot be true when 'targetAllNodes' is also true")
	case allNodes.Truthy():
		return nil, mongoerr.New(mongoerr.FailedToParse, "$currentOp supports targetAllNodes parameter only for sharded clusters")
	case p.NS.DB != "admin" && p.inside == "":
		return nil, mongoerr.New(mongoerr.InvalidNamespace, "$currentOp must be run against the 'admin' database with {aggregate: 1}")
	}
	return server("$currentOp", arg)
}

func parseListLocalSessions(p *parsing, arg bson.Value) ([]Stage, error) {
	if p.NS.Coll != "" && p.inside == "$facet" {
		return nil, mongoerr.New(mongoerr.InvalidNamespace, "$listLocalSessions must be run against the database with {aggregate: 1}")
	}
	return listSessions("$listLocalSessions", arg)
}

func parseListSessions(p *parsing, arg bson.Value) ([]Stage, error) {
	if p.NS.DB != "config" || p.NS.Coll != "system.sessions" {
		return nil, mongoerr.New(mongoerr.InvalidNamespace, "$listSessions may only be run against config.system.sessions")
	}
	return listSessions("$listSessions", arg)
}

func listSessions(name string, arg bson.Value) ([]Stage, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(mongoerr.TypeMismatch, "%s options must be specified in an object, but found: %s", name, arg.Type)
	}
	var allUsers, users bson.Value
	err := readStrict(name, arg.Doc(), want{name: "allUsers", to: &allUsers, types: aBool}, want{name: "users", to: &users, types: anArray})
	if err != nil {
		return nil, err
	}
	of, err := sessionUsers(name, users)
	if err != nil {
		return nil, err
	}
	if allUsers.Truthy() && len(of) > 0 {
		return nil, mongoerr.New(mongoerr.UnsupportedFormat, "%s may not specify {allUsers:true} and {users:[...]} at the same time", name)
	}
	b := bson.Build()
	if !allUsers.IsMissing() {
		b.Value("allUsers", allUsers)
	}
	if len(of) > 0 {
		b.Value("users", bson.ArrayOf(of...))
	}
	return server(name, b.Doc().Value())
}

// sessionUsers reads whose sessions are wanted, {user, db} each. A null among them is nobody.
func sessionUsers(name string, users bson.Value) ([]bson.Value, error) {
	var of []bson.Value
	if users.IsMissing() {
		return nil, nil
	}
	for it := users.Doc().Iter(); it.Next(); {
		v := it.Value()
		if v.Type == bson.TypeNull {
			continue
		}
		field := name + ".users." + it.Key()
		if v.Type != bson.TypeObject {
			return nil, wrongType(field, v.Type, anObject)
		}
		var user, db bson.Value
		err := readStrict(field, v.Doc(), want{name: "user", to: &user, types: aString, required: true}, want{name: "db", to: &db, types: aString, required: true})
		if err != nil {
			return nil, err
		}
		of = append(of, v)
	}
	return of, nil
}

func parseListClusterCatalog(p *parsing, arg bson.Value) ([]Stage, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(9621302, "The $listClusterCatalog stage specification must be an object. Found: %s", arg.Type)
	}
	for it := arg.Doc().Iter(); it.Next(); {
		switch it.Key() {
		case "shards", "tracked", "balancingConfiguration":
			if it.Value().Type != bson.TypeBool {
				return nil, wrongType("$listClusterCatalog."+it.Key(), it.Value().Type, aBool)
			}
		default:
			return nil, mongoerr.New(40415, "BSON field '$listClusterCatalog.%s' is an unknown field.", it.Key())
		}
	}
	if p.NS.Coll != "" {
		return nil, mongoerr.New(9621301, "$listClusterCatalog can't be run on a collection")
	}
	return server("$listClusterCatalog", arg)
}

func parseQuerySettings(_ *parsing, arg bson.Value) ([]Stage, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(7746800, "$querySettings stage expects a document as argument")
	}
	for it := arg.Doc().Iter(); it.Next(); {
		if it.Key() != "showDebugQueryShape" {
			return nil, mongoerr.New(40415, "BSON field '$querySettings.%s' is an unknown field.", it.Key())
		}
		if it.Value().Type != bson.TypeBool {
			return nil, wrongType("$querySettings.showDebugQueryShape", it.Value().Type, aBool)
		}
	}
	return server("$querySettings", arg)
}

func parseQueryStats(p *parsing, arg bson.Value) ([]Stage, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(mongoerr.FailedToParse, "$queryStats value must be an object. Found: %s", arg.Type)
	}
	var transform bson.Value
	if err := readStrict("$queryStats", arg.Doc(), want{name: "transformIdentifiers", to: &transform, types: anObject}); err != nil {
		return nil, err
	}
	if p.NS.DB != "admin" {
		return nil, mongoerr.New(mongoerr.InvalidNamespace, "$queryStats must be run against the 'admin' database with {aggregate: 1}")
	}
	return server("$queryStats", arg)
}

func parseListSampledQueries(p *parsing, arg bson.Value) ([]Stage, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(6875601, "The $listSampledQueries stage specification must be an object. Found: %s", arg.Type)
	}
	var ns bson.Value
	if err := readStrict("$listSampledQueries", arg.Doc(), want{name: "namespace", to: &ns, types: aString}); err != nil {
		return nil, err
	}
	if p.NS.DB != "admin" {
		return nil, mongoerr.New(mongoerr.InvalidNamespace, "$listSampledQueries must be run against the 'admin' database with {aggregate: 1}")
	}
	if p.Watches { // a member of a replica set, on which nobody has queries sampled
		return server("$listSampledQueries", arg)
	}
	return nil, mongoerr.New(mongoerr.IllegalOperation, "$listSampledQueries aggregation stage is not supported on a standalone mongod")
}

func parseListCatalog(_ *parsing, arg bson.Value) ([]Stage, error) {
	if arg.Type != bson.TypeObject || !arg.Doc().IsEmpty() {
		return nil, mongoerr.New(6200600, "The $listCatalog stage specification must be an empty object")
	}
	return server("$listCatalog", arg)
}
