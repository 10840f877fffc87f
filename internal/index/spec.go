package index

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// MaxFields is how many fields a key pattern may have.
const MaxFields = 32

// Parser reads index specifications.
type Parser struct {
	filters *match.Parser
}

// NewParser returns a Parser that reads partial filters with filters.
func NewParser(filters *match.Parser) *Parser { return &Parser{filters} }

type specOption uint8

const (
	optAny specOption = iota
	optFlag
	optBool
	optObject
	optNumber
	optString
	optWeights
	optProjection
)

var specOptions = map[string]specOption{
	"key": optObject, "name": optString, "v": optNumber, "ns": optString, "background": optFlag, "unique": optFlag,
	"sparse": optFlag, "hidden": optBool, "prepareUnique": optFlag, "partialFilterExpression": optObject,
	"collation": optObject, "expireAfterSeconds": optAny, "hideExpired": optBool, "storageEngine": optObject,
	"weights": optWeights, "default_language": optString, "language_override": optString, "textIndexVersion": optNumber,
	"2dsphereIndexVersion": optNumber, "bits": optNumber, "min": optNumber, "max": optNumber, "coarsestIndexedLevel": optNumber,
	"finestIndexedLevel": optNumber, "bucketSize": optNumber, "wildcardProjection": optProjection, "clustered": optFlag,
	"dropDups": optFlag, "originalSpec": optObject,
}

var idOptions = map[string]bool{"key": true, "name": true, "v": true, "ns": true, "collation": true}

// clusteredOptions are what may be said of the order of a clustered collection when it is asked for as an index.
var clusteredOptions = map[string]bool{"key": true, "name": true, "v": true, "unique": true, "clustered": true, "expireAfterSeconds": true}

// Parse reads one element of createIndexes' indexes with all of MongoDB's checks.
// defaultCollation is the collection's, or nil.
func (p *Parser) Parse(spec bson.Doc, defaultCollation bson.Doc) (*Definition, error) {
	if err := checkOptions(spec); err != nil {
		return nil, err
	}
	key := spec.Lookup("key")
	if key.IsMissing() {
		return nil, mongoerr.New(mongoerr.FailedToParse, "The 'key' field is a required property of an index specification")
	}
	if spec.Lookup("name").IsMissing() {
		return nil, mongoerr.New(mongoerr.FailedToParse, "The 'name' field is a required property of an index specification")
	}
	if err := checkKeyPattern(key.Doc()); err != nil {
		return nil, err
	}
	if err := checkVersion(spec.Lookup("v")); err != nil {
		return nil, err
	}
	if v := spec.Lookup("originalSpec"); !v.IsMissing() && v.Doc().IsEmpty() {
		return nil, mongoerr.New(mongoerr.BadValue, "The field 'originalSpec' cannot be an empty object.")
	}
	if err := checkClustered(spec); err != nil {
		return nil, err
	}
	if versionOf(spec) < defaultVersion && !spec.Lookup("collation").IsMissing() {
		return nil, mongoerr.New(mongoerr.CannotCreateIndex, "Invalid index specification %s; cannot create an index with the 'collation' option and v=1", spec)
	}
	if err := checkListed(key.Doc(), spec); err != nil {
		return nil, err
	}
	d, err := p.Load(spec, defaultCollation)
	if err != nil {
		return nil, err
	}
	if err := d.checkName(); err != nil {
		return nil, err
	}
	if d.Unique && d.PrepareUnique {
		return nil, mongoerr.New(mongoerr.CannotCreateIndex,
			"Invalid index specification %s; cannot create an index with the 'unique' option and the 'prepareUnique' option", spec)
	}
	if isIDKey(d.Key) {
		if err := checkIDOptions(spec); err != nil {
			return nil, err
		}
		if d.Key.Lookup("_id").AsDouble() != 1 {
			return nil, mongoerr.New(mongoerr.BadValue, "The field 'key' for an _id index must be {_id: 1}, but got %s", d.Key)
		}
		d.Name = "_id_"
		d.Form = d.FormToday()
	}
	d.Clustered = spec.Lookup("clustered").Truthy()
	if err := d.checkTTL(spec.Lookup("expireAfterSeconds")); err != nil {
		return nil, err
	}
	if err := d.checkOnTS(); err != nil {
		return nil, err
	}
	if err := d.checkKind(spec); err != nil {
		return nil, err
	}
	d.Spec = d.listed(spec)
	return d, nil
}

