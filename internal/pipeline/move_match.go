package pipeline

import (
	"iter"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/projection"
)

// moveMatches moves the first $match that may go before the stage in front of it, or those of its conditions that may. A
// condition may where the stage hands on what it reads as it came, perhaps under another name:
//
//   - $sort leaves all;
//   - $addFields, $set, $lookup, $graphLookup and $unwind leave what stands below other fields than those that they set;
//   - $unset and a $project that excludes leave what is not in the excluded paths nor around them;
//   - a $project that includes leaves what is in the included paths;
//   - all of these may rename: {b: "$a"} is a by the name of b;
//   - $group hands on the fields of its _id, but of values that are equal only one: conditions that tell these apart stay;
//   - $unionWith gets a copy for its own documents.
func (p *Pipeline) moveMatches() bool {
	for i := 1; i < len(p.Stages); i++ {
		m, ok := p.Stages[i].(*Match)
		if !ok {
			continue
		}
		if u, ok := p.Stages[i-1].(*UnionWith); ok && p.copyMatch(i, u, m) {
			return true
		}
		if names := passing(p.Stages[i-1]); names != nil && p.moveMatch(i, m, names) {
			return true
		}
	}
	return false
}

// moveMatch moves what it can of the i-th stage, m, before the stage in front of it.
func (p *Pipeline) moveMatch(i int, m *Match, names match.Renaming) bool {
	if m.Filter.Dependencies().Volatile {
		return false
	}
	if _, sort := p.Stages[i-1].(*Sort); sort {
		p.Stages[i-1], p.Stages[i] = p.Stages[i], p.Stages[i-1]
		return true
	}
	_, groups := p.Stages[i-1].(*Group)
	var before, behind []match.Node
	changed := false
	for _, n := range match.Conjuncts(m.Filter.Root) {
		renamed, ok := match.Rename(n, names)
		if !ok || groups && !blind(n) {
			behind = append(behind, n)
			continue
		}
		before = append(before, renamed)
		changed = changed || renamed != n
	}
	switch {
	case len(before) == 0:
		return false
	case len(behind) == 0 && !changed:
		p.Stages[i-1], p.Stages[i] = m, p.Stages[i-1]
	default:
		moved := []Stage{newMatch(m.Filter.With(match.AllOf(before))), p.Stages[i-1]}
		if len(behind) > 0 {
			moved = append(moved, newMatch(m.Filter.With(match.AllOf(behind))))
		}
		p.Stages = slices.Replace(p.Stages, i-1, i+1, moved...)
	}
	return true
}

func newMatch(f *match.Filter) *Match { return &Match{written{"$match", f.Source.Value()}, f} }

// copyMatch lets both sides of a $unionWith do the $match behind it. What reads variables stays: the pipeline inside may
// have others.
func (p *Pipeline) copyMatch(i int, u *UnionWith, m *Match) bool {
	if _, ok := match.Rename(m.Filter.Root, func(path string) (string, bool) { return path, true }); !ok || u.Pipeline == nil || usesExpr(m.Filter.Root) {
		return false
	}
	both, inner := *u, *u.Pipeline
	inner.Stages = append(slices.Clone(inner.Stages), m)
	both.Pipeline = &inner
	p.Stages[i-1], p.Stages[i] = m, &both
	return true
}

func usesExpr(n match.Node) bool {
	_, is := n.(*match.Expr)
	return is || slices.ContainsFunc(match.Children(n), usesExpr)
}

// passing is what the paths of s's output are called in its input, nil when nothing may pass s.
func passing(s Stage) match.Renaming {
	switch s := s.(type) {
	case *Sort:
		return func(path string) (string, bool) { return path, true }
	case *Project:
		return passingProject(s.Projection)
	case *Unwind:
		set := []string{s.Path.String()}
		if s.Index.Len() > 0 {
			set = append(set, s.Index.String())
		}
		return exceptBelow(set)
	case *Lookup:
		if s.Unwind == nil {
			return exceptBelow([]string{s.As.String()})
		}
	case *GraphLookup:
		return exceptBelow([]string{s.As.String()})
	case *Group:
		return groupNames(s.ID)
	}
	return nil
}

