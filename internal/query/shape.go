package query

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/pipeline"
	"github.com/ebbdb/ebb/internal/planner"
	"github.com/ebbdb/ebb/internal/sortpattern"
)

// A shape is an operation without its constants, as text. There are two, as in MongoDB. The plan's shape has what plans are
// chosen by: paths and operators in any order, how many values an $in has, sort, projection and collation. The query's shape
// tells queries of an application apart: it keeps the order in which things are written, and of values only the types.

// planShape is the shape that a plan of a find is made for.
func planShape(filter *match.Filter, order *sortpattern.Pattern, project bson.Doc, c *collation.Collation) string {
	var b strings.Builder
	if filter != nil {
		b.WriteString(planPredicate(filter.Print()))
	}
	b.WriteString("~" + sortText(order) + "~" + sortedFields(project))
	writeCollation(&b, c)
	return b.String()
}

func sortText(p *sortpattern.Pattern) string {
	if p == nil {
		return ""
	}
	return planner.SortSpec(p).Text()
}

func writeCollation(b *strings.Builder, c *collation.Collation) {
	if c != nil {
		b.WriteString("~" + c.Doc().Text())
	}
}

// sortedFields is a projection in which order does not matter.
func sortedFields(project bson.Doc) string {
	var fields []string
	for it := project.Iter(); it.Next(); {
		fields = append(fields, it.Key()+":"+it.Value().Text())
	}
	slices.Sort(fields)
	return strings.Join(fields, ",")
}

// planPredicate is the shape of a condition in canonical form.
func planPredicate(d bson.Doc) string {
	var parts []string
	for it := d.Iter(); it.Next(); {
		parts = append(parts, it.Key()+planOperand(it.Key(), it.Value()))
	}
	slices.Sort(parts)
	return "{" + strings.Join(parts, ",") + "}"
}

func planOperand(key string, v bson.Value) string {
	switch {
	case key == "$expr", key == "$type", key == "$mod":
		return ""
	case key == "$in":
		return fmt.Sprint(v.Doc().Count())
	case key == "$jsonSchema":
		return v.Text()
	case v.Type == bson.TypeArray:
		var parts []string
		for it := v.Doc().Iter(); it.Next(); {
			if it.Value().Type == bson.TypeObject {
				parts = append(parts, planPredicate(it.Value().Doc()))
			}
		}
		slices.Sort(parts)
		return "[" + strings.Join(parts, ",") + "]"
	case v.Type == bson.TypeObject && (!isOperator(key) || key == "$not" || key == "$elemMatch" || strings.HasPrefix(key, "$_")):
		return planPredicate(v.Doc())
	}
	return ""
}

func isOperator(key string) bool { return key != "" && key[0] == '$' }

// aggregateShape is the shape that the plan of a pipeline is made for; rest are the stages behind its filter.
func aggregateShape(lang *language, lead pipeline.Leading, rest *pipeline.Pipeline) string {
	sort, needs := lead.Sort, ""
	switch s := rest.First().(type) {
	case *pipeline.Group, *pipeline.BucketAuto, *pipeline.Lookup:
		needs = s.Name()
	case *pipeline.Densify:
		sort = &sortpattern.Pattern{Parts: []sortpattern.Part{{Path: s.Field}}}
	case *pipeline.SetWindowFields:
		if s.SortBy != nil {
			sort = s.SortBy
		}
	}
	if _, facet := rest.First().(*pipeline.Facet); !facet && !lead.Needs.Whole {
		needs += " " + strings.Join(lead.Needs.Fields, ",")
	}
	return "aggregate " + planShape(lead.Filter, sort, nil, lang.collation) + "~" + needs
}

// ShapeHash is what a query's shape is called: queryShapeHash.
func ShapeHash(shape string) string { return fmt.Sprintf("%X", sha256.Sum256([]byte(shape))) }

// findShape is the shape of a query as its application sees it.
func findShape(command string, f Find, call *Call) string {
	var b strings.Builder
	b.WriteString(command + " " + f.NS.String() + " ")
	queryPredicate(&b, f.Filter)
	b.WriteString("~" + f.Sort.Text() + "~" + f.Projection.Text())
	writeCollation(&b, call.asked())
	return b.String()
}

// asked is the collation that the command itself asks for.
func (c *Call) asked() *collation.Collation {
	if !c.Collated {
		return nil
	}
	return c.Collation
}

// pipelineShape is the shape of an aggregate as its application sees it.
func pipelineShape(a Aggregate, call *Call) string {
	var b strings.Builder
	b.WriteString("aggregate " + a.NS.String())
	for it := a.Pipeline.Doc().Iter(); it.Next(); {
		if it.Value().Type != bson.TypeObject {
			continue // which is an error as soon as it is parsed
		}
		stage := it.Value().Doc()
		name, spec := stage.FirstKey(), stage.Lookup(stage.FirstKey())
		b.WriteString(" " + name)
		switch {
		case name == "$match" && spec.Type == bson.TypeObject:
			queryPredicate(&b, spec.Doc())
		case spec.Type == bson.TypeString:
			b.WriteString(spec.Str())
		case pipeline.IsSearch(name): // of which all is a constant
			b.WriteString(typeName(spec))
		default:
			rest, conditions := splitConditions(name, spec)
			queryValue(&b, rest)
			for _, c := range conditions {
				b.WriteString(c.field)
				queryPredicate(&b, c.filter)
			}
		}
	}
	writeCollation(&b, call.asked())
	return b.String()
}

