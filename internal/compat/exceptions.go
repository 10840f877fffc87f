package compat

import (
	"fmt"
	"strings"

	"github.com/ebbdb/ebb/internal/mongoerr"
)

// exceptions are what the tables do not tell, by section.
func exceptions() map[string][]exception {
	return map[string][]exception{
		"query":      queryExceptions(),
		"projection": projectionExceptions(),
		"update":     updateExceptions(),
		"expression": expressionExceptions(),
		"stage":      stageExceptions(),
		"command":    commandExceptions(),
	}
}

const geoQuery = `{find: "c", filter: {loc: {$geoWithin: {%s: %s}}}}`

// A part of another operator has no row of its own: it is complete when the command succeeds.
func queryExceptions() []exception {
	return []exception{
		{name: "$box", state: complete, since: "1.4", doc: "A rectangle for $geoWithin.", try: fmt.Sprintf(geoQuery, "$box", "[[0, 0], [2, 2]]")},
		{name: "$center", state: complete, since: "1.4", doc: "A circle on the plane for $geoWithin.", try: fmt.Sprintf(geoQuery, "$center", "[[0, 0], 2]")},
		{name: "$centerSphere", state: complete, since: "1.8", doc: "A circle on the sphere for $geoWithin.", try: fmt.Sprintf(geoQuery, "$centerSphere", "[[0, 0], 0.1]")},
		{name: "$polygon", state: complete, since: "1.9", doc: "A polygon on the plane for $geoWithin.", try: fmt.Sprintf(geoQuery, "$polygon", "[[0, 0], [2, 0], [2, 2]]")},
		{name: "$geometry", state: complete, since: "2.4", doc: "A GeoJSON geometry.",
			try: fmt.Sprintf(geoQuery, "$geometry", `{type: "Polygon", coordinates: [[[0, 0], [2, 0], [2, 2], [0, 0]]]}`)},
		{name: "$maxDistance", state: complete, since: "1.4", doc: "How far $near and $nearSphere look.", try: `{find: "c", filter: {loc: {$near: [1, 1], $maxDistance: 5}}}`},
		{name: "$minDistance", state: complete, since: "2.6", doc: "From how far on $near and $nearSphere look.",
			try: `{find: "c", filter: {loc: {$near: {$geometry: {type: "Point", coordinates: [1, 1]}, $minDistance: 0}}}}`},
		{name: "$rand", state: complete, since: "4.4.2", doc: "A random number, within $expr.", try: `{find: "c", filter: {$expr: {$lt: [{$rand: {}}, 2]}}}`},
		{name: "$regex", state: partial, note: "Recursion and branch reset groups are not taken.", try: `{find: "c", filter: {a: {$regex: "(?R)"}}}`, code: mongoerr.NotImplemented},
	}
}

func projectionExceptions() []exception {
	return []exception{
		{name: "$", state: complete, since: "2.2", doc: "The element of an array that matched.", try: `{find: "c", filter: {a: 1}, projection: {"a.$": 1}}`},
		{name: "$elemMatch", state: complete, since: "2.2", doc: "The first element of an array that meets a condition.", try: `{find: "c", projection: {a: {$elemMatch: {$gt: 1}}}}`},
		{name: "$meta", state: complete, since: "2.6", doc: "Metadata of the document.", try: `{find: "c", projection: {x: {$meta: "recordId"}}}`},
		{name: "$slice", state: complete, since: "1.5.1", doc: "A part of an array.", try: `{find: "c", projection: {a: {$slice: [1, 1]}}}`},
	}
}

const updateC = `{update: "c", updates: [{q: {a: 1}, u: %s}]}`

