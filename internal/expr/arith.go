package expr

func arithmeticOperators() []Operator {
	return []Operator{}
}
