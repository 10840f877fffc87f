package command

import (
	"math"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// checkClusteredShape looks at the types of clusteredIndex: a document, or a bool or number as old servers wrote it.
func checkClusteredShape(a *Args, r *createRequest) {
	v := r.clustered
	switch {
	case v.IsMissing():
	case v.Type == bson.TypeBool, v.IsNumber():
	case v.Type == bson.TypeObject:
		readClustered(a, v.Doc())
	default:
		a.Fail(a.wrongType("clusteredIndex", v.Type, []bson.Type{bson.TypeBool, bson.TypeObject}))
	}
}

func readClustered(a *Args, doc bson.Doc) {
	c := NewArgs("create.clusteredIndex", doc)
	c.Required("key", "unique")
	c.Doc("key")
	c.SafeBool("unique", false)
	c.String("name")
	c.Int("v")
	if !c.Value("hidden").IsMissing() {
		c.Fail(mongoerr.New(6011800, "The 'clusteredIndex' option does not support hidden indexes"))
	}
	if err := c.Done(); err != nil {
		a.Fail(err)
	}
}

// checkCreateClustered applies the rules of clustered collections.
func checkCreateClustered(r *createRequest) error {
	v := r.clustered
	if v.IsMissing() {
		return nil
	}
	switch {
	case r.given("capped") && r.capped:
		return mongoerr.New(6049200, "The 'clusteredIndex' option is not supported with 'capped'")
	case r.given("max"):
		return mongoerr.New(6049204, "The 'max' option is not supported for clustered collections")
	case r.isView:
		return mongoerr.New(6026500, "The 'clusteredIndex' option is not supported with views")
	case r.timeseries != nil:
		return invalidOptions("The 'clusteredIndex' option is not supported with 'timeseries'")
	}
	if v.Type != bson.TypeObject {
		if v.Truthy() {
			return mongoerr.New(5979703, "The 'clusteredIndex' option must be a document for collection %s", r.ns)
		}
		r.clustered = bson.Missing
		return nil
	}
	return r.setClustered(v.Doc())
}

func (r *createRequest) setClustered(doc bson.Doc) error {
	key := doc.Lookup("key").Doc()
	if id := key.Lookup("_id"); key.Count() != 1 || !id.IsNumber() || id.AsDouble() != 1 {
		return mongoerr.New(mongoerr.InvalidIndexSpecificationOption, "The clusteredIndex key must be {_id: 1}, but got %s", key)
	}
	if !doc.Lookup("unique").Truthy() {
		return mongoerr.New(5979700, "The clusteredIndex option requires unique: true to be specified")
	}
	version := int64(2)
	if v := doc.Lookup("v"); v.IsNumber() {
		version = index.WholeSeconds(v)
	}
	if version != 2 {
		return mongoerr.New(5979704, "Invalid index version %d for clusteredIndex, it must be 2", version)
	}
	name := "_id_"
	if v := doc.Lookup("name"); v.Type == bson.TypeString {
		name = v.Str()
	}
	r.options["clusteredIndex"] = bson.Build().Int32("v", 2).Document("key", key).String("name", name).Bool("unique", true).Doc().Value()
	return nil
}

// checkCreateExpire reads the TTL of the collection as a whole.
func (op *Op) checkCreateExpire(r *createRequest) error {
	if r.expire.IsMissing() {
		return nil
	}
	if r.timeseries == nil && r.clustered.IsMissing() {
		return invalidOptions("'expireAfterSeconds' is only supported on time-series collections or when the 'clusteredIndex' option is specified")
	}
	n, err := op.wholeCollectionTTL(r.expire)
	if err != nil {
		return err
	}
	r.options["expireAfterSeconds"] = bson.Int64(n)
	return nil
}

// wholeCollectionTTL is the value of an expireAfterSeconds that is a collection's, which may not reach back before 1970.
func (op *Op) wholeCollectionTTL(v bson.Value) (int64, error) {
	if v.IsNaN() && !op.flag("ttlCollModNaNIsZero") && op.Command.Name == "collMod" {
		return 0, invalidOptions("TTL index 'expireAfterSeconds' option must not be NaN")
	}
	n := index.WholeSeconds(v)
	switch {
	case n < 0:
		return 0, invalidOptions("TTL index 'expireAfterSeconds' option cannot be less than 0")
	case n > math.MaxInt64/1000:
		return 0, invalidOptions("TTL index 'expireAfterSeconds' option must be within an acceptable range, try a different number than %s", v)
	case n > op.Now/1000:
		return 0, invalidOptions("TTL index 'expireAfterSeconds' option must be less than the current time. Value: %d", n)
	}
	return n, nil
}

// flag is a server parameter that is a bool; false where there is none of that name.
func (s *Server) flag(name string) bool {
	p := s.Params.Lookup(name)
	return p != nil && p.Get().Truthy()
}
