package pcre

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	wordSet       = `a-zA-Z0-9_`
	wordSetUCP    = `\p{L}\p{N}_`
	spaceSet      = `\t\n\x0b\f\r\x20`
	spaceSetUCP   = `\t\n\x0b\f\r\x20\x85\p{Z}`
	digitSet      = `0-9`
	digitSetUCP   = `\p{Nd}`
	horizontalSet = "\\t\\x20\u00a0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000"
	verticalSet   = "\\n\\x0b\\f\\r\u0085\u2028\u2029"
)

// set is the inside of the class that \d, \w and so on stand for.
func (t *translation) set(c byte) (set string, negated, ok bool) {
	lower := c | 0x20
	negated = c != lower
	pick := func(ascii, ucp string) string {
		if t.ucp {
			return ucp
		}
		return ascii
	}
	switch lower {
	case 'd':
		return pick(digitSet, digitSetUCP), negated, true
	case 'w':
		return pick(wordSet, wordSetUCP), negated, true
	case 's':
		return pick(spaceSet, spaceSetUCP), negated, true
	case 'h':
		return horizontalSet, negated, true
	case 'v':
		return verticalSet, negated, true
	}
	return "", false, false
}

func class(set string, negated bool) string {
	if negated {
		return "[^" + set + "]"
	}
	return "[" + set + "]"
}

