package mapping

import (
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fulltext/spec"
)

const bsonObject = bson.TypeObject

// dynamic is what "dynamic: true" makes of a field: the types that need no options, and documents with such fields.
func (p *parser) dynamic() *Field {
	f := &Field{Number: &Number{}, Date: true, Boolean: true, ObjectID: true, UUID: true, Null: true}
	f.Document = &Document{Dynamic: f}
	s := &String{}
	s.Analyzer, _ = p.named(first(p.indexed))
	s.SearchAnalyzer, _ = p.named(first(p.searched, p.indexed))
	f.String = s
	return f
}

// declareSets makes the fields that type sets stand for, whose types are not known yet: they can be named before they are read.
func (p *parser) declareSets(r *spec.Reader) {
	sets, _ := r.Objects("typeSets", false, maxNames)
	for _, set := range sets {
		if name, ok := set.NonBlank("name", true); ok {
			f := &Field{Null: true}
			f.Document = &Document{Dynamic: f}
			p.sets[name] = f
		}
	}
}

// allowedInSets are the types of a type set: those of a value.
var allowedInSets = []string{"autocomplete", "boolean", "date", "geo", "number", "objectId", "string", "token", "uuid"}

func (p *parser) readSets(r *spec.Reader) {
	sets, given := r.Objects("typeSets", false, maxNames)
	if given && len(sets) == 0 {
		r.RefuseField("typeSets", "cannot be empty")
	}
	seen := map[string]bool{}
	for _, set := range sets {
		name, _ := set.NonBlank("name", true)
		types, _ := set.Objects("types", true, maxTypes)
		if set.Err() == nil && len(types) == 0 {
			set.RefuseField("types", "cannot be empty")
		}
		var kinds []string
		for _, t := range types {
			kind := t.Enum("type", "", typeNames...)
			if set.Keep(t.Err()); set.Err() != nil {
				break
			}
			switch {
			case slices.Contains(kinds, kind):
				set.RefuseField("types", "cannot contain elements with the same type")
			case !slices.Contains(allowedInSets, kind):
				set.RefuseField("types", "The following field type definitions are disallowed in a typeSet definition: [%s]", strings.Join(refusedInSets(), ", "))
			default:
				kinds = append(kinds, kind)
				set.Keep(p.addType(p.sets[name], kind, t, place{}))
				set.Keep(t.Done())
			}
		}
		r.Keep(set.Done())
		if seen[name] {
			r.RefuseField("typeSets", "cannot contain elements with the same name")
		}
		seen[name] = true
		if r.Err() != nil {
			return
		}
	}
}

// refusedInSets are the types that no type set has, as MongoDB writes them.
func refusedInSets() []string {
	return []string{
		"AUTO_EMBED_VECTOR", "DATE_FACET", "DOCUMENT", "EMBEDDED_DOCUMENTS", "VECTOR", "KNN_VECTOR", "NUMBER_FACET", "SORTABLE_DATE_BETA_V1",
		"SORTABLE_NUMBER_BETA_V1", "SORTABLE_STRING_BETA_V1", "STRING_FACET",
	}
}

// synonyms reads the synonym mappings.
func (p *parser) synonyms(r *spec.Reader) map[string]Synonyms {
	list, _ := r.Objects("synonyms", false, maxNames)
	out := map[string]Synonyms{}
	for _, s := range list {
		name, _ := s.NonEmpty("name", true)
		var from Synonyms
		if doc, ok := s.Object("source", true); ok {
			source := spec.New(s.Path("source"), doc)
			from.Collection, _ = source.NonEmpty("collection", true)
			s.Keep(source.Done())
		}
		analyzer, _ := s.NonEmpty("analyzer", true)
		if r.Keep(s.Done()); r.Err() != nil {
			return nil
		}
		a, err := p.named(analyzer)
		if err == nil && a != nil && a.IsGraph() {
			err = spec.Wrong("synonym mapping %s uses graph token stream producing analyzer %s", name, analyzer)
		}
		if r.Keep(err); err != nil {
			return nil
		}
		if _, twice := out[name]; twice {
			r.RefuseField("synonyms", "cannot contain elements with the same name")
		}
		from.Analyzer = a
		out[name] = from
	}
	return out
}

// sort checks the fields that an index is sorted by. Results come in the same order with it and without it.
func (p *parser) sort(r *spec.Reader, root *Document) {
	doc, _ := r.Object("sort", false)
	if doc.Count() > maxNames {
		r.RefuseField("sort", "cannot have more than %d fields", maxNames)
	}
	for it := doc.Iter(); r.Err() == nil && it.Next(); {
		path, v := it.Key(), it.Value()
		if v.Type == bson.TypeObject {
			if !v.Doc().Lookup("$meta").IsMissing() {
				r.Keep(spec.Wrong("Cannot sort on score for fields: [%s]", path))
				return
			}
			v = v.Doc().Lookup("order")
		}
		if n, _ := v.AsInt64(); !v.IsNumber() || n != 1 && n != -1 {
			r.RefuseField("sort."+path, "must be 1 or -1")
			return
		}
		f := root.explicit(path)
		if f == nil {
			r.Keep(spec.Wrong("Sort fields: [%s] are not statically defined", path))
			return
		}
		if !f.isSortable() {
			r.Keep(spec.Wrong("Sort fields are not sortable: [%s]. Sortable types are: [BOOLEAN, DATE, NUMBER, OBJECT_ID, TOKEN, UUID]", path))
			return
		}
	}
}

// isSortable says that a field has no types but those that an index can be sorted by, and texts that are tokens as well.
func (f *Field) isSortable() bool {
	only := f.Geo == nil && f.Vector == nil && f.Document == nil && f.Embedded == nil && !f.Sortable && !f.StringFacet && !f.NumberFacet && !f.DateFacet
	if f.Token == nil {
		only = only && f.String == nil && f.Autocomplete == nil
	}
	return only && (f.Token != nil || f.Number != nil || f.Date || f.Boolean || f.ObjectID || f.UUID)
}
