package fulltext

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/fulltext/mapping"
	"github.com/ebbdb/ebb/internal/fulltext/spec"
)

// facet counts what is found by the values of a path.
type facet struct {
	name, path string
	kind       string // string, number or date
	buckets    int    // of strings
	boundaries []bson.Value
	other      string // the bucket of what is outside of the boundaries
	hasOther   bool

	field   *mapping.Field
	at      fieldpath.Path
	counts  []int64
	rest    int64             // documents in none of the buckets
	strings map[string]*int64 // whoever counted by strings[text]++ would put text, which lies in a document, in the place of the key
}

const (
	maxBuckets = 1000
	maxFacets  = 1024
	// maxFacetValues bounds the strings that a facet counts.
	maxFacetValues = 1 << 20
)

// readCollector reads the collector: what is searched for, and what is counted of it.
func (p *parser) readCollector(a *spec.Reader, q *Query) {
	q.facets = []*facet{}
	q.operator = everywhere{}
	p.depth++
	defer func() { p.depth-- }()
	if sub := a.Inner("operator"); sub != nil {
		if sub.Has("vectorSearch") {
			sub.Refuse("Facets are not supported with the 'vectorSearch' operator.")
		}
		q.operator = p.operator(sub)
	}
	facets := a.RequiredInner("facets")
	if a.Has("facets") && facets.Doc().IsEmpty() {
		a.RefuseField("facets", "cannot be empty")
	}
	if facets.Doc().Count() > maxFacets {
		a.RefuseField("facets", "cannot have more than %d elements", maxFacets)
		return
	}
	for it := facets.Doc().Iter(); it.Next(); {
		name := strings.Clone(it.Key())
		if slices.Contains(p.unaffected, name) {
			a.Refuse("doesNotAffect is not supported for facets by this server")
		}
		q.facets = append(q.facets, readFacet(facets.Inside(facets.Path(name), it.Value()), name))
	}
	a.Done()
}

func readFacet(a *spec.Reader, name string) *facet {
	f := &facet{name: name, kind: a.Enum("type", "", "string", "number", "date"), path: a.RequiredStr("path")}
	switch f.kind {
	case "string":
		f.buckets = a.IntWithin("numBuckets", 1, maxBuckets, 10)
		f.strings = map[string]*int64{}
	default:
		f.other, f.hasOther = a.Word("default"), a.Has("default")
		f.readBoundaries(a)
	}
	a.Done()
	return f
}

func (f *facet) readBoundaries(a *spec.Reader) {
	list := a.RequiredList("boundaries", false)
	if a.Err() == nil && (len(list) < 2 || len(list) > maxBuckets) {
		a.RefuseField("boundaries", "size must be within bounds: [2, %d]", maxBuckets)
		return
	}
	for i, e := range list {
		switch k := kindOf(e.Value); {
		case f.kind == "number" && k != numberKind:
			a.RefuseAt(e.Path, "must be a number")
		case f.kind == "date" && k != dateKind:
			a.RefuseAt(e.Path, "must be a date time")
		case i > 0 && order(f.boundaries[i-1], e.Value) >= 0:
			a.RefuseField("boundaries", "must be distinct %ss in ascending order", f.kind)
		}
		if a.Err() != nil {
			return
		}
		f.boundaries = append(f.boundaries, e.Clone())
	}
	f.counts = make([]int64, max(len(f.boundaries)-1, 0))
}

// resolve finds the path in an index.
func (f *facet) resolve(s *scope) error {
	f.field, f.at = s.field(f.path), s.values(f.path)
	field, below := f.field, ""
	if s.root != "" {
		below = "at returnScope " + s.root
	}
	switch f.kind {
	case "string":
		if field == nil || field.Token == nil && !field.StringFacet {
			return spec.Wrong(`Cannot facet on field "%s" "%s" because it was not indexed as a "token" field.`, f.path, below)
		}
	case "number":
		if field == nil || field.Number == nil && !field.NumberFacet {
			return spec.Wrong(`Cannot facet on field "%s" "%s" because it was not indexed as a "number" field.`, f.path, below)
		}
	default:
		if field == nil || !field.Date && !field.DateFacet {
			return spec.Wrong(`Cannot facet on field "%s" "%s" because it was not indexed as a "date" field.`, f.path, below)
		}
	}
	return nil
}

// count counts a document that was found. memory is how many bytes are kept of it.
func (f *facet) count(doc bson.Doc) (memory int) {
	if f.kind == "string" {
		return f.countStrings(doc)
	}
	k := numberKind
	if f.kind == "date" {
		k = dateKind
	}
	v := f.at.Get(doc) // what is in an array is in no bucket
	i := -1
	if kindOf(v) == k {
		i = sort.Search(len(f.boundaries), func(i int) bool { return order(f.boundaries[i], v) > 0 }) - 1
	}
	if i < 0 || i >= len(f.counts) {
		f.rest++ // so is what has no such value
		return 0
	}
	f.counts[i]++
	return 0
}

func (f *facet) countStrings(doc bson.Doc) (memory int) {
	var seen []string
	f.at.Values(doc, fieldpath.Names, func(v bson.Value) {
		if v.Type != bson.TypeString || len(v.Str()) > maxTokenBytes {
			return
		}
		text := v.Str()
		if f.field.Token != nil && f.field.Token.Lowercase {
			text = strings.ToLower(text)
		}
		if slices.Contains(seen, text) {
			return
		}
		seen = append(seen, text)
		if count := f.strings[text]; count != nil {
			*count++
		} else if len(f.strings) < maxFacetValues {
			first := int64(1)
			f.strings[strings.Clone(text)] = &first
			memory += hitBytes + len(text)
		}
	})
	return memory
}

// write appends the buckets.
func (f *facet) write(b *bson.Builder) {
	b.Object(f.name).Array("buckets")
	n := 0
	add := func(id bson.Value, count int64) {
		b.Object(bson.IndexKey(n)).Value("_id", id).Int64("count", count).End()
		n++
	}
	if f.kind == "string" {
		texts := make([]string, 0, len(f.strings))
		for text := range f.strings {
			texts = append(texts, text)
		}
		slices.SortFunc(texts, func(x, y string) int { return cmp.Or(cmp.Compare(*f.strings[y], *f.strings[x]), cmp.Compare(x, y)) })
		for _, text := range texts[:min(len(texts), f.buckets)] {
			add(bson.String(text), *f.strings[text])
		}
	}
	for i, count := range f.counts {
		add(f.boundaries[i], count)
	}
	if f.hasOther {
		add(bson.String(f.other), f.rest)
	}
	b.End().End()
}
