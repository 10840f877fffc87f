// Package sortpattern holds sort patterns: parsed once, they give the sort key of each raw document and compare keys. It
// knows nothing of stages, plans or memory.
package sortpattern

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// MaxParts is how many paths a pattern may sort by.
const MaxParts = 32

// Part is one key of a pattern.
type Part struct {
	// Path is what is sorted by, unless Meta names metadata instead.
	Path fieldpath.Path
	Meta string
	Desc bool
}

// Pattern is a parsed sort pattern. It is immutable.
type Pattern struct {
	Parts  []Part
	source bson.Doc
}

// Parse reads a pattern, with the errors of $sort.
func Parse(spec bson.Doc) (*Pattern, error) {
	if spec.IsEmpty() {
		return nil, mongoerr.New(15976, "$sort stage must have at least one sort key")
	}
	p := &Pattern{source: spec.Clone()}
	seen := map[string]bool{}
	for it := p.source.Iter(); it.Next(); {
		part, err := parsePart(it.Key(), it.Value())
		if err != nil {
			return nil, err
		}
		if seen[it.Key()] {
			return nil, mongoerr.New(7472500, "$sort key must not contain duplicate keys (duplicate: '%s')", it.Key())
		}
		seen[it.Key()] = true
		p.Parts = append(p.Parts, part)
	}
	if len(p.Paths()) > MaxParts {
		return nil, mongoerr.New(13103, "too many compound keys")
	}
	return p, nil
}

func parsePart(name string, v bson.Value) (Part, error) {
	if v.Type == bson.TypeObject {
		meta, err := parseMeta(v.Doc())
		return Part{Meta: meta, Desc: true}, err
	}
	if !v.IsNumber() {
		return Part{}, mongoerr.New(15974, "Illegal key in $sort specification: %s: %s", name, v)
	}
	n := v.RoundInt64()
	if n != 1 && n != -1 {
		return Part{}, mongoerr.New(15975, "$sort key ordering must be 1 (for ascending) or -1 (for descending)")
	}
	path, err := fieldpath.New(name)
	return Part{Path: path, Desc: n < 0}, err
}

// sortableMeta is the metadata that a sort may go by.
const sortableMeta = " textScore randVal geoNearDistance searchScore vectorSearchScore score "

func parseMeta(d bson.Doc) (string, error) {
	if d.FirstKey() != "$meta" {
		return "", mongoerr.New(17312, "$meta is the only expression supported by $sort right now")
	}
	if d.Count() != 1 {
		return "", mongoerr.New(mongoerr.FailedToParse, "Cannot have additional keys in a $meta sort specification")
	}
	v := d.Lookup("$meta")
	if v.Type != bson.TypeString || !strings.Contains(sortableMeta, " "+v.Str()+" ") {
		return "", mongoerr.New(31138, "Illegal $meta sort: $meta: %s", v)
	}
	return v.Str(), nil
}

// Source is the pattern as it was given.
func (p *Pattern) Source() bson.Doc { return p.source }

// Meta are the kinds of metadata that the pattern needs.
func (p *Pattern) Meta() []string {
	var out []string
	for i := range p.Parts {
		if p.Parts[i].Meta != "" {
			out = append(out, p.Parts[i].Meta)
		}
	}
	return out
}

// Paths are the paths that the pattern reads.
func (p *Pattern) Paths() []string {
	var out []string
	for i := range p.Parts {
		if p.Parts[i].Meta == "" {
			out = append(out, p.Parts[i].Path.String())
		}
	}
	return out
}

// Compare orders two keys of p.
func (p *Pattern) Compare(a, b []bson.Value, c bson.Collator) int {
	for i := range p.Parts {
		if d := bson.CompareWith(a[i], b[i], c); d != 0 {
			if p.Parts[i].Desc {
				return -d
			}
			return d
		}
	}
	return 0
}
