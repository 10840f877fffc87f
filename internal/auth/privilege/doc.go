package privilege

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Parse reads {resource: {…}, actions: […]}; path is what errors call it. Actions that nobody knows are in unknown and not in the
// privilege: a server of another version may have stored them.
func Parse(path string, d bson.Doc) (p Privilege, unknown []string, err error) {
	resource, actions := d.Lookup("resource"), d.Lookup("actions")
	switch {
	case resource.IsMissing():
		return p, nil, mongoerr.New(40414, "BSON field '%s.resource' is missing but a required field", path)
	case resource.Type != bson.TypeObject:
		return p, nil, wrongType(path+".resource", resource, "object")
	case actions.IsMissing():
		return p, nil, mongoerr.New(40414, "BSON field '%s.actions' is missing but a required field", path)
	case actions.Type != bson.TypeArray:
		return p, nil, wrongType(path+".actions", actions, "array")
	}
	if p.Resource, err = parseResource(path+".resource", resource.Doc()); err != nil {
		return p, nil, err
	}
	for it := actions.Doc().Iter(); it.Next(); {
		if it.Value().Type != bson.TypeString {
			return p, nil, wrongType(path+".actions."+it.Key(), it.Value(), "string")
		}
		if a, ok := ActionNamed(it.Value().Str()); ok {
			p.Actions.Add(a)
		} else {
			unknown = append(unknown, strings.Clone(it.Value().Str()))
		}
	}
	if p.Actions.IsEmpty() && len(unknown) == 0 {
		return p, nil, mongoerr.New(mongoerr.FailedToParse, "missing actions field")
	}
	return p, unknown, nil
}

func wrongType(path string, v bson.Value, want string) error {
	return mongoerr.New(mongoerr.TypeMismatch, "BSON field '%s' is the wrong type '%s', expected type '%s'", path, v.Type, want)
}

// parseResource reads the pattern; fields that nobody knows are passed over.
func parseResource(path string, d bson.Doc) (r Resource, err error) {
	all, any := d.Lookup("cluster"), d.Lookup("anyResource")
	switch {
	case !all.IsMissing() && all.Type != bson.TypeBool:
		return r, wrongType(path+".cluster", all, "bool")
	case !any.IsMissing() && any.Type != bson.TypeBool:
		return r, wrongType(path+".anyResource", any, "bool")
	}
	var names [3]string
	var given [3]bool
	for i, key := range []string{"db", "collection", "system_buckets"} {
		v := d.Lookup(key)
		if v.IsMissing() {
			continue
		}
		if v.Type != bson.TypeString {
			return r, wrongType(path+"."+key, v, "string")
		}
		names[i], given[i] = strings.Clone(v.Str()), true
	}
	db, coll, buckets := given[0], given[1], given[2]
	namesOne := db || coll || buckets
	switch {
	case all.Truthy() && !any.Truthy() && !namesOne:
		return Cluster(), nil
	case any.Truthy() && !all.Truthy() && !namesOne:
		return Anything(), nil
	case !all.IsMissing() || !any.IsMissing() || coll && buckets || !namesOne:
		return r, mongoerr.New(mongoerr.FailedToParse, "resource must have exactly db and collection set, or have only cluster set  or have only anyResource set")
	case buckets:
		return Buckets(names[0], names[2]), nil
	case !db || !coll:
		return r, mongoerr.New(mongoerr.FailedToParse, "resource must set both db and collection or neither, but not exactly one.")
	}
	return Collections(names[0], names[1]), nil
}

// Doc is the privilege as MongoDB shows and stores it.
func (p Privilege) Doc() bson.Doc {
	return bson.Build().Document("resource", p.Resource.Doc()).Strings("actions", p.Actions.Names()).Doc()
}

// Doc is the pattern as MongoDB shows and stores it.
func (r Resource) Doc() bson.Doc {
	b := bson.Build()
	switch r.kind {
	case cluster:
		b.Bool("cluster", true)
	case anyResource:
		b.Bool("anyResource", true)
	case anyBuckets:
		b.String("system_buckets", "")
	case bucketsInDB:
		b.String("db", r.db).String("system_buckets", "")
	case bucketsNamed:
		b.String("system_buckets", r.coll)
	case exactBuckets:
		b.String("db", r.db).String("system_buckets", r.coll)
	default:
		b.String("db", r.db).String("collection", r.coll)
	}
	return b.Doc()
}
