package analysis

import (
	"html"
	"strings"
	"unicode/utf8"
)

// inline are the tags that do not part words.
var inline = setOf(strings.Fields(`a abbr acronym b basefont bdo big cite code dfn em font i img input kbd label q s samp select small span strike
	strong sub sup textarea tt u var`), false)

// htmlStrip leaves out tags, comments, scripts and styles, but for the tags whose names are ignored, and decodes entities. A tag that parts words
// is a line break.
func htmlStrip(ignored map[string]struct{}) charFilter {
	return func(text string, m *moves) string {
		s := stripper{text: text, m: m, ignored: ignored}
		for s.at < len(text) {
			i := strings.IndexAny(text[s.at:], "<&")
			if i < 0 {
				break
			}
			s.at += i
			if text[s.at] == '&' {
				s.entity()
			} else {
				s.tag()
			}
		}
		m.copied(text, s.from, len(text))
		return m.done(len(text))
	}
}

type stripper struct {
	text    string
	m       *moves
	ignored map[string]struct{}
	at      int // where it looks
	from    int // up to where is shown

	noEnd map[string]bool // what is known not to follow
}

// skip shows by in the place of what is up to end.
func (s *stripper) skip(end int, by string) {
	s.m.copied(s.text, s.from, s.at)
	s.m.replaced(by, s.at, end)
	s.at, s.from = end, end
}

// maxEntity is how long the name of an entity is at most.
const maxEntity = 34

func (s *stripper) entity() {
	rest := s.text[s.at:]
	rest = rest[:min(len(rest), maxEntity)]
	if end := strings.IndexByte(rest, ';'); end > 0 {
		if shown := html.UnescapeString(rest[:end+1]); shown != rest[:end+1] && utf8.ValidString(shown) {
			if shown == "\u00a0" {
				shown = " "
			}
			s.skip(s.at+end+1, shown)
			return
		}
	}
	s.at++
}

// after is where what follows the place ends with the text: -1 if it does not follow.
func (s *stripper) after(end string, from int) int {
	if s.noEnd[end] {
		return -1
	}
	i := strings.Index(s.text[from:], end)
	if i < 0 {
		if s.noEnd == nil {
			s.noEnd = map[string]bool{}
		}
		s.noEnd[end] = true
		return -1
	}
	return from + i + len(end)
}

func (s *stripper) tag() {
	rest := s.text[s.at:]
	for _, c := range []struct{ begin, end string }{{"<!--", "-->"}, {"<![CDATA[", "]]>"}, {"<!", ">"}, {"<?", ">"}} {
		if strings.HasPrefix(rest, c.begin) {
			switch end := s.after(c.end, s.at+len(c.begin)); {
			case end < 0:
				s.at++
			case c.begin == "<![CDATA[":
				s.skip(s.at+len(c.begin), "")
				s.at = end - len(c.end)
				s.skip(end, "")
			default:
				s.skip(end, "")
			}
			return
		}
	}
	name, end := tagAt(rest)
	_, ignored := s.ignored[name]
	if end == 0 || ignored {
		s.at += max(end, 1)
		return
	}
	end += s.at
	if name == "script" || name == "style" {
		if rest[1] != '/' {
			if close := s.after("</"+name+">", end); close > 0 {
				end = close
			}
		}
	}
	if _, is := inline[name]; is {
		s.skip(end, "")
	} else {
		s.skip(end, "\n")
	}
}

// tagAt is the name of the tag that the text begins with, in lower case, and where it ends: 0 if it begins with none.
func tagAt(text string) (name string, end int) {
	i := 1
	if i < len(text) && text[i] == '/' {
		i++
	}
	start := i
	for i < len(text) && (isASCIIWord(text[i]) || i > start && (text[i] == '-' || text[i] == ':')) {
		i++
	}
	if i == start || text[start] >= '0' && text[start] <= '9' {
		return "", 0
	}
	name = lower(text[start:i])
	for i < len(text) {
		switch c := text[i]; c {
		case '>':
			return name, i + 1
		case '<':
			return "", 0
		case '"', '\'':
			close := strings.IndexByte(text[i+1:], c)
			if close < 0 {
				return "", 0
			}
			i += close + 1
		}
		i++
	}
	return "", 0
}
