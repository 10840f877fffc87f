package fulltext

import (
	"bytes"
	"math"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/fulltext/analysis"
	"github.com/ebbdb/ebb/internal/fulltext/mapping"
	"github.com/ebbdb/ebb/internal/fulltext/spec"
)

// kind is what values are compared as: values of different kinds never meet.
type kind int

const (
	noKind kind = iota
	boolKind
	numberKind
	dateKind
	stringKind
	objectIDKind
	uuidKind
	nullKind
)

const uuidSubtype = 4

// kindOf is the kind of a value that is asked for, noKind where none can be.
func kindOf(v bson.Value) kind {
	switch v.Type {
	case bson.TypeBool:
		return boolKind
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDouble:
		return numberKind
	case bson.TypeDate:
		return dateKind
	case bson.TypeString:
		return stringKind
	case bson.TypeObjectID:
		return objectIDKind
	case bson.TypeNull:
		return nullKind
	case bson.TypeBinary:
		if subtype, _ := v.Binary(); subtype == uuidSubtype {
			return uuidKind
		}
	}
	return noKind
}

// indexes says whether a path's values of a kind are indexed.
func indexes(f *mapping.Field, k kind) bool {
	if f == nil {
		return false
	}
	switch k {
	case boolKind:
		return f.Boolean
	case numberKind:
		return f.Number != nil
	case dateKind:
		return f.Date
	case stringKind:
		return f.Token != nil
	case objectIDKind:
		return f.ObjectID
	case uuidKind:
		return f.UUID
	}
	return k == nullKind
}

// maxTokenBytes is how long a string is at most that is indexed as a whole, as in Lucene.
const maxTokenBytes = 32766

// indexed is a value as a path's index has it: ok is false where it has not.
func indexed(f *mapping.Field, v bson.Value) (_ bson.Value, ok bool) {
	k := kindOf(v)
	if k == noKind || !indexes(f, k) {
		return v, false
	}
	switch k {
	case numberKind:
		n := f.Number
		if v.Type == bson.TypeDouble && n.NoDoubles || v.Type != bson.TypeDouble && n.NoIntegers {
			return v, false
		}
		if n.Int64 && v.Type == bson.TypeDouble {
			return bson.Int64(truncated(v.Double())), true
		}
	case stringKind:
		if len(v.Str()) > maxTokenBytes {
			return v, false
		}
		if f.Token.Lowercase {
			return bson.String(strings.ToLower(v.Str())), true
		}
	}
	return v, true
}

// truncated is a number without what is behind its point, within what 64 bits hold.
func truncated(f float64) int64 {
	switch {
	case math.IsNaN(f):
		return 0
	case f >= math.MaxInt64:
		return math.MaxInt64
	case f <= math.MinInt64:
		return math.MinInt64
	}
	return int64(f)
}

// order compares two values of one kind, as indexes do: numbers as doubles.
func order(a, b bson.Value) int {
	switch kindOf(a) {
	case numberKind:
		return orderNumbers(a.AsDouble(), b.AsDouble())
	case dateKind:
		return orderInts(a.Millis(), b.Millis())
	case stringKind:
		return strings.Compare(a.Str(), b.Str())
	case objectIDKind:
		x, y := a.ObjectID(), b.ObjectID()
		return bytes.Compare(x[:], y[:])
	case uuidKind:
		_, x := a.Binary()
		_, y := b.Binary()
		return bytes.Compare(x, y)
	case boolKind:
		return orderInts(int64(a.Data[0]), int64(b.Data[0]))
	}
	return 0
}

