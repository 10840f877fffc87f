package command

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/query"
)

// maxQuickBytes bounds the commands that are over in a moment: a message of that size has a few documents.
const maxQuickBytes = 4 << 10

// Quick says whether Handle, as a rule, is through with req in a moment, without waiting for anything: what adds a few documents,
// and what asks for documents by nothing but their _id, in a collection that finds them by that. It is a guess from the message
// about time, not about what is right.
func (s *Server) Quick(req Request) bool {
	if req.Size > maxQuickBytes || req.Database != "" || req.ExhaustAllowed {
		return false
	}
	it := req.Body.Iter()
	if !it.Next() {
		return false
	}
	switch it.Key() {
	case "ping", "insert":
		return true
	case "find", "update", "delete", "findAndModify":
		return it.Value().Type == bson.TypeString && s.asksByID(it.Value().Str(), it, req)
	}
	return false
}

// asksByID looks at the rest of a command, behind its name and the collection's.
func (s *Server) asksByID(coll string, rest bson.Iter, req Request) bool {
	db, given := "", len(req.Sequences) > 0
	for rest.Next() {
		switch v := rest.Value(); rest.Key() {
		case "$db":
			if v.Type == bson.TypeString {
				db = v.Str()
			}
		case "filter", "query":
			if v.Type != bson.TypeObject || !query.ByID(v.Doc()) {
				return false
			}
			given = true
		case "updates", "deletes":
			if v.Type != bson.TypeArray || !statementsByID(v.Doc()) {
				return false
			}
			given = true
		case "projection", "fields":
			if v.Type != bson.TypeObject || !takesFields(v.Doc()) {
				return false
			}
		case "update":
			if v.Type != bson.TypeObject { // a pipeline may compute anything
				return false
			}
		case "lsid", "ordered", "limit", "skip", "batchSize", "singleBatch", "writeConcern", "readConcern", "maxTimeMS", "comment",
			"$clusterTime", "$readPreference", "apiVersion", "apiStrict", "txnNumber", "upsert", "new", "remove", "bypassDocumentValidation":
		default:
			return false
		}
	}
	for i := range req.Sequences {
		for d := range req.Sequences[i].Docs() {
			if !statementByID(d) {
				return false
			}
		}
	}
	return given && s.findsByID(namespace.NS{DB: db, Coll: coll})
}

// findsByID says whether an _id leads straight to its document.
func (s *Server) findsByID(ns namespace.NS) bool {
	coll := s.Query.Store.Catalog().Collection(ns)
	return coll == nil || !coll.IsView() && coll.Options.Collation == nil && (coll.IDIndex() != nil || coll.IsClustered())
}

func statementsByID(array bson.Doc) bool {
	for it := array.Iter(); it.Next(); {
		if it.Value().Type != bson.TypeObject || !statementByID(it.Value().Doc()) {
			return false
		}
	}
	return true
}

// statementByID says whether an update or delete is of the document with an _id, and has nothing that may take long.
func statementByID(d bson.Doc) bool {
	for it := d.Iter(); it.Next(); {
		switch v := it.Value(); it.Key() {
		case "q":
			if v.Type != bson.TypeObject || !query.ByID(v.Doc()) {
				return false
			}
		case "u":
			if v.Type != bson.TypeObject {
				return false
			}
		case "multi", "upsert", "limit":
		default:
			return false
		}
	}
	return true
}

// takesFields says whether a projection computes nothing.
func takesFields(projection bson.Doc) bool {
	for it := projection.Iter(); it.Next(); {
		if v := it.Value(); v.Type != bson.TypeBool && !v.IsNumber() {
			return false
		}
	}
	return true
}