func updateExceptions() []exception {
	return []exception{
		{name: "$", state: complete, since: "1.0", doc: "The element that the query matched.", try: fmt.Sprintf(updateC, `{$set: {"a.$": 1}}`)},
		{name: "$[]", state: complete, since: "3.6", doc: "All elements of an array.", try: fmt.Sprintf(updateC, `{$inc: {"a.$[]": 0}}`)},
		{name: "$[<identifier>]", state: complete, since: "3.6", doc: "The elements that meet one of the arrayFilters.",
			try: `{update: "c", updates: [{q: {}, u: {$inc: {"a.$[x]": 0}}, arrayFilters: [{x: 1}]}]}`},
		{name: "$each", state: complete, since: "2.4", doc: "Several elements for $push and $addToSet.", try: fmt.Sprintf(updateC, `{$push: {b: {$each: [1, 2]}}}`)},
		{name: "$position", state: complete, since: "2.6", doc: "Where $push adds.", try: fmt.Sprintf(updateC, `{$push: {b: {$each: [1], $position: 0}}}`)},
		{name: "$slice", state: complete, since: "2.4", doc: "How many elements $push leaves.", try: fmt.Sprintf(updateC, `{$push: {b: {$each: [1], $slice: 2}}}`)},
		{name: "$sort", state: complete, since: "2.4", doc: "The order in which $push leaves elements.", try: fmt.Sprintf(updateC, `{$push: {b: {$each: [1], $sort: 1}}}`)},
	}
}

func expressionExceptions() []exception {
	later := "It comes after MongoDB 8.2."
	encrypted := "It refuses plain text, as MongoDB does; queryable encryption is not there yet."
	return []exception{
		{name: "$encStrContains", state: refused, note: encrypted, try: stage(`{$project: {x: {$encStrContains: {input: "$a", substring: "x"}}}}`), code: 10111808},
		{name: "$encStrEndsWith", state: refused, note: encrypted, try: stage(`{$project: {x: {$encStrEndsWith: {input: "$a", suffix: "x"}}}}`), code: 10111808},
		{name: "$encStrNormalizedEq", state: refused, note: encrypted, try: stage(`{$project: {x: {$encStrNormalizedEq: {input: "$a", string: "x"}}}}`), code: 10111808},
		{name: "$encStrStartsWith", state: refused, note: encrypted, try: stage(`{$project: {x: {$encStrStartsWith: {input: "$a", prefix: "x"}}}}`), code: 10111808},
		{name: "$similarityCosine", since: "8.3", doc: "How alike two vectors are, by their angle.", state: notOffered, note: later},
		{name: "$similarityDotProduct", since: "8.3", doc: "How alike two vectors are, by their product.", state: notOffered, note: later},
		{name: "$similarityEuclidean", since: "8.3", doc: "How alike two vectors are, by their distance.", state: notOffered, note: later},
	}
}

func stage(s string) string { return `{aggregate: "c", pipeline: [` + s + `], cursor: {}}` }

func stageExceptions() []exception {
	search := "All documents are looked at."
	return []exception{
		{name: "$changeStream", state: refused, note: "Change streams need a replica set.", try: stage(`{$changeStream: {}}`), code: 40573},
		{name: "$changeStreamSplitLargeEvent", state: refused, note: "Change streams need a replica set.", try: stage(`{$changeStreamSplitLargeEvent: {}}`), code: mongoerr.IllegalOperation},
		{name: "$graphLookup", state: partial, note: "What it finds for a document has to fit the memory, with `allowDiskUse` too.",
			try: stage(`{$graphLookup: {from: "c", startWith: "$a", connectFromField: "a", connectToField: "b", as: "d"}}`)},
		{name: "$listSampledQueries", state: refused, note: "Queries are sampled on replica sets and shards only.",
			try: `{aggregate: 1, pipeline: [{$listSampledQueries: {}}], cursor: {}}`, code: mongoerr.IllegalOperation},
		{name: "$search", state: partial, note: search, try: stage(`{$search: {text: {query: "x", path: "a"}}}`)},
		{name: "$searchBeta", state: partial, note: search, try: stage(`{$searchBeta: {text: {query: "x", path: "a"}}}`)},
		{name: "$searchMeta", state: partial, note: search, try: stage(`{$searchMeta: {text: {query: "x", path: "a"}}}`)},
		{name: "$shardedDataDistribution", since: "6.0.3", doc: "How data lies on shards.", state: notOffered, note: "There are no shards."},
		{name: "$vectorSearch", state: partial, note: "All vectors are compared; fields that are embedded automatically are not there.",
			try: stage(`{$vectorSearch: {index: "x", path: "v", queryVector: [1], exact: true, limit: 1}}`)},
	}
}

