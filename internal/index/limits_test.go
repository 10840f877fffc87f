package index

import (
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// numbers is a document whose field has n numbers, of which each comes again after step others.
func numbers(field string, n, step int) bson.Doc {
	b := bson.Build().Array(field)
	for i := range n {
		b.Int32(bson.IndexKey(i), int32(i%step))
	}
	return b.End().Doc()
}

// TestLimits: the keys of one document are bounded in number, those that are equal counted once, and in bytes.
func TestLimits(t *testing.T) {
	long := bson.Build().Fields(numbers("a", 20_000, 20_000)).String("b", strings.Repeat("x", 10_000)).Doc()
	names := bson.Build().Object(strings.Repeat("n", 10_000))
	for i := range 20_000 {
		names.Int32(bson.IndexKey(i), 1)
	}
	for _, c := range []struct {
		name, index string
		doc         bson.Doc
		keys        int // 0: refused
	}{
		{"as many as may be", `{key: {a: 1}}`, numbers("a", MaxKeys, MaxKeys), MaxKeys},
		{"too many", `{key: {a: 1}}`, numbers("a", MaxKeys+1, MaxKeys+1), 0},
		{"few among many", `{key: {a: 1}}`, numbers("a", 3*MaxKeys, 10), 10},
		{"of a wildcard", `{key: {"$**": 1}}`, numbers("a", 3*MaxKeys, 10), 10},
		{"too many of a wildcard", `{key: {"$**": 1}}`, numbers("a", MaxKeys+1, MaxKeys+1), 0},
		{"too many in the middle", `{key: {a: 1}}`, numbers("a", 3*MaxKeys, 2*MaxKeys), 0},
		{"too long", `{key: {a: 1, b: 1}}`, long, 0},
		{"short enough", `{key: {a: 1, c: 1}}`, long, 20_000},
		{"too long paths", `{key: {"$**": 1}}`, names.End().Doc(), 0},
	} {
		d, err := newParser().Parse(named(bson.MustDoc(c.index)), nil)
		if err != nil {
			t.Fatal(err)
		}
		var k Keys
		err = d.Keys(c.doc, &k)
		if c.keys == 0 && !mongoerr.Is(err, mongoerr.CannotBuildIndexKeys) || c.keys > 0 && (err != nil || k.Len() != c.keys) {
			t.Errorf("%s: %d keys, %v", c.name, k.Len(), err)
		}
	}
}

// TestPathSet: more paths than are kept apart, or longer ones, are every path.
func TestPathSet(t *testing.T) {
	var s *PathSet
	if s.Has("a") || s.With("a").Has("b") || !s.With("a").Has("a") || s.With("a").IsAll() {
		t.Error("a path is in the set that was not put there, or the other way round")
	}
	if !s.With(strings.Repeat("a", maxPathLength+1)).Has("b") {
		t.Error("a path too long is kept apart")
	}
	for i := range maxPaths {
		s = s.With(bson.IndexKey(i))
	}
	if s.Has("a") || !s.With("b").Has("a") || !s.With("b").Union(nil).IsAll() {
		t.Error("the limit is not where it should be")
	}
}

// TestKeyPatternSize: a key pattern of 2048 bytes is the largest.
func TestKeyPatternSize(t *testing.T) {
	overhead := len(bson.Build().Int32("", 1).Doc())
	for _, size := range []int{maxKeyPatternBytes, maxKeyPatternBytes + 1} {
		key := bson.Build().Int32(strings.Repeat("a", size-overhead), 1).Doc()
		_, err := newParser().Parse(bson.Build().Document("key", key).String("name", "a").Doc(), nil)
		if refused := mongoerr.Is(err, mongoerr.CannotCreateIndex); refused != (size > maxKeyPatternBytes) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}
