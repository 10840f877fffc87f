package match

import "github.com/ebbdb/ebb/internal/bson"

// IsCondition says whether a document that starts with name is a condition on bare values, as $pull takes one: name is an
// operator that stands behind a path. A $not is none.
func (p *Parser) IsCondition(name string) bool { return name != "$not" && p.fields[name] != nil }

// IsOperators says whether a filter takes v, behind a path, for operators rather than for a value to compare with: v is a
// document whose first name starts with '$', and no DBRef.
func IsOperators(v bson.Value) bool { return isOperators(v, false) }
