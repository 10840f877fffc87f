// Package fieldpath holds parsed dotted paths and the walks along them over raw documents and arrays. It knows nothing of
// operators, expressions or index keys, only of what a path reaches in each of their senses.
package fieldpath

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// MaxParts is the largest number of components that New takes.
const MaxParts = bson.MaxDepth

// Path is a dotted path, split once. The zero Path has no component.
type Path struct {
	text  string
	parts []part
}

type part struct {
	name   string
	start  int // of name in the text
	digits bool
}

// Split parses text as query filters and sort patterns do: any text is a path, components may be empty. The empty text is
// the path of one empty component.
func Split(text string) Path {
	p := Path{text: text, parts: make([]part, 0, 1+strings.Count(text, "."))}
	for start := 0; ; {
		end := strings.IndexByte(text[start:], '.')
		if end < 0 {
			p.parts = append(p.parts, part{text[start:], start, allDigits(text[start:])})
			return p
		}
		p.parts = append(p.parts, part{text[start : start+end], start, allDigits(text[start : start+end])})
		start += end + 1
	}
}

// New parses text as expressions, projections and most stages do, with MongoDB's errors: no empty component, none that
// starts with '$' or holds a zero byte, at most MaxParts of them.
func New(text string) (Path, error) {
	switch {
	case text == "":
		return Path{}, mongoerr.New(40352, "FieldPath cannot be constructed with empty string")
	case text[len(text)-1] == '.':
		return Path{}, mongoerr.New(40353, "FieldPath must not end with a '.'.")
	}
	p := Split(text)
	if len(p.parts) > MaxParts {
		return Path{}, mongoerr.New(mongoerr.Overflow, "FieldPath is too long")
	}
	for i := range p.parts {
		if err := CheckName(p.parts[i].name); err != nil {
			return Path{}, err
		}
	}
	return p, nil
}

// CheckName refuses what New refuses in one component; a name given alone may not hold a dot either.
func CheckName(name string) error {
	switch {
	case name == "":
		return mongoerr.New(15998, "FieldPath field names may not be empty strings.")
	case name[0] == '$' && name != "$id" && name != "$ref" && name != "$db": // the fields of a DBRef
		return mongoerr.New(16410, "FieldPath field names may not start with '$'. Consider using $getField or $setField.")
	case strings.IndexByte(name, 0) >= 0:
		return mongoerr.New(16411, "FieldPath field names may not contain '\\0'.")
	case strings.IndexByte(name, '.') >= 0:
		return mongoerr.New(16412, "FieldPath field names may not contain '.'. Consider using $getField or $setField.")
	}
	return nil
}

func allDigits(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// String is the path as it was written.
func (p Path) String() string { return p.text }

// Len is the number of components.
func (p Path) Len() int { return len(p.parts) }

// Part is component i.
func (p Path) Part(i int) string { return p.parts[i].name }

// First is the first component.
func (p Path) First() string { return p.parts[0].name }

// Last is the last component.
func (p Path) Last() string { return p.parts[len(p.parts)-1].name }

// Numeric says whether component i is all digits, so that it may be an array position.
func (p Path) Numeric(i int) bool { return p.parts[i].digits }

// HasNumeric says whether any component is all digits.
func (p Path) HasNumeric() bool {
	for i := range p.parts {
		if p.parts[i].digits {
			return true
		}
	}
	return false
}

// Position is component i as an array position: digits without a leading zero that fit an int32; else ok is false.
func (p Path) Position(i int) (n int, ok bool) { return Position(p.parts[i].name) }

// Position reads an array position, as Path.Position.
func Position(name string) (n int, ok bool) {
	if !allDigits(name) || len(name) > 1 && name[0] == '0' || len(name) > 10 {
		return 0, false
	}
	for i := 0; i < len(name); i++ {
		n = n*10 + int(name[i]-'0')
	}
	return n, n <= 1<<31-1
}

// CheckPosition refuses a position in array that one of its documents has a field for: no key of an index or of a sort can
// tell which of the two is meant.
func CheckPosition(array bson.Doc, position string) error {
	for it := array.Iter(); it.Next(); {
		if e := it.Value(); e.Type == bson.TypeObject && !e.Doc().Lookup(position).IsMissing() {
			return mongoerr.New(16746, "Ambiguous field name found in array (do not use numeric field names in embedded elements in an array), field: '%s' for array: %s", position, array.ArrayValue())
		}
	}
	return nil
}

// Prefix is the text of the first n components.
func (p Path) Prefix(n int) string {
	if n == 0 {
		return ""
	}
	return p.text[:p.parts[n-1].start+len(p.parts[n-1].name)]
}

// Suffix is the text from component i on.
func (p Path) Suffix(i int) string {
	if i >= len(p.parts) {
		return ""
	}
	return p.text[p.parts[i].start:]
}

// From is the path from component i on; it shares p's memory.
func (p Path) From(i int) Path {
	if i >= len(p.parts) {
		return Path{}
	}
	base := p.parts[i].start
	if base == 0 {
		return p
	}
	q := Path{text: p.text[base:], parts: make([]part, len(p.parts)-i)}
	for j := range q.parts {
		q.parts[j] = p.parts[i+j]
		q.parts[j].start -= base
	}
	return q
}

// IsPrefixOf says whether p is q or an ancestor of q.
func (p Path) IsPrefixOf(q Path) bool {
	return strings.HasPrefix(q.text, p.text) && (len(q.text) == len(p.text) || q.text[len(p.text)] == '.')
}

// Overlaps says whether one of the two texts is the other or its ancestor.
func Overlaps(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return strings.HasPrefix(b, a) && (len(a) == len(b) || b[len(a)] == '.')
}
