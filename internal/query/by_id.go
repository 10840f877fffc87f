package query

import "github.com/ebbdb/ebb/internal/bson"

// A filter by _id is one that names _id and nothing else. What it has to be beyond that depends on who asks.

// onID is what a filter says of _id, when it says nothing else.
func onID(filter bson.Doc) (v bson.Value, ok bool) {
	it := filter.Iter()
	if !it.Next() || it.Key() != "_id" {
		return bson.Missing, false
	}
	v = it.Value()
	return v, !it.Next()
}

// plainID is the _id that filter asks for, when that is all it does and needs no parsing.
func plainID(filter bson.Doc) (id bson.Value, ok bool) {
	id, ok = onID(filter)
	return id, ok && isPlainID(id)
}

// isPlainID says whether v, as a filter of _id, means the document whose _id is v, whatever the query's language has to say.
func isPlainID(v bson.Value) bool {
	switch v.Type {
	case bson.TypeObjectID, bson.TypeString, bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal, bson.TypeDate,
		bson.TypeBool, bson.TypeBinary, bson.TypeTimestamp:
		return true
	}
	return false
}

// isOneID says whether a filter is {_id: value}, which MongoDB looks up without a plan.
func isOneID(filter bson.Doc) bool {
	v, ok := onID(filter)
	return ok && v.Type != bson.TypeRegex && !isOperators(v)
}

func isOperators(v bson.Value) bool {
	return v.Type == bson.TypeObject && isOperator(v.Doc().FirstKey())
}

// asksForID says whether the filter is {_id: value} or {_id: {$eq: value}} and nothing else. Writes that have one look the
// document up and do not look at their sort, not even to find it wrong.
func asksForID(filter bson.Doc) bool {
	id, ok := onID(filter)
	if !ok {
		return false
	}
	if id.Type == bson.TypeObject && id.Doc().FirstKey() == "$eq" && id.Doc().Count() == 1 {
		id = id.Doc().Lookup("$eq")
	} else if isOperators(id) {
		return false
	}
	switch id.Type {
	case bson.TypeArray, bson.TypeRegex, bson.TypeUndefined:
		return false
	}
	return true
}
