package pcre

import "strings"

// endStartUnlessLiteral ends the pattern's plain start at an escape that is no quoted punctuation.
func (t *translation) endStartUnlessLiteral() {
	if t.at+1 < len(t.in) {
		if c := t.in[t.at+1]; c == 'A' && !t.started && len(t.start) == 0 {
			t.start = append(t.start, token{anchor: true})
			return
		} else if c == 'Q' || c == 'E' || c < 0x80 && !(c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z') {
			return
		}
	}
	t.started = true
}

// startAlternative: with an alternative at the top there is no common start.
func (t *translation) startAlternative() {
	if len(t.groups) == 0 {
		t.start = nil
	}
	t.started = true
}

// prefix is the literal that an anchored pattern starts with.
func (t *translation) prefix() string {
	if len(t.start) == 0 || !t.start[0].anchor {
		return ""
	}
	return literals(t.start[1:])
}

func literals(tokens []token) string {
	var b strings.Builder
	for _, tok := range tokens {
		b.WriteRune(tok.lit)
	}
	return b.String()
}

// prefixExact says whether the pattern is its prefix and nothing else that matters.
func (t *translation) prefixExact() bool {
	p := t.prefix()
	return p != "" && !t.flags.x && !t.flags.i && len(t.names) == 0 && (t.in == "^"+p || t.in == "^"+p+".*" || t.in == `\A`+p)
}

// plain says whether the pattern is a literal, anchored or not, and nothing else.
func (t *translation) plain() (lit string, anchored, ok bool) {
	if t.started || len(t.start) == 0 || len(t.groups) > 0 {
		return "", false, false
	}
	if t.start[0].anchor {
		return literals(t.start[1:]), true, true
	}
	return literals(t.start), false, true
}
