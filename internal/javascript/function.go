package javascript

import (
	"strings"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/parser"
)

// maxStarts is how many places are tried for where the last statement of several begins.
const maxStarts = 1000

// function is the text of a function for source that is one, or an expression or statements. Of statements the last is what it returns where that is
// an expression, as in MongoDB. It parses, so that it is for workers.
func function(source string) string {
	text := trimmed(source)
	if isFunction(text) {
		return text
	}
	program, err := parser.ParseFile(nil, "", text, 0)
	if err != nil { // a return outside of a function is one, too
		if _, err := parser.ParseFile(nil, "", "("+body(text)+")", 0); err != nil {
			return text // whose error is told
		}
	}
	if err != nil || len(program.Body) == 0 {
		return body(text)
	}
	last, ok := program.Body[len(program.Body)-1].(*ast.ExpressionStatement)
	if !ok {
		return body(text)
	}
	after := 0
	if n := len(program.Body); n > 1 {
		after = int(program.Body[n-2].Idx0()) - 1
	}
	return returningLast(text, after, int(last.Idx0())-1, len(program.Body))
}

// trimmed is source without what ends its last statement.
func trimmed(source string) string { return strings.TrimRight(strings.TrimSpace(source), "; \t\r\n") }

// returning is a function of an expression.
func returning(text string) string { return "function() { return " + text + "\n}" }

// isFunction says whether text is a function and nothing else but comments.
func isFunction(text string) bool {
	program, err := parser.ParseFile(nil, "", "("+text+"\n)", 0)
	if err != nil || len(program.Body) != 1 {
		return false
	}
	statement, ok := program.Body[0].(*ast.ExpressionStatement)
	if !ok {
		return false
	}
	switch statement.Expression.(type) {
	case *ast.FunctionLiteral, *ast.ArrowFunctionLiteral:
		return true
	}
	return false
}

// returningLast is a function of so many statements that returns the last, an expression. That begins where a "return" makes it the same statements:
// at its first word, or before it, since the tree has no parentheses.
func returningLast(text string, after, at, statements int) string {
	for i := at; i >= max(after, at-maxStarts); i-- {
		whole := body(text[:i] + " return " + text[i:])
		program, err := parser.ParseFile(nil, "", "("+whole+")", 0)
		if err != nil || len(program.Body) != 1 {
			continue
		}
		literal := program.Body[0].(*ast.ExpressionStatement).Expression.(*ast.FunctionLiteral)
		if all := literal.Body.List; len(all) == statements {
			if _, ok := all[len(all)-1].(*ast.ReturnStatement); ok {
				return whole
			}
		}
	}
	return body(text)
}

// body is a function of statements.
func body(text string) string { return "function() {" + text + "\n}" }

// plainFunction is the text of a function for source that is a plain one, or a plain expression.
func plainFunction(source string) (text string, ok bool) {
	if len(source) > maxPlain {
		return "", false
	}
	text = trimmed(source)
	for _, text := range []string{text, returning(text), body(text)} {
		if plain(text) {
			return text, true
		}
	}
	return "", false
}