// Load reads a specification that Parse once found good (from the catalogue), repairing a broken expireAfterSeconds.
func (p *Parser) Load(spec bson.Doc, defaultCollation bson.Doc) (*Definition, error) {
	d := &Definition{Key: withTextFields(spec.Lookup("key").Doc(), spec).Clone(), Spec: spec.Clone()}
	if err := d.parseKey(); err != nil {
		return nil, err
	}
	if d.Kind == Text {
		d.readText(spec)
	}
	d.Name = strings.Clone(lookupStr(spec, "name"))
	d.Unique = spec.Lookup("unique").Truthy()
	d.Sparse = spec.Lookup("sparse").Truthy()
	d.Hidden = spec.Lookup("hidden").Truthy()
	d.PrepareUnique = spec.Lookup("prepareUnique").Truthy()
	d.HideExpired = spec.Lookup("hideExpired").Truthy()
	if v := spec.Lookup("expireAfterSeconds"); !v.IsMissing() {
		d.setTTL(v)
	}
	d.parseGeo(spec)
	if versionOf(spec) < defaultVersion {
		defaultCollation = nil
	}
	if err := d.parseCollation(spec.Lookup("collation"), defaultCollation); err != nil {
		return nil, err
	}
	if d.Kind == Wildcard {
		d.Wild = d.newWild()
	}
	d.Form, d.keyText = d.FormToday(), keyText(d.Key)
	return d, p.parsePartial(d, spec.Lookup("partialFilterExpression"))
}

func lookupStr(d bson.Doc, key string) string {
	if v := d.Lookup(key); v.Type == bson.TypeString {
		return v.Str()
	}
	return ""
}

func checkOptions(spec bson.Doc) error {
	for it := spec.Iter(); it.Next(); {
		kind, known := specOptions[it.Key()]
		if !known {
			return mongoerr.New(mongoerr.InvalidIndexSpecificationOption,
				"The field '%s' is not valid for an index specification. Specification: %s", it.Key(), spec)
		}
		switch v := it.Value(); {
		case kind.takes(v):
		case kind == optFlag: // MongoDB leaves the quotation mark out, too
			return mongoerr.New(mongoerr.TypeMismatch, "The field '%s has value %s: %s, which is not convertible to bool", it.Key(), it.Key(), v)
		default:
			return mongoerr.New(mongoerr.TypeMismatch, "The field '%s' must be %s, but got %s", it.Key(), kind, v.Type)
		}
	}
	return nil
}

func (o specOption) takes(v bson.Value) bool {
	switch o {
	case optFlag:
		return v.Type == bson.TypeBool || v.IsNumber()
	case optBool:
		return v.Type == bson.TypeBool
	case optObject, optProjection:
		return v.Type == bson.TypeObject
	case optNumber:
		return v.IsNumber()
	case optString:
		return v.Type == bson.TypeString
	case optWeights: // strings and arrays are refused later, for another reason
		return v.Type == bson.TypeObject || v.Type == bson.TypeString || v.Type == bson.TypeArray
	}
	return true
}

func (o specOption) String() string {
	return [...]string{"anything", "a flag", "a bool", "an object", "a number", "a string", "an object", "a non-empty object"}[o]
}

// defaultVersion is the version of indexes that say none. Those of version 1, which is before collations, have none.
const defaultVersion = 2

// versionOf is the version of the index that spec describes.
func versionOf(spec bson.Doc) int32 {
	if v := spec.Lookup("v"); v.IsNumber() {
		return int32(v.TruncInt64())
	}
	return defaultVersion
}

func checkVersion(v bson.Value) error {
	if v.IsMissing() {
		return nil
	}
	n, exact := v.AsInt64()
	switch {
	case !exact:
		return mongoerr.New(mongoerr.BadValue, "Index version must be representable as a 32-bit integer, but got %s", v)
	case n == 0:
		return mongoerr.New(mongoerr.CannotCreateIndex, "Invalid index specification: cannot create an index with {v: 0}")
	case n != 1 && n != 2:
		return mongoerr.New(mongoerr.CannotCreateIndex, "Invalid index version: cannot create an index with {v: %d}", n)
	}
	return nil
}

