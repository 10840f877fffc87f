// Package collation holds how strings are compared for the people of a place: MongoDB's collation documents, checked and
// filled in, with comparison and sort keys. It knows nothing of queries and indexes. The binary order is a nil *Collation.
package collation

import (
	"golang.org/x/text/collate"
)

// Collation compares strings. It may be used by many goroutines at once.
type Collation struct {
	Spec Spec
	pool chan *collate.Collator
}

// Spec is a collation document with every field filled in.
type Spec struct {
	Locale string
}

// CompareString orders two strings.
func (c *Collation) CompareString(a, b string) int { return 0 }
