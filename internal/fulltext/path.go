package fulltext

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fulltext/spec"
)

// stringPath is what a query names as paths with strings: one, an analysis of one that has several, or all that a pattern matches.
type stringPath struct {
	value, multi, wildcard string
}

func (p stringPath) String() string {
	switch {
	case p.wildcard != "":
		return p.wildcard
	case p.multi != "":
		return p.value + " (multi: " + p.multi + ")"
	}
	return p.value
}

// readPath reads one.
func readPath(a *spec.Reader, e spec.Element) (p stringPath) {
	switch e.Type {
	case bson.TypeString:
		return stringPath{value: strings.Clone(e.Str())}
	case bson.TypeObject:
	case bson.TypeNull:
		a.RefuseAt(e.Path, "is required")
		return p
	default:
		a.RefuseAt(e.Path, "must be a string or document")
		return p
	}
	sub := a.Inside(e.Path, e.Value)
	sub.OneOf("value", "wildcard")
	p = stringPath{value: sub.Str("value"), multi: sub.Str("multi"), wildcard: sub.Word("wildcard")}
	if p.multi != "" && p.wildcard != "" {
		sub.Refuse("only one of [multi, wildcard] may be present")
	}
	if strings.Contains(p.wildcard, "**") {
		sub.RefuseField("wildcard", "cannot contain consecutive wildcard characters")
	}
	sub.Done()
	return p
}

// stringPaths reads the path of an operator on strings.
func readPaths(a *spec.Reader, name string) (paths []stringPath) {
	list := a.RequiredList(name, true)
	if len(list) > maxClauses {
		a.Keep(tooManyClauses())
		return nil
	}
	for _, e := range list {
		paths = append(paths, readPath(a, e))
	}
	return paths
}

// plainPaths reads one for an operator that takes no patterns.
func readPlainPaths(a *spec.Reader, name string) []stringPath {
	paths := readPaths(a, name)
	for _, p := range paths {
		if p.wildcard != "" {
			a.Refuse("cannot have wildcards in path definition for this operator")
		}
	}
	return paths
}

// fieldPaths reads one for an operator on other values than strings.
func readFieldPaths(a *spec.Reader, name string) (paths []string) {
	for _, p := range readPaths(a, name) {
		switch {
		case p.multi != "":
			a.RefuseField(name, "multi field not permitted for this operator")
		case p.wildcard != "":
			a.RefuseField(name, "cannot have wildcards in path definition for this operator")
		}
		paths = append(paths, p.value)
	}
	return paths
}
