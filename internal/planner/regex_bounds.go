package planner

import (
	"strings"
	"unicode/utf8"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/match"
)

// regexBounds are the strings that may match and the pattern itself, which matches where it is a value.
func regexBounds(r *match.Regex, x Index) (Intervals, tightness) {
	strs, t := bracket(bson.TypeString), onKey
	if p, whole := literalPrefix(r.Pattern, r.Options); p != "" && x.Collator() == nil {
		strs.Low = bson.String(p)
		if high := after(p); high != "" {
			strs.High = bson.String(high)
		}
		if whole {
			t = exact
		}
	}
	return Intervals{strs, Point(bson.Regex(r.Pattern, r.Options))}, t
}

// literalPrefix is what every match of an anchored pattern starts with, "" when that is not plain to see; whole says that
// whatever starts so matches.
func literalPrefix(pattern, options string) (prefix string, whole bool) {
	p, always := strings.CutPrefix(pattern, `\A`)
	if !always {
		var anchored bool
		if p, anchored = strings.CutPrefix(p, "^"); !anchored {
			return "", false
		}
	}
	l := literal{}
	for _, o := range options {
		switch {
		case o == 's' || o == 'm' && always: // say nothing of letters, nor of where a match begins
		case o == 'x':
			l.extended = true
		default:
			return "", false
		}
	}
	if hasAlternatives(p, l.extended) {
		return "", false
	}
	whole = l.read(p)
	return l.text, whole
}

// hasAlternatives says whether a | may part the pattern. In an extended one a comment may hide what escapes it.
func hasAlternatives(p string, extended bool) bool {
	if extended {
		return strings.Contains(p, "|")
	}
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case '|':
			return true
		}
	}
	return false
}

// literal is the characters that a pattern begins with, as far as they stand for themselves.
type literal struct {
	text string
	// extended: white space stands for nothing.
	extended bool
}

// read takes p as far as it is plain; whole says that this is all of it.
func (l *literal) read(p string) (whole bool) {
	for p != "" {
		c, n := utf8.DecodeRuneInString(p)
		switch {
		case c == utf8.RuneError:
			l.drop()
			return false
		case c == '\\':
			if n = l.escaped(p); n == 0 {
				return false
			}
		case strings.ContainsRune("*?{", c): // the last character may be absent
			l.drop()
			return false
		case strings.ContainsRune("^$.[()+", c):
			return false
		case l.extended && strings.ContainsRune(" \t\n\v\f\r", c):
		case l.extended && (c == '#' || c >= utf8.RuneSelf): // a comment, or perhaps a space: what comes behind may be about what is before
			l.drop()
			return false
		default:
			l.text += string(c)
		}
		p = p[n:]
	}
	return true
}

// escaped takes what begins with a backslash, and says how long it is; 0 when it is no plain text. Before a letter or digit the
// backslash makes something else of it, but for \Q, which makes plain text of all up to \E.
func (l *literal) escaped(p string) int {
	if len(p) == 1 {
		l.drop()
		return 0
	}
	c, n := utf8.DecodeRuneInString(p[1:])
	switch {
	case c == 'Q':
		quoted, _, ended := strings.Cut(p[2:], `\E`)
		if !utf8.ValidString(quoted) {
			l.drop()
			return 0
		}
		l.text += quoted
		if ended {
			return len(p[:2]) + len(quoted) + 2
		}
		return len(p)
	case c == 'E': // of no \Q, which stands for nothing
		return 2
	case c == utf8.RuneError, c == '_', c >= '0' && c <= '9', c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= utf8.RuneSelf:
		return 0
	}
	l.text += string(c)
	return 1 + n
}

// drop takes the last character back, which what comes behind may make optional.
func (l *literal) drop() {
	_, n := utf8.DecodeLastRuneInString(l.text)
	l.text = l.text[:len(l.text)-n]
}

// after is the least string above all that start with p, "" when there is none.
func after(p string) string {
	for p != "" {
		last, n := utf8.DecodeLastRuneInString(p)
		p = p[:len(p)-n]
		switch {
		case last == utf8.MaxRune:
			continue // nothing is above it in its place
		case last == 0xD7FF:
			last = 0xDFFF // surrogates are no characters
		}
		return p + string(last+1)
	}
	return ""
}
