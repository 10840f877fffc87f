package query

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// safeContent is the field that a server writes to find encrypted documents by. Nobody else writes it.
const safeContent = "__safeContent__"

const (
	encryptedSubtype = 6
	// What is encrypted begins with its kind, the number of the key and the type of what was encrypted. These kinds may be stored.
	storedFirst, storedLast = 14, 17
	typeAt                  = 1 + 16
)

// checkEncrypted refuses a document, which old is to become, that has something else in one of the fields than what was encrypted for it.
func checkEncrypted(fields []catalog.EncryptedField, old, doc bson.Doc) error {
	if safe := doc.Lookup(safeContent); !safe.IsMissing() && !bson.Equal(safe, old.Lookup(safeContent)) {
		return mongoerr.New(6666200, "Cannot modify %s field in document.", safeContent)
	}
	for i := range fields {
		if !fits(fields[i].Path, fields[i].Type, doc) {
			return mongoerr.New(mongoerr.DocumentValidationFailure, "Document failed validation").WithInfo(
				bson.Build().Value("failingDocumentId", doc.Lookup("_id")).Object("details").String("operatorName", "fle2Encrypt").
					String("propertyName", fields[i].Dotted()).String("reason", "value was not encrypted").End().Doc())
		}
	}
	return nil
}

// fits says whether nothing stands at path in d, or what was encrypted. On the way there may be no array.
func fits(path []string, t bson.Type, d bson.Doc) bool {
	v := d.Lookup(path[0])
	switch {
	case v.IsMissing():
		return true
	case len(path) == 1:
		return isEncrypted(v, t)
	case v.Type == bson.TypeObject:
		return fits(path[1:], t, v.Doc())
	}
	return v.Type != bson.TypeArray
}

func isEncrypted(v bson.Value, t bson.Type) bool {
	if v.Type != bson.TypeBinary {
		return false
	}
	subtype, data := v.Binary()
	return subtype == encryptedSubtype && len(data) > typeAt && data[0] >= storedFirst && data[0] <= storedLast && (t == 0 || bson.Type(data[typeAt]) == t)
}
