package regex

import "strings"

// translation is a PCRE pattern in the syntax that both engines read.
type translation struct {
	text    string
	dollars string // text with each "$" as PCRE means it, for the backtracking engine
	dollar  bool
	behind  bool
	unicode bool // (*UCP): \w, \d, \s and \b go by Unicode
}

// startVerbs are the settings that a pattern may start with; of these only UCP changes what matches here.
var startVerbs = []string{"(*UTF8)", "(*UTF)", "(*UCP)", "(*ANYCRLF)", "(*LF)", "(*NO_JIT)"}

func translate(pattern string) translation {
	var t translation
	for again := true; again; {
		again = false
		for _, verb := range startVerbs {
			if rest, ok := strings.CutPrefix(pattern, verb); ok {
				pattern, again = rest, true
				t.unicode = t.unicode || verb == "(*UCP)"
			}
		}
	}
	var text, dollars strings.Builder
	both := func(s string) { text.WriteString(s); dollars.WriteString(s) }
	class := false
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		switch {
		case c == '\\' && i+1 < len(pattern):
			i++
			if pattern[i] == 'Q' {
				end := strings.Index(pattern[i:], `\E`)
				if end < 0 {
					end = len(pattern) - i
				}
				both(`\` + pattern[i:i+end] + `\E`)
				i += end + 1
				continue
			}
			both(t.escape(pattern[i], class))
		case class:
			if c == '[' && i+1 < len(pattern) && pattern[i+1] == ':' {
				if end := strings.Index(pattern[i:], ":]"); end > 0 {
					both(pattern[i : i+end+2])
					i += end + 1
					continue
				}
			}
			class = c != ']'
			if c == '[' { // a lone bracket opens nothing inside a class
				both(`\[`)
				continue
			}
			both(string([]byte{c}))
		case c == '[':
			class = true
			both("[")
			if i+1 < len(pattern) && pattern[i+1] == '^' {
				i++
				both("^")
			}
			if i+1 < len(pattern) && pattern[i+1] == ']' { // a bracket that comes first is itself
				i++
				both(`\]`)
			}
		case c == '$':
			t.dollar = true
			text.WriteByte('$')
			dollars.WriteString(`(?=\n?\z)`)
		default:
			t.behind = t.behind || c == '^'
			both(string([]byte{c}))
		}
	}
	t.text, t.dollars = text.String(), dollars.String()
	return t
}

// escape is the escape \c.
func (t *translation) escape(c byte, class bool) string {
	switch c {
	case 'b', 'B', 'A', 'G':
		t.behind = t.behind || !class
	case 's':
		if t.unicode {
			break
		}
		if class {
			return `\s\x0b`
		}
		return `[\s\x0b]`
	case 'S':
		if !class && !t.unicode {
			return `[^\s\x0b]`
		}
	case 'h':
		if class {
			return `\t \x{a0}`
		}
		return `[\t \x{a0}]`
	case 'H':
		if !class {
			return `[^\t \x{a0}]`
		}
	case 'N':
		if !class {
			return `[^\n]`
		}
	case 'R':
		if !class {
			return `(?:\r\n|[\n\x0b\f\r\x{85}\x{2028}\x{2029}])`
		}
	case 'Z':
		return `(?=\n?\z)`
	case 'e':
		return `\x1b`
	}
	return `\` + string([]byte{c})
}