// escape reads a backslash and what belongs to it, outside of a class.
func (t *translation) escape() error {
	if t.at+1 == len(t.in) {
		return invalid(`\ at end of pattern`)
	}
	c := t.in[t.at+1]
	if set, negated, ok := t.set(c); ok {
		t.at += 2
		t.emitAtom(class(set, negated), class(set, negated))
		return nil
	}
	switch c {
	case 'Q':
		return t.quoted()
	case 'E':
		t.at += 2
		return nil
	case 'b', 'B':
		t.at += 2
		t.boundary(c == 'B')
		return nil
	case 'A', 'G':
		t.at += 2
		t.atom = atom{}
		t.emit(`\A`, `\A`)
		return nil
	case 'z':
		t.at += 2
		t.atom = atom{}
		t.emit(`\z`, `\z`)
		return nil
	case 'Z':
		t.at += 2
		t.atom = atom{}
		t.noRE2()
		t.emit(`(?=\n?\z)`, ``)
		return nil
	case 'K':
		t.at += 2
		t.keepsOut = true
		return nil
	case 'N':
		if strings.HasPrefix(t.in[t.at+2:], "{") {
			return invalid(`PCRE does not support \N{name}`)
		}
		t.at += 2
		t.emitAtom(`[^\n]`, `[^\n]`)
		return nil
	case 'R':
		t.at += 2
		t.noRE2()
		t.emitAtom("(?>\\r\\n|["+verticalSet+"])", "")
		return nil
	case 'X', 'C':
		return unsupported(`\` + string(c))
	case 'p', 'P':
		set, negated, err := t.property()
		if err == nil {
			t.emitAtom(class(set, negated), class(set, negated))
		}
		return err
	case 'g', 'k':
		return t.reference(c)
	}
	if c >= '1' && c <= '9' {
		if done := t.numbered(); done {
			return nil
		}
	}
	r, err := t.character()
	if err == nil {
		t.literal(r)
	}
	return err
}

// quoted reads \Q…\E.
func (t *translation) quoted() error {
	text, _, closed := strings.Cut(t.in[t.at+2:], `\E`)
	t.at += 2 + len(text)
	if closed {
		t.at += 2
	}
	for _, r := range text {
		t.literal(r)
	}
	return nil
}

func (t *translation) boundary(negated bool) {
	t.atom = atom{}
	w := "[" + wordSet + "]"
	if t.ucp {
		w = "[" + wordSetUCP + "]"
		t.noRE2()
	}
	if negated {
		t.emit("(?:(?<="+w+")(?="+w+")|(?<!"+w+")(?!"+w+"))", `\B`)
		return
	}
	t.emit("(?:(?<="+w+")(?!"+w+")|(?<!"+w+")(?="+w+"))", `\b`)
}

// property reads \p{…} or \pL and returns the inside of a class.
func (t *translation) property() (set string, negated bool, err error) {
	negated = t.in[t.at+1] == 'P'
	rest := t.in[t.at+2:]
	var name string
	switch {
	case strings.HasPrefix(rest, "{"):
		end := strings.IndexByte(rest, '}')
		if end < 0 {
			return "", false, invalid(`malformed \P or \p sequence`)
		}
		name = rest[1:end]
		t.at += 2 + end + 1
	case rest != "":
		name = rest[:1]
		t.at += 3
	default:
		return "", false, invalid(`malformed \P or \p sequence`)
	}
	if strings.HasPrefix(name, "^") {
		name, negated = name[1:], !negated
	}
	set, ok := propertySet(name)
	if !ok {
		return "", false, invalid(`unknown property after \P or \p`)
	}
	return set, negated, nil
}

func propertySet(name string) (string, bool) {
	switch name {
	case "Any":
		return `\x00-` + string(rune(utf8.MaxRune)), true
	case "L&":
		return `\p{Lu}\p{Ll}\p{Lt}`, true
	case "Xan":
		return `\p{L}\p{N}`, true
	case "Xwd":
		return wordSetUCP, true
	case "Xsp", "Xps":
		return spaceSetUCP, true
	}
	if _, ok := unicode.Categories[name]; ok {
		return `\p{` + name + `}`, true
	}
	// Scripts may be written in any case, with blanks and underscores left out or put in.
	if s := loose(name); s != "" {
		for script := range unicode.Scripts {
			if loose(script) == s {
				return `\p{` + script + `}`, true
			}
		}
	}
	return "", false
}

func loose(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", " ", "", "-", "").Replace(name))
}

// numbered reads \1 and the like; false when the digits are an octal character instead.
func (t *translation) numbered() bool {
	end := t.at + 1
	for end < len(t.in) && t.in[end] >= '0' && t.in[end] <= '9' {
		end++
	}
	text := t.in[t.at+1 : end]
	n, err := strconv.Atoi(text)
	if err != nil || n > 9 && n > len(t.names) && text[0] < '8' {
		return false
	}
	t.at = end
	t.backReference(reference{number: n})
	return true
}

func (t *translation) backReference(r reference) {
	t.noRE2()
	t.refs = append(t.refs, r)
	if r.name != "" {
		r.number = t.groupNamed(r.name)
	}
	t.emitAtom(`(?:\`+strconv.Itoa(r.number)+`)`, "")
}

func (t *translation) groupNamed(name string) int {
	for i, n := range t.names {
		if n == name {
			return i + 1
		}
	}
	return 0
}

func (t *translation) checkReferences() error {
	for _, r := range t.refs {
		if r.name != "" && t.groupNamed(r.name) == 0 || r.number > len(t.names) {
			return invalid("reference to non-existent subpattern")
		}
	}
	return nil
}

// reference reads \g{…}, \gN, \k<…>, \k'…' and \k{…}.
func (t *translation) reference(c byte) error {
	rest := t.in[t.at+2:]
	closing := map[byte]string{'{': "}", '<': ">", '\'': "'"}
	var name string
	switch {
	case rest != "" && closing[rest[0]] != "":
		end := strings.Index(rest[1:], closing[rest[0]])
		if end < 0 {
			return invalid(`a numbered reference must not be zero`)
		}
		if c == 'g' && rest[0] != '{' {
			return unsupported("a subroutine call")
		}
		name = rest[1 : 1+end]
		t.at += 2 + end + 2
	case c == 'g':
		end := 0
		for end < len(rest) && (rest[end] >= '0' && rest[end] <= '9' || end == 0 && (rest[end] == '-' || rest[end] == '+')) {
			end++
		}
		name = rest[:end]
		t.at += 2 + end
	default:
		return invalid(`\k is not followed by a braced, angle-bracketed, or quoted name`)
	}
	if n, err := strconv.Atoi(name); err == nil {
		if name[0] == '-' {
			n = len(t.names) + 1 + n
		}
		if n <= 0 {
			return invalid("reference to non-existent subpattern")
		}
		t.backReference(reference{number: n})
		return nil
	}
	if name == "" || t.groupNamed(name) == 0 {
		return invalid("reference to non-existent subpattern")
	}
	t.backReference(reference{name: name})
	return nil
}

// character reads an escape that stands for one character, in a class or not.
func (t *translation) character() (rune, error) {
	c := t.in[t.at+1]
	rest := t.in[t.at+2:]
	simple := map[byte]rune{'a': 7, 'e': 27, 'f': 12, 'n': 10, 'r': 13, 't': 9}
	switch r, ok := simple[c]; {
	case ok:
		t.at += 2
		return r, nil
	case c == 'x':
		return t.hex(rest)
	case c == 'o':
		end := strings.IndexByte(rest, '}')
		if !strings.HasPrefix(rest, "{") || end < 0 {
			return 0, invalid(`missing opening brace after \o`)
		}
		t.at += 2 + end + 1
		return codePoint(rest[1:end], 8)
	case c >= '0' && c <= '7':
		end := 0
		for end < 2 && end < len(rest) && rest[end] >= '0' && rest[end] <= '7' {
			end++
		}
		t.at += 2 + end
		return codePoint(t.in[t.at-end-1:t.at], 8)
	case c == 'c':
		if rest == "" || rest[0] < ' ' || rest[0] > '~' {
			return 0, invalid(`\c must be followed by a printable ASCII character`)
		}
		t.at += 3
		return unicode.ToUpper(rune(rest[0])) ^ 0x40, nil
	case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '8' && c <= '9':
		return 0, invalid(`unrecognized character follows \`)
	}
	r, n := utf8.DecodeRuneInString(t.in[t.at+1:])
	t.at += 1 + n
	return r, nil
}

func (t *translation) hex(rest string) (rune, error) {
	if strings.HasPrefix(rest, "{") {
		if end := strings.IndexByte(rest, '}'); end > 0 {
			t.at += 2 + end + 1
			return codePoint(rest[1:end], 16)
		}
	}
	end := 0
	for end < 2 && end < len(rest) && strings.IndexByte("0123456789abcdefABCDEF", rest[end]) >= 0 {
		end++
	}
	t.at += 2 + end
	if end == 0 {
		return 0, nil
	}
	return codePoint(rest[:end], 16)
}

func codePoint(text string, base int) (rune, error) {
	n, err := strconv.ParseUint(text, base, 32)
	if err != nil {
		return 0, invalid(`character code point value in \x{} or \o{} is too large or malformed`)
	}
	if n > utf8.MaxRune || n >= 0xd800 && n < 0xe000 {
		return 0, invalid(`character code point value in \x{} or \o{} is too large`)
	}
	return rune(n), nil
}