func orderInts(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// orderNumbers puts NaN above all others, and both zeros at one place.
func orderNumbers(a, b float64) int {
	switch {
	case a < b || math.IsNaN(b) && !math.IsNaN(a):
		return -1
	case a > b || math.IsNaN(a) && !math.IsNaN(b):
		return 1
	}
	return 0
}

// readValue reads a value that is asked for.
func readValue(a *spec.Reader, e spec.Element, null bool) bson.Value {
	k := kindOf(e.Value)
	switch {
	case k == nullKind && !null:
		a.RefuseAt(e.Path, "is required")
	case k == noKind && e.Type == bson.TypeBinary:
		a.RefuseAt(e.Path, "binary value must be UUID subtype 4")
	case k == noKind && null:
		a.RefuseAt(e.Path, "must be a boolean, objectId, number, string, date, uuid, or null")
	case k == noKind:
		a.RefuseAt(e.Path, "must be a boolean, objectId, number, string, date, or uuid")
	}
	return e.Clone()
}

// holder is the node of the values at paths that pass a test.
func (r *resolver) holder(name string, paths []string, test func(bson.Value) bool) node {
	type place struct {
		field *mapping.Field
		at    fieldpath.Path
	}
	s := r.scope
	var places []place
	for _, p := range paths {
		if f := s.field(p); f != nil {
			places = append(places, place{f, s.values(p)})
		}
	}
	if len(places) == 0 {
		return nothing{}
	}
	return &constant{slot: r.slot(), name: name + ":" + strings.Join(paths, ","), holds: func() (found bool) {
		for _, p := range places {
			p.at.Values(s.view.doc, fieldpath.Names, func(v bson.Value) {
				if found {
					return
				}
				if v, ok := indexed(p.field, v); ok {
					found = test(v)
				}
			})
		}
		return found
	}}
}

// equals is the operator of that name, and in: one of several values.
type equals struct {
	name   string
	paths  []string
	values []bson.Value
}

func parseEquals(p *parser, a *spec.Reader) operator {
	e := &equals{name: "equals", paths: []string{a.RequiredStr("path")}}
	a.Known("value")
	v := a.Doc().Lookup("value")
	if v.IsMissing() {
		a.RefuseField("value", "is required")
	} else {
		e.values = []bson.Value{readValue(a, spec.Element{Path: a.Path("value"), Value: v}, true)}
	}
	p.affects(a)
	return e
}

func parseIn(p *parser, a *spec.Reader) operator {
	e := &equals{name: "in", paths: readFieldPaths(a, "path")}
	for i, v := range a.RequiredList("value", true) {
		value := readValue(a, v, false)
		if i > 0 && kindOf(value) != kindOf(e.values[0]) {
			a.RefuseField("value", "must have elements of the same type")
		}
		e.values = append(e.values, value)
	}
	p.affects(a)
	return e
}

func (e *equals) resolve(r *resolver) (node, error) {
	k := kindOf(e.values[0])
	if err := r.needTokens(e.paths, e.values...); err != nil {
		return nil, err
	}
	exact := e.name == "equals"
	wanted := map[string]bool{}
	for _, v := range e.values {
		wanted[e.key(v)] = true
		if k == stringKind {
			wanted[strings.ToLower(v.Str())] = r.lowers(e.paths) || wanted[strings.ToLower(v.Str())]
		}
	}
	return r.holder(e.name, e.paths, func(v bson.Value) bool {
		if kindOf(v) != k {
			return false
		}
		if k == numberKind && exact {
			if f := v.AsDouble(); math.IsNaN(f) || math.IsInf(f, 0) {
				return false
			}
		}
		return wanted[e.key(v)]
	}), nil
}

// needTokens refuses strings that are more than a word where a path is not indexed as token. A word is not found there.
func (r *resolver) needTokens(paths []string, values ...bson.Value) error {
	standard, err := analysis.Stock(analysis.Standard)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(paths, func(p string) bool { f := r.scope.field(p); return f == nil || f.Token == nil })
	if i < 0 {
		return nil
	}
	for _, v := range values {
		if v.Type == bson.TypeString && (len(v.Str()) > maxWordBytes || len(standard.Tokens(nil, v.Str())) != 1) {
			return spec.Wrong("Path '%s' needs to be indexed as token", paths[i])
		}
	}
	return nil
}

// lowers says whether one of the paths makes its tokens lower.
func (r *resolver) lowers(paths []string) bool {
	for _, p := range paths {
		if f := r.scope.field(p); f != nil && f.Token != nil && f.Token.Lowercase {
			return true
		}
	}
	return false
}

// key is what equal values have in common.
func (e *equals) key(v bson.Value) string {
	switch kindOf(v) {
	case numberKind:
		f := v.AsDouble()
		if f == 0 {
			f = 0 // of both zeros
		}
		return bson.Double(f).String()
	case stringKind:
		return v.Str()
	}
	return v.String()
}

// exists is the operator of that name.
type exists struct{ path string }

func parseExists(p *parser, a *spec.Reader) operator { return &exists{a.RequiredStr("path")} }

func (e *exists) resolve(r *resolver) (node, error) {
	s := r.scope
	f := s.field(e.path)
	if f == nil {
		return nothing{}, nil
	}
	at := s.values(e.path)
	return &constant{slot: r.slot(), name: "exists:" + e.path, holds: func() bool { return there(f, at.Eval(s.view.doc)) }}, nil
}

// there says whether a path has a value that is indexed.
func there(f *mapping.Field, v bson.Value) bool {
	switch v.Type {
	case bson.TypeMissing:
		return false
	case bson.TypeArray:
		for it := v.Doc().Iter(); it.Next(); {
			if there(f, it.Value()) {
				return true
			}
		}
		return false
	case bson.TypeObject:
		return f.Document != nil || f.Embedded != nil || f.Geo != nil
	case bson.TypeString:
		return f.String != nil || f.Token != nil || f.Autocomplete != nil || f.StringFacet
	case bson.TypeNull:
		return true
	}
	_, ok := indexed(f, v)
	return ok
}

// between is the operator range.
type between struct {
	paths        []string
	low, high    bson.Value // missing: open
	above, below bool       // the end itself is not in it
}

func parseRange(p *parser, a *spec.Reader) operator {
	b := &between{paths: readFieldPaths(a, "path")}
	b.low, b.above = readEnd(a, "gt", "gte")
	b.high, b.below = readEnd(a, "lt", "lte")
	p.affects(a)
	switch {
	case b.low.IsMissing() && b.high.IsMissing():
		a.Refuse("must specify at least one of [lt, lte, gt, gte]")
	case b.low.IsMissing() || b.high.IsMissing():
	case kindOf(b.low) != kindOf(b.high):
		a.Refuse("bounds must be of the same type")
	default:
		switch c := order(b.low, b.high); {
		case c > 0:
			a.Refuse("gt/gte must not be greater than lt/lte")
		case c == 0 && (b.above || b.below):
			a.Refuse("bounds must both be inclusive if they are equal")
		}
	}
	return b
}

// end reads one end of a range, and says whether it is not in it.
func readEnd(a *spec.Reader, without, with string) (bson.Value, bool) {
	name := a.Only(without, with)
	a.Value(without)
	a.Value(with)
	if name == "" {
		return bson.Missing, false
	}
	v := a.Value(name)
	switch k := kindOf(v); {
	case v.Type == bson.TypeBinary && k == noKind:
		a.RefuseField(name, "must be a UUID")
	case v.Type == bson.TypeObject:
		a.Refuse("range operator does not support GEO point type")
	case k == noKind:
		a.RefuseField(name, "Type is not supported: %s", strings.ToUpper(v.Type.String()))
	case k == boolKind:
		a.Refuse("range operator does not support BOOLEAN point type")
	}
	return v.Clone(), name == without
}

func (b *between) resolve(r *resolver) (node, error) {
	end := b.low
	if end.IsMissing() {
		end = b.high
	}
	k := kindOf(end)
	if err := r.needTokens(b.paths, b.low, b.high); err != nil {
		return nil, err
	}
	if b.isNaN() {
		return nothing{}, nil
	}
	lower := k == stringKind && r.lowers(b.paths)
	low, high := b.low, b.high
	if lower {
		low, high = lowered(low), lowered(high)
	}
	return r.holder("range", b.paths, func(v bson.Value) bool {
		if kindOf(v) != k {
			return false
		}
		if k == numberKind && math.IsNaN(v.AsDouble()) {
			return false
		}
		if !low.IsMissing() {
			if c := order(v, low); c < 0 || c == 0 && b.above {
				return false
			}
		}
		if !high.IsMissing() {
			if c := order(v, high); c > 0 || c == 0 && b.below {
				return false
			}
		}
		return true
	}), nil
}

func lowered(v bson.Value) bson.Value {
	if v.Type != bson.TypeString {
		return v
	}
	return bson.String(strings.ToLower(v.Str()))
}

// isNaN says that an end is no number, so that nothing is in the range.
func (b *between) isNaN() bool {
	for _, v := range []bson.Value{b.low, b.high} {
		if v.Type == bson.TypeDouble && math.IsNaN(v.Double()) {
			return true
		}
	}
	return false
}
