package catalog

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
)

// EncryptedField is a field in which a collection takes nothing but what a client has encrypted.
type EncryptedField struct {
	Path []string
	// Type is what was encrypted; 0 for anything.
	Type bson.Type
}

// Dotted is the path as it is written.
func (f *EncryptedField) Dotted() string { return strings.Join(f.Path, ".") }

// readEncrypted reads encryptedFields as create has found it good.
func readEncrypted(v bson.Value) (fields []EncryptedField) {
	if v.Type != bson.TypeObject {
		return nil
	}
	list := v.Doc().Lookup("fields")
	if list.Type != bson.TypeArray {
		return nil
	}
	for it := list.Doc().Iter(); it.Next(); {
		if it.Value().Type != bson.TypeObject {
			continue
		}
		d := it.Value().Doc()
		f := EncryptedField{Path: strings.Split(text(d, "path"), ".")}
		f.Type, _ = bson.TypeNamed(text(d, "bsonType"))
		fields = append(fields, f)
	}
	return fields
}
