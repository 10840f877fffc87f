package query

import "github.com/ebbdb/ebb/internal/bson"

// asksForID says whether the filter is {_id: value} or {_id: {$eq: value}} and nothing else. Writes that have one look the
// document up and do not look at their sort, not even to find it wrong.
func asksForID(filter bson.Doc) bool {
	if filter.Count() != 1 || filter.FirstKey() != "_id" {
		return false
	}
	id := filter.Lookup("_id")
	if id.Type == bson.TypeObject && id.Doc().FirstKey() == "$eq" && id.Doc().Count() == 1 {
		id = id.Doc().Lookup("$eq")
	} else if id.Type == bson.TypeObject {
		if k := id.Doc().FirstKey(); k != "" && k[0] == '$' {
			return false
		}
	}
	switch id.Type {
	case bson.TypeArray, bson.TypeRegex, bson.TypeUndefined:
		return false
	}
	return true
}
