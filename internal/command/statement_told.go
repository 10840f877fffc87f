package command

import "github.com/ebbdb/ebb/internal/bson"

// MongoDB tells of a statement what it has read, in the order in which it knows the fields.
var (
	updateFields     = [...]string{"q", "u", "c", "sort", "arrayFilters", "hint", "multi", "upsert", "upsertSupplied", "collation", "sampleId"}
	deleteFields     = [...]string{"q", "limit", "hint", "collation", "sampleId"}
	bulkUpdateFields = [...]string{"update", "filter", "sort", "multi", "updateMods", "upsert", "upsertSupplied", "arrayFilters", "hint", "constants", "collation", "sampleId"}
	bulkDeleteFields = [...]string{"delete", "filter", "multi", "hint", "collation", "sampleId"}
)

// toldStatement is an update or delete, of a bulkWrite too, as the profile and the slow log tell it: what is false unless it is said is
// there, and who names an index finds its name in {$hint: name}. An insert of a bulkWrite stays as it is.
func toldStatement(d bson.Doc) bson.Doc {
	var fields []string
	switch d.FirstKey() {
	case "insert":
		return d
	case "update":
		fields = bulkUpdateFields[:]
	case "delete":
		fields = bulkDeleteFields[:]
	default:
		fields = deleteFields[:]
		if !d.Lookup("u").IsMissing() {
			fields = updateFields[:]
		}
	}
	b := bson.Build()
	for _, name := range fields {
		tellField(b, name, d.Lookup(name))
	}
	return b.Doc()
}

func tellField(b *bson.Builder, name string, v bson.Value) {
	switch {
	case name == "hint" && v.Type == bson.TypeString:
		b.Object(name).Value("$hint", v).End()
	case name == "hint" && v.Type == bson.TypeObject && v.Doc().IsEmpty():
	case (name == "multi" || name == "upsert") && v.IsMissing():
		b.Bool(name, false)
	case !v.IsMissing():
		b.Value(name, v)
	}
}
