package command

import (
	"math"
	"math/bits"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

// Args is a command's document while its fields are read one by one. Each field is read, ignored or refused: Done finds
// the ones that nobody asked for. A field that is null counts as absent, as in MongoDB. The first error sticks and is
// what Done returns; the values read after it do not matter.
type Args struct {
	path   string
	doc    bson.Doc
	fields []arg
	err    error
	// present has a bit for each field, see bitOf: most of what is asked for is not there.
	present uint64
	// everyday says that there are only fields for which everyday is true.
	everyday bool
	names    *internedNames
	// kept, unless nil, is where what a collection holds is kept.
	kept func(namespace.NS) namespace.NS
}

// maxKeptFields is how many fields a connection keeps room for.
const maxKeptFields = 256

// everyday is true for what the commands that come most often are made of: who has read the ones of his command among these
// need not ask for others where a command has no others.
func everyday(key string) bool {
	switch key {
	case "$db", "lsid", "ordered", "batchSize", "find", "filter", "sort", "projection", "skip", "limit", "singleBatch",
		"insert", "documents", "update", "updates", "delete", "deletes", "$clusterTime", "$readPreference", "txnNumber":
		return true
	}
	return false
}

// bitOf is the bit of a field's name. Names may share one.
func bitOf(key string) uint64 {
	if key == "" {
		return 1
	}
	return 1 << ((uint(len(key))*5 + uint(key[0])*3 + uint(key[len(key)-1])) & 63)
}

type arg struct {
	key  string
	v    bson.Value
	used bool
}

// NewArgs reads doc; path is what error messages call it ("find", "update.updates").
func NewArgs(path string, doc bson.Doc) *Args {
	a := &Args{}
	a.reset(path, doc, nil)
	return a
}

// reset begins to read doc. Names are those that the connection has had lately, or nil.
func (a *Args) reset(path string, doc bson.Doc, names *internedNames) {
	if cap(a.fields) > maxKeptFields {
		a.fields = nil
	}
	*a = Args{path: path, doc: doc, fields: a.fields[:0], everyday: true, names: names}
	for it := doc.Iter(); it.Next(); {
		a.present |= bitOf(it.Key())
		a.everyday = a.everyday && everyday(it.Key())
		a.fields = append(a.fields, arg{key: it.Key(), v: it.Value()})
	}
}

// forget lets go of what was read, and keeps the room.
func (a *Args) forget() {
	clear(a.fields)
	*a = Args{fields: a.fields[:0]}
}

// first is the command's own field.
func (a *Args) first() (key string, v bson.Value) {
	if len(a.fields) == 0 {
		return "", bson.Missing
	}
	return a.fields[0].key, a.fields[0].v
}

// as says what messages call the fields read from here on, where that is not the name of the command.
func (a *Args) as(path string) *Args {
	a.path = path
	return a
}

// Doc is the whole document.
func (a *Args) Document() bson.Doc { return a.doc }

// Fail makes err the error of a, when it is the first.
func (a *Args) Fail(err error) {
	if a.err == nil {
		a.err = err
	}
}

// Err is the first error so far.
func (a *Args) Err() error { return a.err }

// Value reads a field of any type as it is; missing when absent.
func (a *Args) Value(key string) bson.Value {
	if a.present&bitOf(key) == 0 {
		return bson.Missing
	}
	for i := range a.fields {
		if a.fields[i].key == key {
			a.fields[i].used = true
			return a.fields[i].v
		}
	}
	return bson.Missing
}

// Has says whether the field is there and not null, without reading it.
func (a *Args) Has(key string) bool {
	if a.present&bitOf(key) == 0 {
		return false
	}
	for i := range a.fields {
		if a.fields[i].key == key {
			return !a.fields[i].v.IsNullish()
		}
	}
	return false
}

// Ignore takes note of fields that have no meaning here.
func (a *Args) Ignore(keys ...string) {
	for _, k := range keys {
		a.Value(k)
	}
}

// peek is a field's value without reading it: whether it is one that the command knows is seen by those who read.
func (a *Args) peek(key string) bson.Value {
	if a.present&bitOf(key) == 0 {
		return bson.Missing
	}
	for i := range a.fields {
		if a.fields[i].key == key {
			return a.fields[i].v
		}
	}
	return bson.Missing
}

// typed reads a field that must be of one of the types; ok is false when it is absent or wrong.
func (a *Args) typed(key string, types ...bson.Type) (v bson.Value, ok bool) {
	v = a.Value(key)
	if v.IsNullish() {
		return bson.Missing, false
	}
	for _, t := range types {
		if v.Type == t {
			return v, true
		}
	}
	a.Fail(a.wrongType(key, v.Type, types))
	return bson.Missing, false
}

func (a *Args) wrongType(key string, got bson.Type, want []bson.Type) error {
	if len(want) == 1 {
		return mongoerr.New(mongoerr.TypeMismatch, "BSON field '%s.%s' is the wrong type '%s', expected type '%s'", a.path, key, got, want[0]).Unparsed()
	}
	names := make([]string, len(want))
	for i, t := range want {
		names[i] = t.String()
	}
	return mongoerr.New(mongoerr.TypeMismatch, "BSON field '%s.%s' is the wrong type '%s', expected types '[%s]'", a.path, key, got, strings.Join(names, ", ")).Unparsed()
}

// Doc reads an optional document; nil when absent.
func (a *Args) Doc(key string) bson.Doc {
	v, ok := a.typed(key, bson.TypeObject)
	if !ok {
		return nil
	}
	return v.Doc()
}

// optionalBool reads a bool for which null does not stand, nor a number.
func (a *Args) optionalBool(key string, def bool) bool {
	v := a.Value(key)
	switch v.Type {
	case bson.TypeMissing:
		return def
	case bson.TypeBool:
		return v.Bool()
	}
	a.Fail(mongoerr.New(mongoerr.TypeMismatch, "Field '%s' should be a boolean value, but found: %s", key, v.Type).Unparsed())
	return def
}

// owned is Doc for the fields of a find that MongoDB copies: null does not leave them out, and a wrong type has another message.
func (a *Args) owned(key string) bson.Doc {
	v := a.Value(key)
	switch v.Type {
	case bson.TypeMissing:
		return nil
	case bson.TypeObject:
		return v.Doc()
	}
	a.Fail(mongoerr.New(mongoerr.TypeMismatch, "Expected field %sto be of type object", key).Unparsed())
	return nil
}

// Array reads an optional array; nil when absent.
func (a *Args) Array(key string) bson.Doc {
	v, ok := a.typed(key, bson.TypeArray)
	if !ok {
		return nil
	}
	return v.Doc()
}

// String reads an optional string.
func (a *Args) String(key string) (s string, ok bool) {
	v, ok := a.typed(key, bson.TypeString)
	if !ok {
		return "", false
	}
	return v.Str(), true
}

// Bool reads an optional strict bool.
func (a *Args) Bool(key string, def bool) bool {
	v, ok := a.typed(key, bson.TypeBool)
	if !ok {
		return def
	}
	return v.Bool()
}

// SafeBool reads an optional bool that may be given as a number.
func (a *Args) SafeBool(key string, def bool) bool {
	v, ok := a.typed(key, bson.TypeBool, bson.TypeInt64, bson.TypeInt32, bson.TypeDecimal, bson.TypeDouble)
	if !ok {
		return def
	}
	return v.Truthy()
}

// Limit reads an optional number that must not be negative.
func (a *Args) Limit(key string) (n int64, ok bool) { return a.IntIn(key, 0, math.MaxInt64) }

// Collection reads the command's own field, which names a collection of db.
func (a *Args) Collection(db string) namespace.NS {
	key, _ := a.first()
	v := a.Value(key)
	if v.Type != bson.TypeString && v.Type != bson.TypeSymbol {
		a.Fail(mongoerr.New(mongoerr.InvalidNamespace, "collection name has invalid type %s", v.Type).Unparsed())
		return namespace.NS{DB: db}
	}
	return a.asKept(namespace.NS{DB: db, Coll: a.names.of(v.Str())})
}

// asKept is what a command on ns is about.
func (a *Args) asKept(ns namespace.NS) namespace.NS {
	if a.kept == nil {
		return ns
	}
	return a.kept(ns)
}

// Required makes it an error that a field is absent.
func (a *Args) Required(keys ...string) {
	for _, k := range keys {
		if !a.Has(k) {
			a.Fail(mongoerr.New(40414, "BSON field '%s.%s' is missing but a required field", a.path, k).Unparsed())
		}
	}
}

// Done returns the first error: one met while reading, a duplicate field, or a field that nobody read.
func (a *Args) Done() error {
	if a.err != nil {
		return a.err
	}
	unlike := bits.OnesCount64(a.present) == len(a.fields)
	for i := range a.fields {
		f := &a.fields[i]
		if !unlike && a.repeats(i) {
			return mongoerr.New(40413, "BSON field '%s.%s' is a duplicate field", a.path, f.key).Unparsed()
		}
		if !f.used {
			return mongoerr.New(40415, "BSON field '%s.%s' is an unknown field.", a.path, f.key).Unparsed()
		}
	}
	return nil
}

// repeats says whether field i has the name of one before it.
func (a *Args) repeats(i int) bool {
	for j := range a.fields[:i] {
		if a.fields[j].key == a.fields[i].key {
			return true
		}
	}
	return false
}

// number reads an optional number.
func (a *Args) number(key string) (f float64, ok bool) {
	v, ok := a.typed(key, bson.TypeInt64, bson.TypeInt32, bson.TypeDecimal, bson.TypeDouble)
	if !ok {
		return 0, false
	}
	return v.AsDouble(), true
}

func clampInt32(n int64) int32 { return int32(min(max(n, math.MinInt32), math.MaxInt32)) }
