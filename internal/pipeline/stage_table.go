package pipeline

import (
	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
)

// Row is one stage of the table.
type Row struct {
	Name, Since, Doc string

	parse func(p *parsing, arg bson.Value) ([]Stage, error)
	// first stages may stand nowhere else; last ones neither.
	first, last bool
	// brings says that the stage makes the documents, so that the pipeline needs no collection.
	brings bool
	// collectionless stages refuse to run on a collection: {aggregate: 1} only.
	collectionless bool
	// noFacet, noLookup and noUnion keep the stage out of the pipelines of those stages.
	noFacet, noLookup, noUnion bool
	// Needs is what whoever runs the stage must be allowed to do.
	Needs Needs
}

// Rows is the table of stages.
func Rows() []Row {
	return []Row{
		{Name: allCollectionStats, Since: "6.0.3", Doc: "Statistics of all collections.", parse: parseAllCollectionStats, first: true, brings: true, collectionless: true, noFacet: true, Needs: Needs{Source: true, Cluster: actions(privilege.AllCollectionStats)}},
		{Name: "$addFields", Since: "3.4", Doc: "Adds fields to documents.", parse: parseAddFields, Needs: Needs{Nothing: true}},
		{Name: "$bucket", Since: "3.4", Doc: "Groups documents by boundaries.", parse: parseBucket, Needs: Needs{Nothing: true}},
		{Name: "$bucketAuto", Since: "3.4", Doc: "Groups documents into a number of buckets of about the same size.", parse: parseBucketAuto, Needs: Needs{Nothing: true}},
		{Name: "$changeStream", Since: "3.6", Doc: "Watches for changes.", parse: parseChangeStream, first: true, Needs: Needs{Source: true, Also: needsChangeStream}},
		{Name: "$changeStreamSplitLargeEvent", Since: "6.0.9", Doc: "Splits large change events.", parse: parseChangeStreamSplit, noFacet: true, Needs: Needs{Nothing: true}},
		{Name: "$collStats", Since: "3.4", Doc: "Statistics of a collection.", parse: parseCollStats, first: true, brings: true, noFacet: true, Needs: Needs{Source: true, Own: actions(privilege.CollStats)}},
		{Name: "$count", Since: "3.4", Doc: "Counts documents.", parse: parseCount, Needs: Needs{Nothing: true}},
		{Name: "$currentOp", Since: "3.6", Doc: "Operations under way.", parse: parseCurrentOp, first: true, brings: true, collectionless: true, noFacet: true, Needs: Needs{Source: true, Also: needsCurrentOp}},
		{Name: "$densify", Since: "5.1", Doc: "Makes documents where a sequence has gaps.", parse: parseDensify, Needs: Needs{Nothing: true}},
		{Name: "$documents", Since: "5.1", Doc: "Documents written in the pipeline.", parse: parseDocuments, first: true, brings: true, collectionless: true, noFacet: true, Needs: Needs{Source: true}},
		{Name: "$ebbTTL", Since: "Ebb 0.1", Doc: "Documents in the order in which they expire.", parse: parseExpiring, first: true, noFacet: true, noLookup: true, noUnion: true, Needs: Needs{Source: true, Own: actions(privilege.ReadExpiry, privilege.Find)}},
		{Name: "$facet", Since: "3.4", Doc: "Several pipelines over the same documents.", parse: parseFacet, noFacet: true, Needs: Needs{Also: needsFacet}},
		{Name: "$fill", Since: "5.3", Doc: "Fills null and missing fields.", parse: parseFill, Needs: Needs{Nothing: true}},
		{Name: "$geoNear", Since: "2.4", Doc: "Documents by their distance from a point.", parse: parseGeoNear, first: true, noFacet: true, Needs: Needs{Nothing: true}},
		{Name: "$graphLookup", Since: "3.4", Doc: "Searches a collection recursively.", parse: parseGraphLookup, Needs: Needs{Also: needsGraphLookup}},
		{Name: "$group", Since: "2.2", Doc: "Groups documents by a key.", parse: parseGroup, Needs: Needs{Nothing: true}},
		{Name: "$indexStats", Since: "3.2", Doc: "How indexes are used.", parse: parseIndexStats, first: true, brings: true, noFacet: true, Needs: Needs{Source: true, Own: actions(privilege.IndexStats)}},
		{Name: "$limit", Since: "2.2", Doc: "The first documents only.", parse: parseLimit, Needs: Needs{Nothing: true}},
		{Name: "$listCatalog", Since: "6.0", Doc: "The catalogue's entries.", parse: parseListCatalog, first: true, brings: true, noFacet: true, Needs: Needs{Source: true, Also: needsListCatalog}},
		{Name: "$listClusterCatalog", Since: "8.1", Doc: "All collections of a cluster.", parse: parseListClusterCatalog, first: true, brings: true, collectionless: true, noFacet: true, Needs: Needs{Source: true, Also: needsListClusterCatalog}},
		{Name: "$listLocalSessions", Since: "3.6", Doc: "Sessions in memory.", parse: parseListLocalSessions, first: true, brings: true, collectionless: true, noFacet: true, Needs: Needs{Source: true, Also: needsListSessions}},
		{Name: "$listSampledQueries", Since: "7.0", Doc: "Sampled queries.", parse: parseListSampledQueries, first: true, brings: true, collectionless: true, noFacet: true, Needs: Needs{Source: true, Cluster: actions(privilege.ListSampledQueries)}},
		{Name: "$listSearchIndexes", Since: "7.0", Doc: "Search indexes.", parse: parseListSearchIndexes, first: true, brings: true, noFacet: true, Needs: Needs{Source: true, Own: actions(privilege.ListSearchIndexes)}},
		{Name: "$listSessions", Since: "3.6", Doc: "All sessions.", parse: parseListSessions, first: true, Needs: Needs{Source: true, Also: needsListSessions}},
		{Name: "$lookup", Since: "3.2", Doc: "Joins documents of another collection.", parse: parseLookup, Needs: Needs{Also: needsLookup}},
		{Name: "$match", Since: "2.2", Doc: "Documents that match a filter.", parse: parseMatch, Needs: Needs{Nothing: true}},
		{Name: "$merge", Since: "4.2", Doc: "Writes documents into a collection.", parse: parseMerge, last: true, noFacet: true, noLookup: true, noUnion: true, Needs: Needs{Also: needsMerge}},
		{Name: "$out", Since: "2.6", Doc: "Writes documents to a new collection.", parse: parseOut, last: true, noFacet: true, noLookup: true, noUnion: true, Needs: Needs{Also: needsOut}},
		{Name: "$planCacheStats", Since: "4.2", Doc: "Cached plans.", parse: parsePlanCacheStats, first: true, brings: true, noFacet: true, Needs: Needs{Source: true, Own: actions(privilege.PlanCacheRead)}},
		{Name: "$project", Since: "2.2", Doc: "Reshapes documents.", parse: parseProject, Needs: Needs{Nothing: true}},
		{Name: "$querySettings", Since: "8.0", Doc: "Settings of queries.", parse: parseQuerySettings, first: true, brings: true, collectionless: true, noFacet: true, Needs: Needs{Source: true, Cluster: actions(privilege.QuerySettings)}},
		{Name: "$queryStats", Since: "6.0.7", Doc: "Statistics of queries.", parse: parseQueryStats, first: true, brings: true, collectionless: true, noFacet: true, Needs: Needs{Source: true, Also: needsQueryStats}},
		{Name: "$rankFusion", Since: "8.1", Doc: "Joins several ranked pipelines by rank.", parse: parseRankFusion, first: true, Needs: Needs{Also: needsFusion}},
		{Name: "$redact", Since: "2.6", Doc: "Leaves out parts of documents by what is in them.", parse: parseRedact, Needs: Needs{Nothing: true}},
		{Name: "$replaceRoot", Since: "3.4", Doc: "Makes a part of each document the whole.", parse: parseReplaceRoot, Needs: Needs{Nothing: true}},
		{Name: "$replaceWith", Since: "4.2", Doc: "Makes a part of each document the whole.", parse: parseReplaceWith, Needs: Needs{Nothing: true}},
		{Name: "$sample", Since: "3.2", Doc: "Documents at random.", parse: parseSample, Needs: Needs{Nothing: true}},
		{Name: "$score", Since: "8.2", Doc: "Gives documents a score.", parse: parseScore, Needs: Needs{Nothing: true}},
		{Name: "$scoreFusion", Since: "8.2", Doc: "Joins several scored pipelines by score.", parse: parseScoreFusion, first: true, Needs: Needs{Also: needsFusion}},
		{Name: "$search", Since: "4.2", Doc: "Documents with the words that are searched for, the best first.", parse: parseSearch, first: true, noFacet: true, Needs: Needs{Nothing: true}},
		{Name: "$searchBeta", Since: "4.2", Doc: "$search, as it was called first.", parse: parseSearch, first: true, noFacet: true, Needs: Needs{Nothing: true}},
		{Name: "$searchMeta", Since: "4.4.9", Doc: "How many documents $search finds, and their facets.", parse: parseSearch, first: true, brings: true, noFacet: true, Needs: Needs{Nothing: true}},
		{Name: "$set", Since: "4.2", Doc: "Adds fields to documents.", parse: parseAddFields, Needs: Needs{Nothing: true}},
		{Name: "$setWindowFields", Since: "5.0", Doc: "Adds fields computed over windows of documents.", parse: parseSetWindowFields, Needs: Needs{Nothing: true}},
		{Name: "$skip", Since: "2.2", Doc: "Leaves out the first documents.", parse: parseSkip, Needs: Needs{Nothing: true}},
		{Name: "$sort", Since: "2.2", Doc: "Sorts documents.", parse: parseSort, Needs: Needs{Nothing: true}},
		{Name: "$sortByCount", Since: "3.4", Doc: "Counts documents by value, most frequent first.", parse: parseSortByCount, Needs: Needs{Nothing: true}},
		{Name: "$unionWith", Since: "4.4", Doc: "Adds the documents of another collection.", parse: parseUnionWith, Needs: Needs{Also: needsUnionWith}},
		{Name: "$unset", Since: "4.2", Doc: "Leaves out fields.", parse: parseUnset, Needs: Needs{Nothing: true}},
		{Name: "$unwind", Since: "2.2", Doc: "A document for each element of an array.", parse: parseUnwind, Needs: Needs{Nothing: true}},
		{Name: "$vectorSearch", Since: "6.0.11", Doc: "Documents whose vectors are the most similar to one.", parse: parseVectorSearch, first: true, noFacet: true, noLookup: true, Needs: Needs{Nothing: true}},
	}
}

func actions(as ...privilege.Action) []privilege.Action { return as }
