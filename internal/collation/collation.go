// Package collation holds how strings are compared for the people of a place: MongoDB's collation documents, checked and
// filled in, with comparison and sort keys. It knows nothing of queries and indexes. The binary order is a nil *Collation.
package collation

import (
	"bytes"
	"strings"
	"sync"

	"golang.org/x/text/collate"

	"github.com/ebbdb/ebb/internal/bson"
)

// Collation compares strings. It may be used by many goroutines at once.
//
// The order of a place's letters comes from golang.org/x/text/collate, whose sort keys have a part for each strength. A
// string is cut into stretches of plain text, and what x/text has no rules for: digits under numericOrdering and characters
// that alternate shifts away. The parts of the stretches are put together again, strength by strength:
//
//	primary 00 00 secondary 00 00 case 00 tertiary 00 quaternary 00 identical
//
// Parts beyond the strength are left out. Comparing strings is comparing keys byte by byte.
type Collation struct {
	Spec Spec

	ascii *asciiWeights // nil when the place's rules join letters of ASCII
	pool  sync.Pool     // of *keyer
}

func newCollation(s Spec) *Collation {
	c := &Collation{Spec: s}
	c.pool.New = func() any { return newKeyer(&c.Spec) }
	if !s.NumericOrdering && s.Alternate != "shifted" && !s.Backwards && plainASCII(s.Locale) {
		k := c.pool.Get().(*keyer)
		c.ascii = newASCIIWeights(k)
		c.pool.Put(k)
	}
	return c
}

// Doc is the collation's document as MongoDB shows it; nil's is the one of "simple".
func (c *Collation) Doc() bson.Doc {
	if c == nil {
		return bson.Build().String("locale", "simple").Doc()
	}
	return c.Spec.Doc()
}

// Equal says whether two collations order all strings alike by their definition.
func Equal(a, b *Collation) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Spec == b.Spec
}

// CompareString orders two strings.
func (c *Collation) CompareString(a, b string) int {
	if a == b {
		return 0
	}
	if c.ascii != nil {
		if d, ok := c.ascii.compare(a, b, &c.Spec); ok {
			return d
		}
	}
	k := c.pool.Get().(*keyer)
	defer c.pool.Put(k)
	if d := k.early(a, b); d != 0 {
		return d
	}
	k.a = k.key(k.a[:0], a)
	k.b = k.key(k.b[:0], b)
	return bytes.Compare(k.a, k.b)
}

// AppendKey appends the sort key of s to dst.
func (c *Collation) AppendKey(dst []byte, s string) []byte {
	k := c.pool.Get().(*keyer)
	defer c.pool.Put(k)
	return k.key(dst, s)
}

// Key is the sort key of s: keys compare byte by byte as the strings do.
func (c *Collation) Key(s string) string { return string(c.AppendKey(nil, s)) }

// plainASCII says whether the letters of ASCII stand for themselves in the order of a place, none of them joined to others.
func plainASCII(locale string) bool {
	language, rest, _ := strings.Cut(locale, "_")
	switch language {
	case "en", "de", "fr", "it", "pt", "nl", "sv", "fi", "ru", "uk", "pl", "ja", "ko", "el", "he", "es":
		return !strings.Contains(locale, "@") && rest != "US_POSIX"
	}
	return false
}

func newCollator(s *Spec) *collate.Collator { return collate.New(tag(s.Locale)) }
