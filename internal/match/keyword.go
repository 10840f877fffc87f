package match

// IsCondition says whether a document that starts with name is a condition on bare values, as $pull takes one: name is an
// operator that stands behind a path. A $not is none.
func (p *Parser) IsCondition(name string) bool { return name != "$not" && p.fields[name] != nil }
