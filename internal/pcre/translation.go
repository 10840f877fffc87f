package pcre

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// translation reads a pattern and writes it for both engines. Everything that the engines read differently is spelled out:
// classes, anchors and the dot as explicit sets, groups by number only, comments and white space left out. Only the case
// flag goes through as a flag.
type translation struct {
	in    string
	at    int
	flags flags
	ucp   bool

	back, re2 []byte
	re2No     bool // RE2 cannot say it
	re2Long   bool // RE2 says it, but may find one newline too many

	names    []string
	refs     []reference
	keepsOut bool
	groups   []group
	atom     atom // what a quantifier would apply to

	start   []token // the pattern's start, while it is plain
	started bool    // the start is over
}

type flags struct{ i, m, s, x, n bool }

func (f *flags) set(options string, on bool) {
	for _, c := range options {
		switch c {
		case 'i':
			f.i = on
		case 'm':
			f.m = on
		case 's':
			f.s = on
		case 'x':
			f.x = on
		case 'n':
			f.n = on
		}
	}
}

type reference struct {
	number int
	name   string
}

// group is an open parenthesis.
type group struct {
	atom       atom
	flags      flags
	lookbehind bool
	lookaround bool
}

// atom is where the last thing that a quantifier may follow starts in both texts.
type atom struct {
	ok        bool
	back, re2 int
}

// token is a part of a pattern's start: an anchor, a literal, or a literal that is repeated.
type token struct {
	lit    rune
	anchor bool
}

func (t *translation) run() error {
	t.verbs()
	if t.flags.i {
		t.emit("(?i)", "(?i)")
	}
	for t.at < len(t.in) {
		if err := t.next(); err != nil {
			return err
		}
	}
	if len(t.groups) > 0 {
		return invalid("missing closing parenthesis")
	}
	return t.checkReferences()
}

// verbs reads (*UTF) and its like at the pattern's start.
func (t *translation) verbs() {
	for {
		rest := t.in[t.at:]
		end := strings.IndexByte(rest, ')')
		if !strings.HasPrefix(rest, "(*") || end < 0 {
			return
		}
		switch verb := rest[2:end]; {
		case verb == "UCP":
			t.ucp = true
		case verb == "UTF", verb == "UTF8", verb == "LF", strings.HasPrefix(verb, "NO_"), strings.HasPrefix(verb, "LIMIT_"), verb == "BSR_UNICODE":
		default:
			return
		}
		t.at += end + 1
	}
}

func (t *translation) emit(back, re2 string) {
	t.back = append(t.back, back...)
	t.re2 = append(t.re2, re2...)
}

// emitAtom writes something that a quantifier may follow.
func (t *translation) emitAtom(back, re2 string) {
	t.mark()
	t.emit(back, re2)
}

func (t *translation) mark() { t.atom = atom{true, len(t.back), len(t.re2)} }

func (t *translation) noRE2() { t.re2No = true }

// next reads one item of the pattern.
func (t *translation) next() error {
	c := t.in[t.at]
	switch c {
	case '\\':
		t.endStartUnlessLiteral()
		return t.escape()
	case '[':
		t.started = true
		return t.class()
	case '(':
		t.started = true
		return t.open()
	case ')':
		t.started = true
		return t.close()
	case '|':
		t.startAlternative()
		t.at++
		t.atom = atom{}
		t.emit("|", "|")
		return nil
	case '*', '+', '?':
		return t.quantifier(t.in[t.at:t.at+1], 1)
	case '{':
		if n, ok := t.braces(); ok {
			return t.quantifier(t.in[t.at:t.at+n], n)
		}
	case '^':
		t.at++
		t.caret()
		return nil
	case '$':
		t.at++
		t.started = true
		t.dollar()
		return nil
	case '.':
		t.at++
		t.started = true
		if t.flags.s {
			t.emitAtom(`[\s\S]`, `(?s:.)`)
		} else {
			t.emitAtom(`[^\n]`, `[^\n]`)
		}
		return nil
	}
	if t.flags.x && t.blank() {
		return nil
	}
	r, n := utf8.DecodeRuneInString(t.in[t.at:])
	t.at += n
	t.literal(r)
	return nil
}

// blank skips white space and a comment under the x flag.
func (t *translation) blank() bool {
	switch c := t.in[t.at]; {
	case c == ' ' || c >= '\t' && c <= '\r':
		t.at++
		return true
	case c == '#':
		if end := strings.IndexByte(t.in[t.at:], '\n'); end >= 0 {
			t.at += end + 1
		} else {
			t.at = len(t.in)
		}
		return true
	}
	return false
}

