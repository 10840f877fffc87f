package update

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// MaxDepth is the deepest nesting of a document that may be stored.
const MaxDepth = 180

func dollarField(name string) error {
	return mongoerr.New(mongoerr.DollarPrefixedFieldName, "The dollar ($) prefixed field '%s' in '%s' is not allowed in the context of"+
		" an update's replacement document. Consider using an aggregation pipeline with $replaceWith.", name, name)
}

// CheckStorable refuses a document that a user may not store: by the type of its _id, by what _id holds, by its depth.
func CheckStorable(d bson.Doc) error {
	if id := d.Lookup("_id"); !id.IsMissing() {
		if err := checkID(id); err != nil {
			return err
		}
	}
	if len(d) < 5+MaxDepth*7 { // a level takes at least so much
		return nil
	}
	return checkDepth(d, 1)
}

// checkID refuses values that no _id may have: some types, and objects with a field that begins with a dollar sign, unless they are
// DBRefs, which begin with $ref, a string, and $id. A third field $db of these is a string, too.
func checkID(id bson.Value) error {
	switch id.Type {
	case bson.TypeArray, bson.TypeRegex, bson.TypeUndefined:
		return mongoerr.New(mongoerr.InvalidIdField, "The '_id' value cannot be of type %s", id.Type)
	case bson.TypeObject:
		ref := false
		it := id.Doc().Iter()
		for n := 0; it.Next(); n++ {
			key := it.Key()
			if key == "" || key[0] != '$' {
				continue
			}
			switch {
			case n == 0 && key == "$ref" && it.Value().Type == bson.TypeString:
				ref = it.Next() && it.Key() == "$id"
				if ref {
					n++
					continue
				}
			case n == 2 && ref && key == "$db" && it.Value().Type == bson.TypeString:
				continue
			}
			return mongoerr.New(mongoerr.DollarPrefixedFieldName, "_id fields may not contain '$'-prefixed fields: %s is not valid for storage.", key)
		}
	}
	return nil
}

func checkLevel(depth int) error {
	if depth > MaxDepth {
		return mongoerr.New(mongoerr.Overflow, "Document exceeds maximum nesting depth of %d", MaxDepth)
	}
	return nil
}

// checkDepth looks at the elements of d, which are at the given level.
func checkDepth(d bson.Doc, depth int) error {
	if err := checkLevel(depth); err != nil {
		return err
	}
	for it := d.Iter(); it.Next(); {
		if v := it.Value(); (v.Type == bson.TypeObject || v.Type == bson.TypeArray) && len(v.Data) > 5 {
			if err := checkDepth(v.Doc(), depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}
