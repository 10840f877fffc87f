package pcre

import (
	"strconv"
	"strings"
)

// open reads what starts with a parenthesis.
func (t *translation) open() error {
	if len(t.groups) >= MaxNesting {
		return invalid("parentheses are too deeply nested")
	}
	rest := t.in[t.at+1:]
	switch {
	case strings.HasPrefix(rest, "?"):
		return t.special(rest[1:])
	case strings.HasPrefix(rest, "*"):
		return t.verb(rest[1:])
	case t.flags.n:
		t.push("(?:", 1, group{})
	default:
		t.capture("", 1)
	}
	return nil
}

// push opens a group that both engines open with the same text, and steps over n bytes of the pattern.
func (t *translation) push(text string, n int, g group) {
	g.atom, g.flags = atom{true, len(t.back), len(t.re2)}, t.flags
	if len(t.groups) > 0 && t.groups[len(t.groups)-1].lookbehind {
		g.lookbehind = true
	}
	t.groups = append(t.groups, g)
	t.at += n
	t.atom = atom{}
	t.emit(text, text)
}

func (t *translation) capture(name string, n int) {
	t.names = append(t.names, name)
	t.push("(", n, group{})
}

func (t *translation) close() error {
	if len(t.groups) == 0 {
		return invalid("unmatched closing parenthesis")
	}
	g := t.groups[len(t.groups)-1]
	t.groups = t.groups[:len(t.groups)-1]
	t.at++
	t.emit(")", ")")
	t.flags = g.flags // flags set inside end here, in the engines as well
	t.atom = g.atom
	return nil
}

// special reads what starts with (?; rest is behind that.
func (t *translation) special(rest string) error {
	look := map[string]group{
		"<=": {lookbehind: true, lookaround: true}, "<!": {lookbehind: true, lookaround: true},
		"=": {lookaround: true}, "!": {lookaround: true}, ">": {},
	}
	for _, text := range []string{"<=", "<!", "=", "!", ">"} {
		if strings.HasPrefix(rest, text) {
			t.noRE2()
			t.push("(?"+text, 2+len(text), look[text])
			return nil
		}
	}
	switch {
	case strings.HasPrefix(rest, ":"):
		t.push("(?:", 3, group{})
		return nil
	case strings.HasPrefix(rest, "#"):
		end := strings.IndexByte(rest, ')')
		if end < 0 {
			return invalid("missing ) after (?# comment")
		}
		t.at += 2 + end + 1
		return nil
	case strings.HasPrefix(rest, "P<"), strings.HasPrefix(rest, "<"), strings.HasPrefix(rest, "'"):
		return t.named(rest)
	case strings.HasPrefix(rest, "P="):
		end := strings.IndexByte(rest, ')')
		if end < 0 || t.groupNamed(rest[2:max(2, end)]) == 0 {
			return invalid("reference to non-existent subpattern")
		}
		t.at += 2 + end + 1
		t.backReference(reference{name: rest[2:end]})
		return nil
	case strings.HasPrefix(rest, "("):
		return t.conditional(rest[1:])
	case strings.HasPrefix(rest, "|"):
		return unsupported("a branch reset group")
	case strings.HasPrefix(rest, "R"), strings.HasPrefix(rest, "&"), strings.HasPrefix(rest, "P>"), strings.HasPrefix(rest, "+"),
		rest != "" && rest[0] >= '0' && rest[0] <= '9', len(rest) > 1 && rest[0] == '-' && rest[1] >= '0' && rest[1] <= '9':
		return unsupported("recursion")
	case strings.HasPrefix(rest, "C"):
		return unsupported("a callout")
	}
	return t.setFlags(rest)
}

// named reads (?<name>, (?P<name> and (?'name'.
func (t *translation) named(rest string) error {
	skip := 1
	if rest[0] == 'P' {
		skip = 2
	}
	closing := ">"
	if rest[skip-1] == '\'' {
		closing = "'"
	}
	end := strings.Index(rest[skip:], closing)
	if end < 0 {
		return invalid("syntax error in subpattern name (missing terminator?)")
	}
	name := rest[skip : skip+end]
	switch {
	case name == "":
		return invalid("subpattern name expected")
	case name[0] >= '0' && name[0] <= '9':
		return invalid("subpattern name must start with a non-digit")
	case len(name) > 32:
		return invalid("subpattern name is too long (maximum 32 code units)")
	case t.groupNamed(name) != 0:
		return invalid("two named subpatterns have the same name (PCRE2_DUPNAMES not set)")
	}
	for i := 0; i < len(name); i++ {
		if c := name[i]; !(c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80) {
			return invalid("syntax error in subpattern name (missing terminator?)")
		}
	}
	t.capture(name, 2+skip+end+1)
	return nil
}

// conditional reads (?(1)…) and (?(<name>)…).
func (t *translation) conditional(rest string) error {
	end := strings.IndexByte(rest, ')')
	if end < 0 {
		return invalid("missing closing parenthesis for condition")
	}
	name := strings.Trim(rest[:end], "<>'")
	n, err := strconv.Atoi(name)
	if err != nil {
		if n = t.groupNamed(name); n == 0 {
			return unsupported("this kind of condition")
		}
	}
	t.noRE2()
	t.refs = append(t.refs, reference{number: n})
	t.push("(?("+strconv.Itoa(n)+")", 3+end+1, group{})
	return nil
}

// verb reads (*…) inside a pattern.
func (t *translation) verb(rest string) error {
	end := strings.IndexByte(rest, ')')
	if end < 0 {
		return invalid("missing closing parenthesis")
	}
	switch rest[:end] {
	case "F", "FAIL":
		t.at += 2 + end + 1
		t.noRE2()
		t.emitAtom("(?!)", "")
		return nil
	case "ACCEPT", "COMMIT", "PRUNE", "SKIP", "THEN", "CR", "CRLF", "ANY", "ANYCRLF", "NUL", "BSR_ANYCRLF":
		return unsupported("(*" + rest[:end] + ")")
	}
	return invalid("(*VERB) not recognized or malformed")
}

// setFlags reads (?i), (?s-m) and (?i:.
func (t *translation) setFlags(rest string) error {
	end := strings.IndexAny(rest, ":)")
	if end < 0 {
		return invalid("missing closing parenthesis")
	}
	on, off, _ := strings.Cut(rest[:end], "-")
	f := t.flags
	if strings.HasPrefix(on, "^") {
		f, on = flags{}, on[1:]
	}
	for _, c := range on + off {
		switch c {
		case 'i', 'm', 's', 'x', 'n':
		case 'U', 'J':
			return unsupported("(?" + string(c) + ")")
		default:
			return invalid("unrecognized character after (? or (?-")
		}
	}
	f.set(on, true)
	f.set(off, false)
	text := "(?-i"
	if f.i {
		text = "(?i"
	}
	if rest[end] == ':' {
		t.push(text+":", 2+end+1, group{})
		t.flags = f
		return nil
	}
	t.at += 2 + end + 1
	t.flags = f
	t.atom = atom{}
	t.emit(text+")", text+")")
	return nil
}