// exceptBelow keeps paths that share no first component with those that are set.
func exceptBelow(set []string) match.Renaming {
	roots := map[string]bool{}
	for _, path := range set {
		first, _ := cutFirst(path)
		roots[first] = true
	}
	return func(path string) (string, bool) {
		if first, _ := cutFirst(path); roots[first] {
			return "", false
		}
		return path, true
	}
}

func passingProject(pr *projection.Projection) match.Renaming {
	renames, untouched := pr.Renames(), exceptBelow(pr.ComputedPaths())
	includes, excludes, around := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, in := range pr.Includes() {
		includes[in] = true
	}
	for _, out := range pr.Excludes() {
		excludes[out] = true
		for outer := range outward(out) {
			around[outer] = true
		}
	}
	return func(path string) (string, bool) {
		first, rest := cutFirst(path)
		if from, ok := renames[first]; ok {
			return from + rest, true
		}
		if _, ok := untouched(path); !ok {
			return "", false
		}
		if pr.Kind() == projection.Inclusion {
			return path, anyOutward(path, func(in string) bool { return includes[in] && holds(in, path) })
		}
		fixed := withoutPositions(path)
		return path, !around[fixed] && !anyOutward(fixed, func(out string) bool { return excludes[out] })
	}
}

// outward are path and all that it stands below.
func outward(path string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := len(path); i >= 0; i = strings.LastIndexByte(path[:i], '.') {
			if !yield(path[:i]) {
				return
			}
		}
	}
}

func anyOutward(path string, is func(string) bool) bool {
	for outer := range outward(path) {
		if is(outer) {
			return true
		}
	}
	return false
}

// holds says whether what path, which is in or stands below it, reaches is what it was, when of all around it only in is
// left. Leaving out fields also takes scalars out of arrays, which moves the positions of others.
func holds(in, path string) bool {
	return !strings.Contains(in, ".") || withoutPositions(path) == path
}

// withoutPositions leaves out components that may be positions in arrays.
func withoutPositions(path string) string {
	var kept []string
	for part := range strings.SplitSeq(path, ".") {
		if strings.Trim(part, "0123456789") != "" {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, ".")
}

// cutFirst parts a path behind its first component.
func cutFirst(path string) (first, rest string) {
	if i := strings.IndexByte(path, '.'); i >= 0 {
		return path[:i], path[i:]
	}
	return path, ""
}

// groupNames are the fields behind a $group's _id.
func groupNames(id expr.Expr) match.Renaming {
	names := map[string]string{}
	if from, ok := expr.FieldOf(id); ok && from.Len() == 1 {
		names["_id"] = from.String()
	}
	keys, parts, _ := expr.ObjectOf(id)
	for i, key := range keys {
		if from, ok := expr.FieldOf(parts[i]); ok && from.Len() == 1 {
			names["_id."+key] = from.String()
		}
	}
	if len(names) == 0 {
		return nil
	}
	return func(path string) (string, bool) {
		for name := range outward(path) {
			if from, ok := names[name]; ok {
				return from + path[len(name):], true
			}
		}
		return "", false
	}
}

// blind says whether n says the same of values that are equal but of different types, and of null and nothing.
func blind(n match.Node) bool {
	switch n := n.(type) {
	case *match.And, *match.Or, *match.Nor, *match.Not:
		return !slices.ContainsFunc(match.Children(n), func(c match.Node) bool { return !blind(c) })
	case *match.Compare:
		return !n.Value.IsNullish() && n.Value.Type != bson.TypeMinKey && n.Value.Type != bson.TypeMaxKey
	case *match.In:
		return len(n.Regexes) == 0 && !slices.ContainsFunc(n.Values, func(v bson.Value) bool { return v.IsNullish() })
	}
	return false
}
