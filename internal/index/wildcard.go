package index

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// checkWildcard applies the rules of wildcard indexes.
func (d *Definition) checkWildcard(spec bson.Doc) error {
	no := func(what string) error {
		return mongoerr.New(mongoerr.CannotCreateIndex, "Index type 'wildcard' does not support the %s option", what)
	}
	v := spec.Lookup("v")
	switch {
	case d.count(Wildcard) > 1:
		return mongoerr.New(7246201, "wildcard indexes do not allow compounding with another wildcard field")
	case d.Sparse:
		return no("sparse")
	case d.Unique:
		return no("unique")
	case d.TTL:
		return no("expireAfterSeconds")
	case v.IsNumber() && v.TruncInt64() < 2:
		return mongoerr.New(mongoerr.CannotCreateIndex, "Wildcard indexes require an index version of 2, but got %s", v)
	}
	for _, f := range d.Fields {
		if f.Kind != Wildcard && f.Kind != Ordered {
			return mongoerr.New(mongoerr.CannotCreateIndex, "wildcard indexes cannot be compounded with a field of type '%s'", f.Kind)
		}
	}
	return d.checkWildcardScope(spec.Lookup("wildcardProjection"))
}

// checkWildcardScope looks at what the wildcard of an index stands for: everything, what is below a path, or what a
// projection leaves, which in a compound index must not be a field that has a place of its own.
func (d *Definition) checkWildcardScope(projection bson.Value) error {
	wild := ""
	for _, f := range d.Fields {
		if f.Kind == Wildcard {
			wild = f.Path
		}
	}
	if projection.IsMissing() {
		if len(d.Fields) > 1 && wild == "$**" {
			return mongoerr.New(mongoerr.CannotCreateIndex, "Compound wildcard indexes on all fields need a wildcardProjection that leaves out the other fields")
		}
		return d.checkBelow(strings.TrimSuffix(wild, "$**"))
	}
	if wild != "$**" {
		return mongoerr.New(mongoerr.FailedToParse, "The field 'wildcardProjection' is only allowed when 'key' is {\"$**\": ±1}")
	}
	if projection.Doc().IsEmpty() {
		return mongoerr.New(mongoerr.FailedToParse, "The 'wildcardProjection' field can't be an empty object")
	}
	p := wildcardProjection{}
	if err := p.read("", projection.Doc()); err != nil {
		return err
	}
	for _, f := range d.Fields {
		if f.Kind != Wildcard && p.keeps(f.Path) {
			return mongoerr.New(7246209, "wildcardProjection has to exclude all regular fields of a compound wildcard index, but it leaves '%s'", f.Path)
		}
	}
	return nil
}

// checkBelow refuses fields of their own below the path, prefix, that a wildcard stands for.
func (d *Definition) checkBelow(prefix string) error {
	if prefix == "" {
		return nil
	}
	for _, f := range d.Fields {
		if f.Kind != Wildcard && (strings.HasPrefix(f.Path, prefix) || f.Path+"." == prefix) {
			return mongoerr.New(mongoerr.CannotCreateIndex, "wildcard indexes cannot be compounded with a field that the wildcard stands for: '%s'", f.Path)
		}
	}
	return nil
}

// wildcardProjection is which fields a wildcard leaves in or out.
type wildcardProjection struct {
	paths   []string // without _id
	taken   fieldpath.Disjoint
	include bool
	known   bool // which of both, which _id alone does not tell
	id      bool // whether _id is named to be in
}

// readProjection reads a projection that was found good when the index was made.
func readProjection(doc bson.Doc) *wildcardProjection {
	p := &wildcardProjection{}
	_ = p.read("", doc)
	return p
}

func (p *wildcardProjection) read(prefix string, doc bson.Doc) error {
	for it := doc.Iter(); it.Next(); {
		path, v := prefix+it.Key(), it.Value()
		switch {
		case v.Type == bson.TypeObject && !v.Doc().IsEmpty():
			if err := p.read(path+".", v.Doc()); err != nil {
				return err
			}
			continue
		case v.Type != bson.TypeBool && !v.IsNumber():
			return mongoerr.New(51271, "Bad projection specification, cannot use computed fields when parsing a wildcard projection: %s", doc)
		}
		if err := p.add(path, v.Truthy()); err != nil {
			return err
		}
	}
	return nil
}

func (p *wildcardProjection) add(path string, include bool) error {
	if strings.Count(path, ".") >= fieldpath.MaxParts {
		return mongoerr.New(mongoerr.Overflow, "FieldPath is too long")
	}
	switch other, met := p.taken.Conflict(path); {
	case met && len(other) >= len(path):
		return mongoerr.New(31250, "Path collision at %s", path)
	case met:
		return mongoerr.New(31249, "Path collision at %s remaining portion %s", path, path[strings.IndexByte(path, '.')+1:])
	}
	if path == "_id" {
		p.id = include
		return nil
	}
	switch {
	case p.known && p.include && !include:
		return mongoerr.New(31254, "Cannot do exclusion on field %s in inclusion projection", path)
	case p.known && !p.include && include:
		return mongoerr.New(31253, "Cannot do inclusion on field %s in exclusion projection", path)
	}
	p.known, p.include = true, include
	path = strings.Clone(path)
	p.paths = append(p.paths, path)
	p.taken.Add(path)
	return nil
}

// keeps says whether something at or below path is left.
func (p *wildcardProjection) keeps(path string) bool {
	for _, other := range p.paths {
		covered := other == path || strings.HasPrefix(path, other+".")
		if covered {
			return p.include
		}
		if p.include && strings.HasPrefix(other, path+".") {
			return true
		}
	}
	return !p.include
}
