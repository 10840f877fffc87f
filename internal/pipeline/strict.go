package pipeline

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// want is a field of a stage's argument that is read by MongoDB's strict rules: null means missing, unless the field takes
// any value.
type want struct {
	name     string
	to       *bson.Value
	types    []bson.Type // none for any
	required bool
	given    bool // null is a value of a wrong type, too
	flag     bool // a boolean whose reader speaks of it alone, and takes no null
}

// readStrict takes the fields of d apart: unknown and repeated ones, wrong types and missing ones are errors.
func readStrict(stage string, d bson.Doc, wants ...want) error {
	seen := make([]bool, len(wants))
	for it := d.Iter(); it.Next(); {
		i := 0
		for i < len(wants) && wants[i].name != it.Key() {
			i++
		}
		if i == len(wants) {
			return mongoerr.New(40415, "BSON field '%s.%s' is an unknown field.", stage, it.Key())
		}
		if seen[i] {
			return mongoerr.New(40413, "BSON field '%s.%s' is a duplicate field", stage, it.Key())
		}
		seen[i] = true
		v := it.Value()
		if wants[i].flag && v.Type != bson.TypeBool {
			return mongoerr.New(mongoerr.TypeMismatch, "Field '%s' should be a boolean value, but found: %s", it.Key(), v.Type)
		}
		if len(wants[i].types) == 0 {
			*wants[i].to = v
			continue
		}
		if (v.Type == bson.TypeNull || v.Type == bson.TypeUndefined) && !wants[i].given {
			continue
		}
		if !hasType(wants[i].types, v.Type) {
			return wrongType(stage+"."+it.Key(), v.Type, wants[i].types)
		}
		*wants[i].to = v
	}
	for i := range wants {
		if wants[i].required && wants[i].to.IsMissing() {
			return mongoerr.New(40414, "BSON field '%s.%s' is missing but a required field", stage, wants[i].name)
		}
	}
	return nil
}

func hasType(types []bson.Type, t bson.Type) bool {
	for _, u := range types {
		if t == u {
			return true
		}
	}
	return false
}

func wrongType(field string, got bson.Type, wanted []bson.Type) error {
	if len(wanted) == 1 {
		return mongoerr.New(mongoerr.TypeMismatch, "BSON field '%s' is the wrong type '%s', expected type '%s'", field, got, wanted[0])
	}
	list := ""
	for i, t := range wanted {
		if i > 0 {
			list += ", "
		}
		list += t.String()
	}
	return mongoerr.New(mongoerr.TypeMismatch, "BSON field '%s' is the wrong type '%s', expected types '[%s]'", field, got, list)
}

// The types that fields take.
var (
	anObject = []bson.Type{bson.TypeObject}
	anArray  = []bson.Type{bson.TypeArray}
	aString  = []bson.Type{bson.TypeString}
	aBool    = []bson.Type{bson.TypeBool}
	aNumber  = []bson.Type{bson.TypeDouble, bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal}
)
