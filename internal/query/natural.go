package query

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// sortNaturally makes of a sort by {$natural: ±1}, which is a hint more than a sort, the hint that it is.
func sortNaturally(sort bson.Doc, hint bson.Value) (bson.Doc, bson.Value, error) {
	v := sort.Lookup("$natural")
	if v.IsMissing() {
		return sort, hint, nil
	}
	if sort.Count() != 1 || !isDirection(v) {
		return sort, hint, mongoerr.New(mongoerr.BadValue, "$natural sort cannot be set to a value other than -1 or 1.")
	}
	if hint.IsNullish() {
		return nil, sort.Value(), nil
	}
	hinted := bson.Missing
	if hint.Type == bson.TypeObject {
		hinted = hint.Doc().Lookup("$natural")
	}
	switch {
	case hinted.IsMissing():
		return sort, hint, mongoerr.New(mongoerr.BadValue, "index hint not allowed with $natural sort order")
	case hinted.AsDouble() != v.AsDouble():
		return sort, hint, mongoerr.New(mongoerr.BadValue, "$natural hint must be in the same direction as $natural sort order")
	}
	return nil, hint, nil
}

func isDirection(v bson.Value) bool {
	return v.IsNumber() && (v.AsDouble() == 1 || v.AsDouble() == -1)
}

func (u *Update) sortNaturally() (err error) {
	u.Sort, u.Hint, err = sortNaturally(u.Sort, u.Hint)
	return err
}
