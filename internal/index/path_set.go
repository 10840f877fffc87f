package index

// PathSet is the paths at which an array stands in some document of a wildcard index. It is not changed once it is made;
// nil is the empty one.
type PathSet struct {
	paths map[string]bool
	all   bool
}

// What a PathSet keeps apart. When there is more it is every path, which costs queries tight bounds and nothing else.
const (
	maxPaths      = 1000
	maxPathLength = 1 << 10
)

// nestedMark ends a path whose array has arrays in it; no name has a byte like it.
const nestedMark = 0

// Has says whether path is in the set.
func (s *PathSet) Has(path string) bool { return s != nil && (s.all || s.paths[path]) }

// HasNested says whether an array at path has arrays in it, in some document.
func (s *PathSet) HasNested(path string) bool { return s.Has(path + string(rune(nestedMark))) }

// HasAll says whether the paths of k are all in the set.
func (s *PathSet) HasAll(k *Keys) bool {
	for i := range k.paths {
		if s == nil || !s.all && !s.paths[string(k.path(i))] {
			return false
		}
	}
	return true
}

// IsAll says whether the set is every path.
func (s *PathSet) IsAll() bool { return s != nil && s.all }

// Paths are the paths that are kept apart, in no order.
func (s *PathSet) Paths() []string {
	if s == nil {
		return nil
	}
	out := make([]string, 0, len(s.paths))
	for p := range s.paths {
		out = append(out, p)
	}
	return out
}

// AllPaths is the set of every path.
func AllPaths() *PathSet { return &PathSet{all: true} }

// With is s with paths.
func (s *PathSet) With(paths ...string) *PathSet {
	if s.IsAll() {
		return s
	}
	next := &PathSet{paths: map[string]bool{}}
	for _, p := range append(s.Paths(), paths...) {
		next.paths[p] = true
		if len(p) > maxPathLength || len(next.paths) > maxPaths {
			return AllPaths()
		}
	}
	return next
}

// Union is what is in either.
func (s *PathSet) Union(o *PathSet) *PathSet {
	if o.IsAll() {
		return o
	}
	return s.With(o.Paths()...)
}
