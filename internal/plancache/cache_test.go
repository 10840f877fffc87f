package plancache

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
)

// TestCache runs testdata on one collection's cache. Commands name shapes by any word: "race shape works" tells of a race,
// "get shape" looks an entry up, "late shape" says that its plan took too long, "ddl" changes the collection's definition
// without clearing the cache, "clear [shape]" forgets plans, and "filter shape indexes" and "unfilter [shape]" set and
// clear index filters. Each prints all that is left.
func TestCache(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var c Cache
		var now int64
		definition := &catalog.Collection{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out strings.Builder
			for line := range strings.Lines(d.Input) {
				now++
				words := append(strings.SplitN(strings.TrimSpace(line), " ", 3), "", "")
				key := KeyOf(words[1], words[1], "")
				switch words[0] {
				case "race":
					var works int64
					fmt.Sscan(words[2], &works)
					c.Put(key, definition, Won{Solution: words[2], Works: works}, now)
				case "get":
					fmt.Fprintln(&out, describe(c.Get(key, definition)))
				case "late":
					c.Deactivate(c.Get(key, definition))
				case "ddl":
					definition = &catalog.Collection{}
				case "clear":
					if words[1] == "" {
						c.Clear()
					} else {
						c.ClearShape(key.Command)
					}
				case "filter":
					c.SetFilter(Filter{Shape: key.Command, Query: bson.EmptyDoc, Indexes: bson.MustDoc("{x: " + words[2] + "}").Lookup("x").Doc()})
				case "unfilter":
					if words[1] == "" {
						c.ClearFilters()
					} else {
						c.ClearFilter(key.Command)
					}
				case "allows":
					f := c.Filter(key.Command)
					fmt.Fprintln(&out, f == nil || f.Allows("named", bson.MustDoc(words[2])))
				default:
					t.Fatalf("%s: unknown command %q", d.Pos, line)
				}
			}
			for _, e := range c.Entries() {
				fmt.Fprintln(&out, " ", describe(e))
			}
			for _, f := range c.Filters() {
				fmt.Fprintln(&out, "  filter", f.Shape, f.Indexes.Text())
			}
			return out.String()
		})
	})
}

func describe(e *Entry) string {
	if e == nil {
		return "none"
	}
	return fmt.Sprintf("%s plan %s works=%d active=%v since %d", e.Shape, e.Solution, e.Works, e.Active, e.Created)
}

func TestTheOldestGoesFirst(t *testing.T) {
	var c Cache
	definition := &catalog.Collection{}
	put := func(i int) { c.Put(KeyOf("s", fmt.Sprint(i), ""), definition, Won{Works: 1}, 0) }
	for i := range MaxEntries {
		put(i)
	}
	c.Get(KeyOf("s", "0", ""), definition)
	put(MaxEntries)
	if n := len(c.Entries()); n != MaxEntries {
		t.Fatalf("%d entries", n)
	}
	if c.Get(KeyOf("s", "0", ""), definition) == nil || c.Get(KeyOf("s", "1", ""), definition) != nil {
		t.Fatal("the entry used last went, or the one not used stayed")
	}
}

func TestDescriptionsAreBounded(t *testing.T) {
	var c Cache
	definition := &catalog.Collection{}
	large := bson.Build().String("a", strings.Repeat("x", maxDebugBytes/3)).Doc()
	for i := range 4 {
		c.Put(KeyOf("s", fmt.Sprint(i), ""), definition, Won{Works: 1, Description: Description{Query: large}}, 0)
	}
	bare := 0
	for _, e := range c.Entries() {
		if !e.Described() {
			bare++
		}
	}
	if bare == 0 || c.mu.debugBytes > maxDebugBytes {
		t.Fatalf("%d without a description, %d bytes of descriptions", bare, c.mu.debugBytes)
	}
	c.Clear()
	if c.mu.debugBytes != 0 {
		t.Fatalf("%d bytes of descriptions of no entry", c.mu.debugBytes)
	}
}