// isIDKey says whether key means the index on _id: 1 or -1 when it is cut to a whole number. Another number makes an index beside it.
func isIDKey(key bson.Doc) bool {
	v := key.Lookup("_id")
	if key.Count() != 1 || !v.IsNumber() {
		return false
	}
	n := v.TruncInt64()
	return n == 1 || n == -1
}

// checkClustered looks at the specification of the order of a clustered collection. The collection decides whether it is that.
func checkClustered(spec bson.Doc) error {
	clustered := spec.Lookup("clustered")
	if clustered.IsMissing() {
		return nil
	}
	for it := spec.Iter(); it.Next(); {
		if !clusteredOptions[it.Key()] {
			return mongoerr.New(mongoerr.InvalidIndexSpecificationOption,
				"The field '%s' is not valid for a clustered index specification. Specification: %s", it.Key(), spec)
		}
	}
	switch unique := spec.Lookup("unique"); {
	case !clustered.Truthy():
		return mongoerr.New(6492800, "Value 'false' for field 'clustered' is invalid")
	case unique.Type != bson.TypeBool || !unique.Bool():
		return mongoerr.New(mongoerr.CannotCreateIndex, "The 'unique' field is required when 'clustered' is specified")
	}
	return nil
}

func checkIDOptions(spec bson.Doc) error {
	if spec.Lookup("clustered").Truthy() {
		return nil // checkClustered has looked
	}
	for it := spec.Iter(); it.Next(); {
		if !idOptions[it.Key()] {
			return mongoerr.New(mongoerr.InvalidIndexSpecificationOption,
				"The field '%s' is not valid for an _id index specification. Specification: %s", it.Key(), spec)
		}
	}
	return nil
}

func (d *Definition) checkName() error {
	switch {
	case d.Name == "":
		return mongoerr.New(mongoerr.CannotCreateIndex, "Index name cannot be empty")
	case strings.ContainsRune(d.Name, 0):
		return mongoerr.New(mongoerr.CannotCreateIndex, "Index name cannot contain an embedded null byte")
	case d.Name == "*":
		return mongoerr.New(mongoerr.BadValue, "The index name '*' is not valid.")
	case d.Name == "_id_" && !isIDKey(d.Key):
		return mongoerr.New(mongoerr.BadValue,
			"The index name '_id_' is reserved for the _id index, which must have key pattern {_id: 1}, found key: %s", d.Key)
	}
	return nil
}

func (d *Definition) parseCollation(v bson.Value, inherited bson.Doc) error {
	var spec bson.Doc
	if v.Type == bson.TypeObject {
		spec = v.Doc()
		if spec.IsEmpty() {
			return mongoerr.New(mongoerr.BadValue, "The field 'collation' cannot be an empty object.")
		}
	} else {
		spec = inherited
	}
	if spec == nil {
		return nil
	}
	c, err := collation.Parse(spec)
	if err != nil || c == nil {
		return err
	}
	d.collator, d.Collation = c, c.Doc()
	return nil
}

// listed is the specification as listIndexes shows it: the version first, defaults left out.
func (d *Definition) listed(spec bson.Doc) bson.Doc {
	b := bson.Build().Int32("v", versionOf(spec))
	b.Document("key", d.Key).String("name", d.Name)
	for it := spec.Iter(); it.Next(); {
		switch k := it.Key(); k {
		case "key", "name", "v", "ns", "dropDups":
		case "background", "sparse":
			if d.IsID() {
				continue
			}
			b.Value(k, it.Value())
		case "unique", "hidden", "prepareUnique", "hideExpired":
			if it.Value().Truthy() && !d.IsID() {
				b.Bool(k, true)
			}
		case "expireAfterSeconds":
			b.Int32(k, d.ExpireAfterSeconds)
		case "bits":
			b.Int32(k, int32(it.Value().TruncInt64()))
		case "clustered", "collation":
		default:
			if !d.listsItself(k) {
				b.Value(k, it.Value())
			}
		}
	}
	if d.Collation != nil {
		b.Document("collation", d.Collation)
	}
	d.listKind(b, spec)
	return b.Doc()
}