func commandExceptions() []exception {
	out := []exception{
		{name: "abortTransaction", state: refused, note: "Transactions need a replica set.", try: `{abortTransaction: 1}`, code: mongoerr.CommandFailed},
		{name: "appendOplogNote", state: refused, note: "There is no oplog without a replica set.", try: `{appendOplogNote: 1, data: {}}`, code: mongoerr.NoReplicationEnabled},
		{name: "commitTransaction", state: refused, note: "Transactions need a replica set.", try: `{commitTransaction: 1}`, code: mongoerr.CommandFailed},
		{name: "autoCompact", state: partial, note: "The store compacts by itself; the command is checked and changes nothing.", try: `{autoCompact: true}`},
		{name: "profile", state: partial, note: "Levels 1 and 2 are refused at a secondary of a set of several members.", try: `{profile: 0}`},
		{name: "compactStructuredEncryptionData", state: refused, note: "Encrypted collections need a replica set.",
			try: `{compactStructuredEncryptionData: "c", compactionTokens: {}}`, code: 6346807},
		{name: "createSearchIndexes", state: partial, note: "Fields that are embedded automatically are not there.",
			try: `{createSearchIndexes: "c", indexes: [{name: "x", type: "vectorSearch", definition: {fields: [{type: "vector", path: "v", numDimensions: 1, similarity: "cosine"}]}}]}`},
		{name: "setIndexCommitQuorum", state: refused, note: "There are no other members to build an index.",
			try: `{setIndexCommitQuorum: "c", indexNames: ["x"], commitQuorum: 1}`, code: mongoerr.IndexNotFound},
		{name: "getDefaultRWConcern", state: refused, note: "It belongs to replica sets.", try: `{getDefaultRWConcern: 1}`, code: 51300},
		{name: "replSetResizeOplog", state: refused, note: "There is no oplog without a replica set.", try: `{replSetResizeOplog: 1, size: 990}`, code: mongoerr.NamespaceNotFound},
		{name: "setDefaultRWConcern", state: refused, note: "It belongs to replica sets.", try: `{setDefaultRWConcern: 1, defaultReadConcern: {level: "local"}}`, code: 51300},
		{name: "setUserWriteBlockMode", state: refused, note: "It belongs to replica sets.", try: `{setUserWriteBlockMode: 1, global: true}`, code: mongoerr.IllegalOperation},
	}
	for _, name := range []string{"AbortPrimaryCatchUp", "Freeze", "GetConfig", "GetStatus", "Initiate", "Maintenance", "Reconfig", "StepDown", "SyncFrom",
		"GetRBID", "Heartbeat", "RequestVotes", "StepUp", "UpdatePosition"} {
		out = append(out, exception{name: "replSet" + name, state: refused, note: "The server runs alone.", try: `{replSet` + name + `: 1}`, code: mongoerr.NoReplicationEnabled})
	}
	return append(out, absentCommands()...)
}

// absentCommands are the commands without a row, which are answered as any unknown one is.
func absentCommands() []exception {
	var out []exception
	add := func(s state, note, names string) {
		for _, name := range strings.Fields(names) {
			out = append(out, exception{name: name, state: s, note: note})
		}
	}
	add(notOffered, "The filter of the audit log is set at the start, and auditAuthorizationSuccess is a parameter.", "getAuditConfig setAuditConfig")
	add(notOffered, "Only servers over TiKV have it, which clients see as routers.", "isdbgrid")
	add(notOffered, "There are no shards.", `abortMoveCollection abortReshardCollection abortUnshardCollection addShard addShardToZone
		analyzeShardKey balancerCollectionStatus balancerStart balancerStatus balancerStop checkMetadataConsistency cleanupOrphaned
		cleanupReshardCollection clearJumboFlag commitReshardCollection configureCollectionBalancing configureQueryAnalyzer
		enableSharding flushRouterConfig getShardMap listShards mergeAllChunksOnShard mergeChunks moveChunk moveCollection
		movePrimary moveRange refineCollectionShardKey removeShard removeShardFromZone reshardCollection setAllowMigrations
		shardCollection shardingState split transitionFromDedicatedConfigServer transitionToDedicatedConfigServer unshardCollection
		updateZoneKeyRange`)
	return out
}
