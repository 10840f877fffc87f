package command

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// checkEncryptedFields looks at the shape of encryptedFields.
func checkEncryptedFields(doc bson.Doc) error {
	a := NewArgs("create.encryptedFields", doc)
	for _, key := range [...]string{"escCollection", "ecocCollection", "eccCollection"} {
		a.String(key)
	}
	a.Required("fields")
	fields := a.Array("fields")
	a.Ignore("strEncodeVersion")
	if err := a.Done(); err != nil {
		return err
	}
	seen := map[string]bool{}
	for it := fields.Iter(); it.Next(); {
		v := it.Value()
		if v.IsNullish() {
			continue
		}
		if v.Type != bson.TypeObject {
			return a.wrongType("fields."+it.Key(), v.Type, []bson.Type{bson.TypeObject})
		}
		if err := checkEncryptedField(v.Doc(), seen); err != nil {
			return err
		}
	}
	return nil
}

func checkEncryptedField(doc bson.Doc, seen map[string]bool) error {
	a := NewArgs("create.encryptedFields.fields", doc)
	a.Required("keyId", "path")
	a.UUID("keyId")
	path, _ := a.String("path")
	kind, typed := a.String("bsonType")
	queries := a.Value("queries")
	if !queries.IsMissing() && queries.Type != bson.TypeObject && queries.Type != bson.TypeArray {
		a.Fail(a.wrongType("queries", queries.Type, []bson.Type{bson.TypeArray, bson.TypeObject}))
	}
	if err := a.Done(); err != nil {
		return err
	}
	switch {
	case path == "":
		return mongoerr.New(6316402, "Encrypted field must have a non-empty path")
	case strings.ContainsRune(path, 0):
		return mongoerr.New(9867600, "Encrypted field path cannot have embedded null bytes")
	case path == "_id" || strings.HasPrefix(path, "_id."):
		return mongoerr.New(6316403, "Cannot encrypt _id or its subfields")
	}
	for other := range seen {
		if other == path {
			return mongoerr.New(6338402, "Duplicate paths are not allowed: %s", path)
		}
		if strings.HasPrefix(path, other+".") || strings.HasPrefix(other, path+".") {
			return mongoerr.New(6338403, "Conflicting index paths found as one is a prefix of another '%s' and '%s'", other, path)
		}
	}
	seen[strings.Clone(path)] = true
	if typed {
		if err := checkEncryptedType(kind); err != nil {
			return err
		}
	}
	if queries.IsMissing() {
		return nil
	}
	return checkEncryptedQueries(queries, kind)
}

func checkEncryptedType(name string) error {
	t, known := bson.TypeNamed(name)
	if !known {
		return mongoerr.New(mongoerr.BadValue, "Unknown type name: %s", name)
	}
	switch t {
	case bson.TypeNull, bson.TypeUndefined, bson.TypeMinKey, bson.TypeMaxKey:
		return mongoerr.New(6338406, "Type '%s' is not a supported encrypted type", name)
	}
	return nil
}

// checkCreateEncrypted applies the rules of encrypted collections.
func checkCreateEncrypted(r *createRequest) error {
	switch {
	case r.encrypted == nil:
		return nil
	case r.capped:
		return mongoerr.New(6367301, "Encrypted collections cannot be capped")
	case r.isView || r.timeseries != nil:
		return mongoerr.New(6346401, "Encrypted collections are not supported with views or time-series collections")
	}
	return nil
}