func (t *translation) literal(r rune) {
	if t.flags.i {
		t.started = true
	}
	if !t.started {
		t.start = append(t.start, token{lit: r})
	}
	q := quote(r)
	t.emitAtom(q, q)
}

// quote is r as both engines read it literally, inside and outside of classes.
func quote(r rune) string {
	if r < utf8.RuneSelf && !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_') {
		if r <= ' ' || r == 0x7f {
			return `\x` + string("0123456789abcdef"[r>>4]) + string("0123456789abcdef"[r&15])
		}
		return `\` + string(r)
	}
	return string(r)
}

func (t *translation) caret() {
	t.atom = atom{}
	if !t.flags.m {
		if !t.started && len(t.start) == 0 {
			t.start = append(t.start, token{anchor: true})
		} else {
			t.started = true
		}
		t.emit(`\A`, `\A`)
		return
	}
	// PCRE does not see a line start behind the last newline of the subject. With a letter next it makes no difference.
	t.started = true
	t.emit(`(?:\A|(?<=\n)(?!\z))`, `(?m:^)`)
	rest := t.in[t.at:]
	if len(rest) == 0 || !(rest[0] >= 'a' && rest[0] <= 'z' || rest[0] >= 'A' && rest[0] <= 'Z' || rest[0] >= '0' && rest[0] <= '9') ||
		len(rest) > 1 && strings.IndexByte("*?{", rest[1]) >= 0 {
		t.noRE2()
	}
}

func (t *translation) dollar() {
	t.atom = atom{}
	if t.flags.m {
		t.emit(`(?=\n|\z)`, `(?m:$)`)
		return
	}
	t.re2Long = true
	t.emit(`(?=\n?\z)`, `(?:\n?\z)`)
	if len(t.groups) > 0 || t.at < len(t.in) && t.in[t.at] != '|' {
		t.noRE2()
	}
}

// braces is the length of a quantifier in braces that starts here.
func (t *translation) braces() (int, bool) {
	rest := t.in[t.at:]
	end := strings.IndexByte(rest, '}')
	if end < 2 {
		return 0, false
	}
	low, high, comma := strings.Cut(rest[1:end], ",")
	if !digits(low) || comma && high != "" && !digits(high) {
		return 0, false
	}
	return end + 1, true
}

func digits(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

func (t *translation) quantifier(q string, n int) error {
	if !t.atom.ok {
		return invalid("quantifier does not follow a repeatable item")
	}
	t.at += n
	if err := checkBounds(q); err != nil {
		return err
	}
	if len(t.groups) > 0 && t.groups[len(t.groups)-1].lookbehind && (q == "*" || q == "+" || strings.HasSuffix(q, ",}")) {
		return invalid("lookbehind assertion is not fixed length")
	}
	if !t.started && len(t.start) > 0 {
		t.start = t.start[:len(t.start)-1] // the literal before may be missing
		t.started = true
	}
	switch {
	case t.at < len(t.in) && t.in[t.at] == '?':
		t.at++
		t.emit(q+"?", q+"?")
	case t.at < len(t.in) && t.in[t.at] == '+':
		t.at++
		t.noRE2()
		t.back = slices.Insert(t.back, t.atom.back, []byte("(?>")...)
		t.emit(q+")", q)
	default:
		t.emit(q, q)
	}
	// A group keeps another quantifier from being read as a mark of this one.
	if t.at < len(t.in) && strings.IndexByte("*+?{", t.in[t.at]) >= 0 {
		t.back = slices.Insert(t.back, t.atom.back, []byte("(?:")...)
		t.re2 = slices.Insert(t.re2, t.atom.re2, []byte("(?:")...)
		t.emit(")", ")")
	}
	return nil
}

const maxRepeat = 65535

func checkBounds(q string) error {
	if q[0] != '{' {
		return nil
	}
	low, high, comma := strings.Cut(q[1:len(q)-1], ",")
	a, err := strconv.Atoi(low)
	b := a
	if comma && high != "" && err == nil {
		b, err = strconv.Atoi(high)
	}
	switch {
	case err != nil || a > maxRepeat || b > maxRepeat:
		return invalid("number too big in {} quantifier")
	case b < a:
		return invalid("numbers out of order in {} quantifier")
	}
	return nil
}
