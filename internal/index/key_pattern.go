package index

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

var plugins = map[string]Kind{"hashed": Hashed, "text": Text, "2d": Geo2D, "2dsphere": Geo2DSphere}

// maxKeyPatternBytes is how large a key pattern may be.
const maxKeyPatternBytes = 2048

// checkKeyPattern holds a key pattern that is asked for to a size, and to one kind of fields beside ordered ones.
func checkKeyPattern(key bson.Doc) error {
	if len(key) > maxKeyPatternBytes {
		return mongoerr.New(mongoerr.CannotCreateIndex, "Index key pattern too large.")
	}
	plugin := ""
	for it := key.Iter(); it.Next(); {
		v := it.Value()
		if it.Key() == ftsField && (v.Type != bson.TypeString || v.Str() != "text") {
			return mongoerr.New(mongoerr.CannotCreateIndex, "Index key contains an illegal field name: '_fts'")
		}
		if v.Type == bson.TypeString && v.Str() != "" {
			if plugin != "" && v.Str() != plugin {
				return mongoerr.New(mongoerr.CannotCreateIndex, "Can't use more than one index plugin for a single index.")
			}
			plugin = v.Str()
		}
	}
	return nil
}

// parseKey reads the key pattern into Fields and Kind.
func (d *Definition) parseKey() error {
	if d.Key.IsEmpty() {
		return mongoerr.New(mongoerr.CannotCreateIndex, "Index keys cannot be an empty object.")
	}
	seen := map[string]bool{}
	for it := d.Key.Iter(); it.Next(); {
		f, err := parseField(it.Key(), it.Value())
		if err != nil {
			return err
		}
		if seen[f.Path] {
			return mongoerr.New(mongoerr.BadValue, "Field path '%s' appears more than once in the index key pattern %s", f.Path, d.Key)
		}
		seen[f.Path] = true
		if f.Kind != Ordered && (d.Kind == Ordered || d.Kind == Hashed && f.Kind != Hashed) {
			d.Kind = f.Kind
		}
		d.Fields = append(d.Fields, f)
	}
	if len(d.Fields) > MaxFields {
		return mongoerr.New(13103, "too many compound keys")
	}
	if n := d.count(Hashed); n > 1 {
		return mongoerr.New(31303, "A maximum of one index field is allowed to be hashed but found %d for 'key' %s", n, d.Key)
	}
	return nil
}

func (d *Definition) count(k Kind) int {
	n := 0
	for _, f := range d.Fields {
		if f.Kind == k {
			n++
		}
	}
	return n
}

func parseField(path string, v bson.Value) (Field, error) {
	f := Field{Path: strings.Clone(path)}
	f.Parts = strings.Split(f.Path, ".")
	if err := checkPath(f.Path, f.Parts); err != nil {
		return f, err
	}
	switch {
	case v.IsNumber():
		if v.IsNaN() || !v.Truthy() {
			return f, mongoerr.New(mongoerr.CannotCreateIndex, "Values in the index key pattern cannot be 0.")
		}
		f.Descending = v.AsDouble() < 0
	case v.Type == bson.TypeString:
		k, known := plugins[v.Str()]
		switch {
		case v.Str() == "":
			return f, mongoerr.New(mongoerr.CannotCreateIndex, "Values in v:2 index key pattern cannot be empty strings.")
		case f.Parts[len(f.Parts)-1] == "$**" && v.Str() != "text":
			return f, mongoerr.New(mongoerr.CannotCreateIndex, "Index key contains an illegal field name: a wildcard field cannot be of type '%s'", v.Str())
		case v.Str() == "wildcard":
			return f, mongoerr.New(7246202, "'wildcard' index type is only allowed for wildcard fields")
		case !known:
			return f, mongoerr.New(mongoerr.CannotCreateIndex, "Unknown index plugin '%s'", v.Str())
		}
		f.Kind = k
	default:
		return f, mongoerr.New(mongoerr.CannotCreateIndex,
			"Values in v:2 index key pattern cannot be of type %s. Only numbers > 0, numbers < 0, and strings are allowed.", v.Type)
	}
	if f.Kind == Ordered && f.Parts[len(f.Parts)-1] == "$**" {
		f.Kind = Wildcard
	}
	return f, nil
}

func checkPath(path string, parts []string) error {
	for i, p := range parts {
		switch {
		case p == "":
			return mongoerr.New(mongoerr.CannotCreateIndex, "Index keys cannot contain an empty field.")
		case p == "$**" && i == len(parts)-1:
		case p[0] == '$' && (i == 0 || p != "$id" && p != "$ref" && p != "$db"):
			return errDollar()
		}
	}
	return nil
}

func errDollar() error {
	return mongoerr.New(mongoerr.CannotCreateIndex, "Index key contains an illegal field name: field name starts with '$'.")
}

// checkKind applies the rules that depend on what kind of index it is.
func (d *Definition) checkKind(spec bson.Doc) error {
	special := func(code mongoerr.Code, format string, args ...any) error { return mongoerr.New(code, format, args...) }
	if d.Sparse && d.PartialFilter != nil {
		return special(mongoerr.CannotCreateIndex, "cannot mix \"partialFilterExpression\" and \"sparse\" options")
	}
	if d.Kind != Wildcard && !spec.Lookup("wildcardProjection").IsMissing() {
		return special(mongoerr.BadValue, "The field 'wildcardProjection' is only allowed in 'wildcard' indexes")
	}
	if d.HideExpired && !d.TTL {
		return special(mongoerr.InvalidIndexSpecificationOption,
			"The field 'hideExpired' is only allowed together with 'expireAfterSeconds'. Specification: %s", spec)
	}
	switch d.Kind {
	case Hashed:
		if d.Unique {
			return special(16764, "Currently hashed indexes cannot guarantee uniqueness. Use a regular index.")
		}
	case Wildcard:
		return d.checkWildcard(spec)
	case Text, Geo2D:
		if d.collator != nil {
			return special(mongoerr.CannotCreateIndex,
				"Index type '%s' does not support collation: %s", d.Kind, d.Collation)
		}
		if d.Kind == Text {
			return d.checkText(spec)
		}
	}
	if !spec.Lookup("weights").IsMissing() {
		return special(mongoerr.CannotCreateIndex, "Invalid index specification %s; the field 'weights' can only be specified with text indexes", spec)
	}
	switch d.Kind {
	case Geo2D:
		return d.checkFlat(spec)
	case Geo2DSphere:
		return d.checkSphere(spec)
	}
	return nil
}

// listsItself says whether listKind tells of an option. On indexes of other kinds it means nothing, and is shown as it was given.
func (d *Definition) listsItself(option string) bool {
	switch option {
	case "weights", "default_language", "language_override", "textIndexVersion":
		return d.Kind == Text
	case "2dsphereIndexVersion":
		return d.Kind == Geo2DSphere
	}
	return false
}

// listKind adds what MongoDB fills in for indexes of special kinds.
func (d *Definition) listKind(b *bson.Builder, spec bson.Doc) {
	switch d.Kind {
	case Text:
		d.listText(b, spec)
	case Geo2DSphere:
		version(b, spec, "2dsphereIndexVersion", defaultSphereVersion)
	}
}

func version(b *bson.Builder, spec bson.Doc, name string, def int32) {
	if v := spec.Lookup(name); v.IsNumber() {
		def = int32(v.TruncInt64())
	}
	b.Int32(name, def)
}
