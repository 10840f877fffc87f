package plancache

import (
	"crypto/sha256"
	"fmt"
	"hash/crc32"
)

// Shape is an operation without its constants, in few bytes.
type Shape struct {
	id   [16]byte
	hash uint32
}

// ShapeOf is the shape that text tells.
func ShapeOf(text string) Shape {
	sum := sha256.Sum256([]byte(text))
	return Shape{id: [16]byte(sum[:16]), hash: crc32.ChecksumIEEE([]byte(text))}
}

// String is the shape as planCacheShapeHash shows it.
func (s Shape) String() string { return fmt.Sprintf("%08X", s.hash) }

// Key is what entries are found by.
type Key struct {
	// Command is the shape that planCacheClear names: filter, sort, projection and collation alone.
	Command Shape
	// Shape is what the plan was made for; it is more than Command for a pipeline.
	Shape Shape
	// whole is Shape and which indexes can serve the query's constants.
	whole Shape
}

// KeyOf is the key of an operation. Queries of one shape whose constants allow different indexes (a partial one, one with a
// collation) differ in usable.
func KeyOf(command, shape, usable string) Key {
	return Key{Command: ShapeOf(command), Shape: ShapeOf(shape), whole: ShapeOf(shape + "\x00" + usable)}
}

// String is the key as planCacheKey shows it.
func (k Key) String() string { return k.whole.String() }
