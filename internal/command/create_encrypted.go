package command

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
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

// storedEncryption is encryptedFields as it is stored: with the names of the collections that hold what is known of the encrypted values.
func storedEncryption(coll string, doc bson.Doc) bson.Doc {
	b := bson.Build()
	for _, name := range [...]string{"esc", "ecoc"} {
		if v := doc.Lookup(name + "Collection"); v.IsNullish() || v.IsMissing() {
			b.String(name+"Collection", stateCollection(coll, name))
		} else {
			b.Value(name+"Collection", v)
		}
	}
	for it := doc.Iter(); it.Next(); {
		switch it.Key() {
		case "escCollection", "ecocCollection":
		case "fields":
			b.Value("fields", storedFields(it.Value()))
		default:
			b.Value(it.Key(), it.Value())
		}
	}
	return b.Doc()
}

func stateCollection(coll, name string) string { return "enxcol_." + coll + "." + name }

// checkEncryptedIndex refuses an index that says of encrypted fields what they hold, or deletes documents without the tokens that this takes.
func checkEncryptedIndex(c *catalog.Collection, d *index.Definition) error {
	if d.TTL && c.Options.IsEncrypted {
		return mongoerr.New(6346501, "TTL indexes are not allowed on encrypted collections")
	}
	for i := range c.Options.Encrypted {
		path := c.Options.Encrypted[i].Dotted()
		for it := d.Key.Iter(); it.Next(); {
			if key := it.Key(); key == path || strings.HasPrefix(path, key+".") || strings.HasPrefix(key, path+".") {
				return mongoerr.New(6346502, "Index not allowed on, or a prefix of, the encrypted field %s", path)
			}
		}
	}
	return nil
}

// noEncryption refuses what a client has encrypted to be stored in a way that it can be found in, or to be found.
func (a *Args) noEncryption() {
	if a.Doc("encryptionInformation") != nil {
		a.Fail(mongoerr.New(mongoerr.NotImplemented, "queryable encryption is not implemented yet: encrypted values can neither be stored nor looked for"))
	}
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
