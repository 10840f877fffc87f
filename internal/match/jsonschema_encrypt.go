package match

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// The keywords about client-side field level encryption. What a driver encrypted is binary data of a subtype of its own; it begins
// with a byte for how it was encrypted, the number of the key, and the type of what was encrypted. So a server that has no key can
// tell encrypted values from plain ones.
const (
	encryptedSubtype = 6
	uuidSubtype      = 4
	uuidLen          = 16
	// These ways of encrypting tell the type and are not of Queryable Encryption.
	deterministic, random = 1, 2
	encryptedTypeAt       = 1 + uuidLen
)

// encryptAlgorithms are the names of the ways to encrypt.
var encryptAlgorithms = map[string]bool{
	"AEAD_AES_256_CBC_HMAC_SHA_512-Deterministic": true, "AEAD_AES_256_CBC_HMAC_SHA_512-Random": true,
}

func parseEncrypt(p *schemaParsing, arg bson.Value) error {
	if err := p.checkEncryptKeywords(); err != nil {
		return err
	}
	if arg.Type != bson.TypeObject {
		return typeMismatch("$jsonSchema keyword 'encrypt' must be an object ")
	}
	if err := checkEncryptionInfo("encrypt", arg.Doc()); err != nil {
		return err
	}
	p.add(rule{keyword: "encrypt",
		holds: func(_ run, v bson.Value) (bool, error) { return isEncrypted(v), nil },
		why: func(_ run, _ bson.Value, b *bson.Builder) {
			b.String("reason", "value was not encrypted")
		}})
	names := arg.Doc().Lookup("bsonType")
	if names.IsMissing() {
		return nil
	}
	types, err := schemaTypes("bsonType", names, nil)
	if err != nil {
		return err
	}
	p.add(rule{keyword: "encrypt",
		holds: func(_ run, v bson.Value) (bool, error) { return !isEncrypted(v) || encryptedTypeIn(v, &types), nil },
		why: func(_ run, _ bson.Value, b *bson.Builder) {
			b.String("reason", "encrypted value has wrong type")
		}})
	return nil
}

// parseEncryptMetadata parses what the subschemas below share. It is for drivers; the server looks at its shape alone.
func parseEncryptMetadata(p *schemaParsing, arg bson.Value) error {
	if err := p.checkEncryptKeywords(); err != nil {
		return err
	}
	switch {
	case arg.Type != bson.TypeObject:
		return typeMismatch("$jsonSchema keyword 'encryptMetadata' must be an object ")
	case arg.Doc().IsEmpty():
		return failedToParse("$jsonSchema keyword 'encryptMetadata' cannot be an empty object ")
	}
	return checkEncryptionInfo("encryptMetadata", arg.Doc())
}

// checkEncryptKeywords refuses the keywords where they may not stand, or not beside others.
func (p *schemaParsing) checkEncryptKeywords() error {
	encrypt := !p.source.Lookup("encrypt").IsMissing()
	for _, key := range [...]string{"type", "bsonType"} {
		if encrypt && !p.source.Lookup(key).IsMissing() {
			return failedToParse("$jsonSchema keyword 'encrypt' cannot be used in conjunction with '%s', 'encrypt' implies type 'bsonType::BinData'", key)
		}
	}
	switch {
	case !p.within.encrypt:
		return mongoerr.New(mongoerr.QueryFeatureNotAllowed, "Encryption-related validator keywords are not allowed in this context")
	case encrypt && !p.source.Lookup("encryptMetadata").IsMissing():
		return failedToParse("Cannot specify both $jsonSchema keywords 'encrypt' and 'encryptMetadata'")
	}
	return nil
}

// checkEncryptionInfo looks at how values are to be encrypted, for drivers that read it in a schema.
func checkEncryptionInfo(keyword string, d bson.Doc) error {
	seen := map[string]bool{}
	for it := d.Iter(); it.Next(); {
		key, v := it.Key(), it.Value()
		if seen[key] {
			return mongoerr.New(40413, "BSON field '%s.%s' is a duplicate field", keyword, key)
		}
		seen[key] = true
		if err := checkEncryptionField(keyword, key, v); err != nil {
			return err
		}
	}
	return nil
}

func checkEncryptionField(keyword, key string, v bson.Value) error {
	wrongType := func(want bson.Type) error {
		return typeMismatch("BSON field '%s.%s' is the wrong type '%s', expected type '%s'", keyword, key, v.Type, want)
	}
	switch {
	case key == "bsonType" && keyword == "encrypt":
		return nil // its own parser says what is wrong
	case key == "algorithm" && v.Type != bson.TypeString:
		return wrongType(bson.TypeString)
	case key == "algorithm" && !encryptAlgorithms[v.Str()]:
		return badValue("Enumeration value '%s' for field '%s.algorithm' is not a valid value.", v.Str(), keyword)
	case key == "initializationVector" && v.Type != bson.TypeBinary:
		return wrongType(bson.TypeBinary)
	case key == "algorithm", key == "initializationVector":
		return nil
	case key == "keyId":
		return checkKeyID(v)
	}
	return mongoerr.New(40415, "BSON field '%s.%s' is an unknown field.", keyword, key)
}

// checkKeyID takes the numbers of keys, or a JSON pointer to the field that names one.
func checkKeyID(v bson.Value) error {
	switch v.Type {
	case bson.TypeString:
		return checkJSONPointer(v.Str())
	case bson.TypeArray:
		for it := v.Doc().Iter(); it.Next(); {
			if err := checkKeyUUID(it.Value()); err != nil {
				return err
			}
		}
		return nil
	}
	return mongoerr.New(51085, "Expected either string or array of UUID for EncryptSchemaKeyId, found %s", v.Type)
}

func checkKeyUUID(v bson.Value) error {
	if v.Type != bson.TypeBinary {
		return mongoerr.New(51088, "Array elements must have type BinData, found %s", v.Type)
	}
	switch subtype, data := v.Binary(); {
	case subtype != uuidSubtype:
		return mongoerr.New(51084, "Array elements must have bindata type UUID, found %d", subtype)
	case len(data) != uuidLen:
		return mongoerr.New(mongoerr.InvalidUUID, "uuid must be a 16-byte binary field with UUID (%d) subtype", uuidSubtype)
	}
	return nil
}

func checkJSONPointer(s string) error {
	switch {
	case s == "":
		return mongoerr.New(51064, "Empty JSONPointers are not supported")
	case s[0] != '/':
		return mongoerr.New(51065, "JSONPointer must start with a '/'")
	}
	for rest := s; ; {
		_, after, found := strings.Cut(rest, "~")
		if !found {
			return nil
		}
		if after == "" || after[0] != '0' && after[0] != '1' {
			return mongoerr.New(51063, "JSONPointer cannot contain unescaped ~ character")
		}
		rest = after
	}
}

func isEncrypted(v bson.Value) bool {
	if v.Type != bson.TypeBinary {
		return false
	}
	subtype, _ := v.Binary()
	return subtype == encryptedSubtype
}

// encryptedTypeIn says whether what was encrypted in v is of one of the types.
func encryptedTypeIn(v bson.Value, types *TypeSet) bool {
	_, data := v.Binary()
	if len(data) <= encryptedTypeAt || data[0] != deterministic && data[0] != random {
		return false
	}
	return types.Has(bson.Type(data[encryptedTypeAt]))
}
