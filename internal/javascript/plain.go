package javascript

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

const (
	// maxPlain is the longest text of a plain function.
	maxPlain = 1 << 10
	// maxPlainWords bounds the words of one, and with them how deep it nests and how often it looks at a value.
	maxPlainWords = 120
	// maxPlainSums is how often a plain function may add: each sum of strings copies them.
	maxPlainSums = 8
	// maxPlainBytes are the most bytes of values that a plain function is given in this process.
	maxPlainBytes = 256 << 10
)

// plain says whether the text of a function shows that nothing in it can run for long or take much memory: it returns an
// expression of its parameters, of "this" and "obj", of numbers and short strings, with fields and operators. It has no
// calls, loops, assignments, regular expressions, templates, or literals of BigInt, and neither ** nor shifts. What looks
// odd in any way is not plain.
func plain(text string) bool {
	if len(text) > maxPlain {
		return false
	}
	params, body, ok := cutHead(text)
	if !ok {
		return false
	}
	words := plainWords().FindAllString(body, maxPlainWords+1)
	if len(words) > maxPlainWords || strings.Join(words, "") != body {
		return false
	}
	return plainExpression(slices.DeleteFunc(words, func(w string) bool { return strings.TrimSpace(w) == "" }), params)
}

// cutHead takes "function name(a, b) { return" and "}" off.
func cutHead(text string) (params []string, body string, ok bool) {
	head := plainHead().FindStringSubmatch(text)
	if head == nil {
		return nil, "", false
	}
	for name := range strings.SplitSeq(head[1], ",") {
		if name = strings.TrimSpace(name); name != "" {
			params = append(params, name)
		}
	}
	return params, strings.TrimRight(head[2], "; \t\r\n"), true
}

// plainExpression looks at each word with the one before.
func plainExpression(words, params []string) bool {
	sums, before := 0, ""
	for _, word := range words {
		switch {
		case word == "+":
			if sums++; sums > maxPlainSums || before == "+" {
				return false
			}
		case word == before && (word == "*" || word == "-"): // ** and --
			return false
		case word == "(" && endsOperand(before): // a call
			return false
		case word == "." || before == ".": // any name may follow
			if before == "." && !isName(word) {
				return false
			}
		case isName(word) && !plainName(word, params):
			return false
		}
		before = word
	}
	return len(words) > 0
}

func plainName(word string, params []string) bool {
	switch word {
	case "this", "obj", "true", "false", "null", "undefined":
		return true
	}
	return slices.Contains(params, word)
}

func isName(word string) bool {
	c := word[0]
	return c == '_' || c == '$' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// endsOperand says whether a value may end with word, so that a bracket behind it calls it.
func endsOperand(word string) bool {
	if word == "" {
		return false
	}
	return isName(word) || strings.ContainsRune(`)]"'0123456789`, rune(word[len(word)-1]))
}

var plainHead = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^function(?:\s+[A-Za-z_]\w*)?\s*\(\s*((?:[A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*)?)\s*\)\s*\{[ \t]*return[ \t]+([^{}]*)\}$`)
})

// plainWords are spaces, names, numbers, short strings without escapes, and operators. "=" alone, "++" and the like are
// no words; a number that a letter follows would need two words with nothing between.
var plainWords = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[ \t\r\n]+|[A-Za-z_$][\w$]*|\d{1,15}(?:\.\d{1,15})?\b|"[^"\\\r\n]{0,100}"|'[^'\\\r\n]{0,100}'|[=!]==?|[<>]=?|&&|\|\||[-+*%!.?:,()\[\]]`)
})
