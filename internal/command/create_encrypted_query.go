package command

import (
	"math"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// maxQueryTypes is how many kinds of query an encrypted field may have.
const maxQueryTypes = 2

// textQueries are the kinds of query on parts of a text.
var textQueries = map[string]bool{"suffixPreview": true, "prefixPreview": true, "substringPreview": true}

// checkEncryptedQueries looks at which queries an encrypted field of the type kind is for: one, or an array of them.
func checkEncryptedQueries(v bson.Value, kind string) error {
	if v.Type == bson.TypeObject {
		return checkEncryptedQuery(v.Doc(), kind)
	}
	names := map[string]bool{}
	n := 0
	for it := v.Doc().Iter(); it.Next(); n++ {
		q := it.Value()
		if q.Type != bson.TypeObject {
			return mongoerr.New(mongoerr.TypeMismatch, "BSON field 'create.encryptedFields.fields.queries.%s' is the wrong type '%s', expected type 'object'", it.Key(), q.Type)
		}
		if err := checkEncryptedQuery(q.Doc(), kind); err != nil {
			return err
		}
		if name := q.Doc().Lookup("queryType"); name.Type == bson.TypeString {
			names[string([]byte(name.Str()))] = true
		}
	}
	switch {
	case n == 0:
		return mongoerr.New(9783412, "At least one query type should be defined per field")
	case n > maxQueryTypes:
		return mongoerr.New(9783413, "Cannot have more than %d query types on a single field", maxQueryTypes)
	case n == maxQueryTypes && !(names["suffixPreview"] && names["prefixPreview"]):
		return mongoerr.New(9783414, "Multiple query types may only include the suffixPreview and prefixPreview query types")
	}
	return nil
}

func checkEncryptedQuery(doc bson.Doc, kind string) error {
	a := NewArgs("create.encryptedFields.fields.queries", doc)
	a.Required("queryType")
	name, _ := a.enum("queryType", "equality", "range", "suffixPreview", "prefixPreview", "substringPreview")
	low, high := a.Value("min"), a.Value("max")
	numbers := map[string]int64{}
	for _, n := range queryNumbers {
		if v, ok := a.whole(n.key, n.low, n.most()); ok {
			numbers[n.key] = v
		}
	}
	a.Bool("caseSensitive", false)
	a.Bool("diacriticSensitive", false)
	if err := a.Done(); err != nil {
		return err
	}
	switch {
	case textQueries[name]:
		return checkTextQuery(a, kind, numbers["strMinQueryLength"], numbers["strMaxQueryLength"])
	case name == "range":
		if trim := numbers["trimFactor"]; trim > 63 {
			return mongoerr.New(8574000, "Trim factor must be less than the number of bits of the domain, but it is %d", trim)
		}
		return checkRangeQuery(kind, low, high)
	}
	return nil
}

// queryNumber is a number that says how a field is to be looked for. long says as which type it is stored, whatever the client has sent.
type queryNumber struct {
	key  string
	low  int64
	long bool
}

var queryNumbers = [...]queryNumber{{"contention", 0, true}, {"sparsity", 1, true}, {"trimFactor", 0, false}, {"precision", 0, false},
	{"strMaxLength", 1, false}, {"strMinQueryLength", 1, false}, {"strMaxQueryLength", 1, false}}

func (n queryNumber) most() int64 {
	if n.long {
		return math.MaxInt64
	}
	return math.MaxInt32
}

// storedFields is the array of encrypted fields as it is stored: the numbers of their queries have types of their own.
func storedFields(fields bson.Value) bson.Value {
	var all []bson.Value
	for it := fields.Doc().Iter(); it.Next(); {
		all = append(all, replaced(it.Value().Doc(), "queries", storedQueries))
	}
	return bson.ArrayOf(all...)
}

// replaced is a document with what f makes of one of its fields.
func replaced(d bson.Doc, key string, f func(bson.Value) bson.Value) bson.Value {
	b := bson.Build()
	for it := d.Iter(); it.Next(); {
		if v := it.Value(); it.Key() == key {
			b.Value(key, f(v))
		} else {
			b.Value(it.Key(), v)
		}
	}
	return b.Doc().Value()
}

func storedQueries(v bson.Value) bson.Value {
	switch v.Type {
	case bson.TypeObject:
		return storedQuery(v.Doc())
	case bson.TypeArray:
		var all []bson.Value
		for it := v.Doc().Iter(); it.Next(); {
			all = append(all, storedQuery(it.Value().Doc()))
		}
		return bson.ArrayOf(all...)
	}
	return v
}

func storedQuery(d bson.Doc) bson.Value {
	for _, n := range queryNumbers {
		d = replaced(d, n.key, func(v bson.Value) bson.Value {
			whole, exact := v.AsInt64()
			switch {
			case !exact:
				return v
			case n.long:
				return bson.Int64(whole)
			}
			return bson.Int32(int32(whole))
		}).Doc()
	}
	return d.Value()
}

// whole reads an optional number that has to be whole, at least low and at most high.
func (a *Args) whole(key string, low, high int64) (n int64, ok bool) {
	v, ok := a.typed(key, bson.TypeInt64, bson.TypeInt32, bson.TypeDecimal, bson.TypeDouble)
	if !ok {
		return 0, false
	}
	if _, exact := v.AsInt64(); !exact {
		a.Fail(mongoerr.New(mongoerr.FailedToParse, "Expected an integer, but found a fractional value: %s: %s", key, v))
		return 0, false
	}
	return a.IntIn(key, low, high)
}

func checkTextQuery(a *Args, kind string, shortest, longest int64) error {
	if kind != "string" {
		return mongoerr.New(9783400, "Type '%s' is not a supported type for substring, suffix or prefix queries", kind)
	}
	for i, key := range [...]string{"strMinQueryLength", "strMaxQueryLength", "caseSensitive", "diacriticSensitive"} {
		if !a.Has(key) {
			return mongoerr.New(9783402+mongoerr.Code(i), "%s parameter is required for substring, suffix and prefix queries", key)
		}
	}
	if shortest > longest {
		return mongoerr.New(9783406, "strMinQueryLength parameter must not be greater than strMaxQueryLength")
	}
	return nil
}

func checkRangeQuery(kind string, low, high bson.Value) error {
	t, _ := bson.TypeNamed(kind)
	switch t {
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal, bson.TypeDate:
	default:
		return mongoerr.New(6775201, "Type '%s' is not a supported range indexed type", kind)
	}
	for _, v := range [...]bson.Value{low, high} {
		if !v.IsNullish() && v.Type != t {
			return mongoerr.New(7018200, "Range bounds must be of the type of the field, '%s', but one is %s", kind, v.Type)
		}
	}
	if !low.IsNullish() && !high.IsNullish() && bson.Compare(low, high) >= 0 {
		return mongoerr.New(6720005, "Min must be less than max for the range of an encrypted field")
	}
	return nil
}
