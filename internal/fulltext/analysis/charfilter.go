package analysis

import (
	"bytes"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// maxFiltered is how many bytes a filtered text has at most, about: what is behind them is not searched for.
const maxFiltered = 64 << 20

// A charFilter changes a text before it is divided, and tells in moves where what it shows was.
type charFilter func(text string, m *moves) string

// filterChars sends a text through filters.
func filterChars(filters []charFilter, text string) (string, *moves) {
	var all *moves
	for _, f := range filters {
		m := &moves{next: all}
		text = f(text, m)
		all = m
	}
	return text, all
}

// moves tell where the parts of a filtered text were in the text before. Parts are in the order of the filtered text, each ends where the next
// begins, and the last is empty: the ends of both texts.
type moves struct {
	out   []byte
	parts []movedPart
	next  *moves // those of the filter before
}

// movedPart is a part of a text: from shown on in the filtered text, from was on in the text before. A part that is the same can be looked into;
// another one was there as a whole.
type movedPart struct {
	shown, was int32
	same       bool
}

// copied shows the text from i to j as it is.
func (m *moves) copied(text string, i, j int) {
	if i < j {
		m.begin(i, true)
		m.out = append(m.out, text[i:j]...)
	}
}

// replaced shows something else in the place of what begins at i.
func (m *moves) replaced(by string, i, j int) {
	if by != "" {
		m.begin(i, len(by) == j-i && isASCII(by))
		m.out = append(m.out, by...)
	}
}

func (m *moves) begin(was int, same bool) {
	shown := len(m.out)
	if n := len(m.parts); n > 0 && same && m.parts[n-1].same && int(m.parts[n-1].shown)-shown == int(m.parts[n-1].was)-was {
		return
	}
	m.parts = append(m.parts, movedPart{int32(shown), int32(was), same})
}

// done is the filtered text, of which the text up to i is shown.
func (m *moves) done(i int) string {
	m.parts = append(m.parts, movedPart{int32(len(m.out)), int32(i), false})
	return string(m.out)
}

// full says that no more is to be shown.
func (m *moves) full() bool { return len(m.out) > maxFiltered }

// place is where a part of the filtered text was in the text.
func (m *moves) place(start, end int) (from, to int) {
	for ; m != nil; m = m.next {
		start, end = m.start(start), m.end(end)
		end = max(start, end)
	}
	return start, end
}

// part is the part that shows what is at a place.
func (m *moves) part(at int) int {
	return max(sort.Search(len(m.parts), func(i int) bool { return int(m.parts[i].shown) > at })-1, 0)
}

func (m *moves) start(at int) int {
	p := m.parts[m.part(at)]
	if p.same {
		return int(p.was) + at - int(p.shown)
	}
	return int(p.was)
}

// end is where what ends at a place ended before: in the part of what is before the place.
func (m *moves) end(at int) int {
	if at == 0 {
		return m.start(0)
	}
	i := m.part(at - 1)
	if p := m.parts[i]; p.same || i+1 == len(m.parts) {
		return int(p.was) + at - int(p.shown)
	}
	return int(m.parts[i+1].was)
}

// persianSpaces makes spaces of what joins no letters.
func persianSpaces(text string, m *moves) string {
	const joiner = "\u200c"
	from := 0
	for {
		i := strings.Index(text[from:], joiner)
		if i < 0 {
			break
		}
		i += from
		m.copied(text, from, i)
		from = i + len(joiner)
		m.replaced(" ", i, from)
	}
	m.copied(text, from, len(text))
	return m.done(len(text))
}

// icuNormalize makes characters that have the same meaning the same, in lower case (Unicode's NFKC_Casefold).
func icuNormalize(text string, m *moves) string {
	n := icuNormalizer{fold: cases.Fold()}
	i := 0
	for i < len(text) && !m.full() {
		start := i
		for i < len(text) && text[i] < utf8.RuneSelf && (i+1 == len(text) || text[i+1] < utf8.RuneSelf) {
			i++
		}
		if i > start {
			m.replaced(lower(text[start:i]), start, i)
			continue
		}
		length := norm.NFKC.NextBoundaryInString(text[i:], true)
		if length <= 0 {
			length = len(text) - i
		}
		if part := text[i : i+length]; n.changes(part) {
			if shown := n.normal(part); len(shown) > 0 {
				m.begin(i, false)
				m.out = append(m.out, shown...)
			}
		} else {
			m.copied(text, i, i+length)
		}
		i += length
	}
	return m.done(i)
}

type icuNormalizer struct {
	fold cases.Caser
	iter norm.Iter
	buf  []byte
}

// changes says that a part may not be normal.
func (n *icuNormalizer) changes(part string) bool {
	return norm.NFKC.QuickSpanString(part) < len(part) || strings.ContainsFunc(part, folds)
}

// folds says that a character is another one where case is folded, or none: characters without an upper case fold to themselves, but for some.
func folds(r rune) bool {
	switch {
	case r < utf8.RuneSelf:
		return r >= 'A' && r <= 'Z'
	case unicode.ToLower(r) != r, unicode.ToUpper(r) != r && unicode.ToLower(unicode.ToUpper(r)) != r, ignorable(r):
		return true
	}
	return r == 0xdf || r == 0x149 || r == 0x1f0 || r == 0x345 || r == 0x390 || r == 0x3b0 || r == 0x587 || r >= 0x1e96 && r <= 0x1e9a ||
		r >= 0x1f50 && r <= 0x1fff || r >= 0xfb00 && r <= 0xfb17 || unicode.Is(unicode.Cherokee, r)
}

// normal is the part as it is shown, until the next call.
func (n *icuNormalizer) normal(part string) []byte {
	n.iter.InitString(norm.NFKC, part)
	n.buf = n.buf[:0]
	for !n.iter.Done() {
		n.buf = append(n.buf, n.iter.Next()...)
	}
	if !bytes.ContainsFunc(n.buf, folds) {
		return n.buf
	}
	var folded []byte
	for _, r := range norm.NFKC.String(n.fold.String(string(n.buf))) {
		if !ignorable(r) {
			folded = utf8.AppendRune(folded, r)
		}
	}
	return folded
}

// mappingNode is what is mapped that begins with the bytes that lead to it.
type mappingNode struct {
	next map[byte]*mappingNode
	to   string
	is   bool
}

func (n *mappingNode) add(from, to string) {
	for i := 0; i < len(from); i++ {
		if n.next == nil {
			n.next = map[byte]*mappingNode{}
		}
		if n.next[from[i]] == nil {
			n.next[from[i]] = &mappingNode{}
		}
		n = n.next[from[i]]
	}
	n.to, n.is = to, true
}

// filter replaces what is mapped, the longest at a place.
func (n *mappingNode) filter(text string, m *moves) string {
	i, from := 0, 0
	for i < len(text) && !m.full() {
		end, to := 0, ""
		at := n
		for j := i; j < len(text); j++ {
			if at = at.next[text[j]]; at == nil {
				break
			}
			if at.is {
				end, to = j+1, at.to
			}
		}
		if end == 0 {
			i++
			continue
		}
		m.copied(text, from, i)
		m.replaced(to, i, end)
		i, from = end, end
	}
	m.copied(text, from, i)
	return m.done(i)
}