// condition is a filter in a field of a stage.
type condition struct {
	field  string
	filter bson.Doc
}

// splitConditions parts the argument of a stage from the filters in it.
func splitConditions(stage string, spec bson.Value) (rest bson.Value, conditions []condition) {
	var fields []string
	switch stage {
	case "$geoNear":
		fields = []string{"query"}
	case "$graphLookup":
		fields = []string{"restrictSearchWithMatch"}
	case "$vectorSearch":
		fields = []string{"filter", "parentFilter"}
	}
	if len(fields) == 0 || spec.Type != bson.TypeObject {
		return spec, nil
	}
	b := bson.Build()
	for it := spec.Doc().Iter(); it.Next(); {
		if v := it.Value(); v.Type == bson.TypeObject && slices.Contains(fields, it.Key()) {
			conditions = append(conditions, condition{it.Key(), v.Doc()})
		} else {
			b.Value(it.Key(), v)
		}
	}
	return b.Doc().Value(), conditions
}

// queryPredicate is the shape of a condition as it was written; an implicit $and or $eq is the same as a spelled one.
func queryPredicate(b *strings.Builder, d bson.Doc) {
	if d.Count() == 1 && d.FirstKey() == "$and" && d.Lookup("$and").Type == bson.TypeArray {
		for it := d.Lookup("$and").Doc().Iter(); it.Next(); {
			if it.Value().Type == bson.TypeObject {
				queryFields(b, it.Value().Doc())
			}
		}
		return
	}
	queryFields(b, d)
}

func queryFields(b *strings.Builder, d bson.Doc) {
	for it := d.Iter(); it.Next(); {
		key, v := it.Key(), it.Value()
		b.WriteString("," + key + ":")
		switch {
		case key == "$expr":
			queryValue(b, v)
		case v.Type == bson.TypeArray && isOperator(key):
			b.WriteByte('[')
			for at := v.Doc().Iter(); at.Next(); {
				if at.Value().Type == bson.TypeObject {
					queryPredicate(b, at.Value().Doc())
				}
				b.WriteByte(';')
			}
			b.WriteByte(']')
		case v.Type == bson.TypeObject && key == "$jsonSchema":
			b.WriteString(v.Text())
		case v.Type == bson.TypeObject && isOperator(v.Doc().FirstKey()):
			queryOperators(b, v.Doc())
		default:
			b.WriteString("$eq" + typeName(v))
		}
	}
}

func queryOperators(b *strings.Builder, d bson.Doc) {
	for it := d.Iter(); it.Next(); {
		key, v := it.Key(), it.Value()
		b.WriteString(key)
		switch {
		case key == "$type":
			for _, t := range listOf(v) {
				b.WriteString("," + t.Text())
			}
		case key == "$exists":
			b.WriteString(fmt.Sprint(v.Truthy()))
		case key == "$all" && v.Type == bson.TypeArray:
			b.WriteString(fmt.Sprint(v.Doc().Count()))
		case v.Type == bson.TypeObject && (key == "$not" || key == "$elemMatch"):
			if isOperator(v.Doc().FirstKey()) {
				queryOperators(b, v.Doc())
			} else {
				queryFields(b, v.Doc())
			}
		default:
			b.WriteString(typeName(v))
		}
	}
}

// listOf is an array's elements, or what is no array alone.
func listOf(v bson.Value) []bson.Value {
	if v.Type == bson.TypeArray {
		return v.Doc().Values(nil)
	}
	return []bson.Value{v}
}

// typeName is what a shape keeps of a constant: its type, and of an array those of its elements.
func typeName(v bson.Value) string {
	switch {
	case v.IsNumber():
		return "?number"
	case v.Type != bson.TypeArray:
		return "?" + v.Type.String()
	}
	var types []string
	for it := v.Doc().Iter(); it.Next(); {
		if it.Value().Type == bson.TypeArray || it.Value().Type == bson.TypeObject {
			types = append(types, it.Value().Type.String())
		} else {
			types = append(types, typeName(it.Value()))
		}
	}
	slices.Sort(types)
	return "?array<" + strings.Join(slices.Compact(types), ",") + ">"
}

// queryValue is the shape of an expression or a stage: field paths and names stay, constants inside of operators do not.
func queryValue(b *strings.Builder, v bson.Value) {
	switch {
	case v.Type == bson.TypeObject:
		b.WriteByte('{')
		for it := v.Doc().Iter(); it.Next(); {
			b.WriteString(it.Key() + ":")
			if w := it.Value(); !isOperator(it.Key()) && (w.IsNumber() || w.Type == bson.TypeBool || w.Type == bson.TypeString) {
				b.WriteString(w.Text()) // the 0 or 1 of a projection or sort, or a name
			} else {
				queryValue(b, w)
			}
			b.WriteByte(',')
		}
		b.WriteByte('}')
	case v.Type == bson.TypeArray:
		b.WriteByte('[')
		for it := v.Doc().Iter(); it.Next(); {
			queryValue(b, it.Value())
			b.WriteByte(',')
		}
		b.WriteByte(']')
	case v.Type == bson.TypeString && isOperator(v.Str()):
		b.WriteString(v.Str())
	default:
		b.WriteString(typeName(v))
	}
}
