package command

import (
	"math"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// indexChange is what collMod's "index" asks for.
type indexChange struct {
	name string
	key  bson.Doc // nil when the index is given by name

	given                                 map[string]bool
	expire                                bson.Value
	hidden, unique, prepareUnique, forced bool
	hideExpired                           bool

	alone bool // nothing else is to be modified beside the one option
}

// modifications are the options of collMod that modify something beside an index. Those of capped collections do not count for MongoDB.
var modifications = [...]string{"validator", "validationLevel", "validationAction", "changeStreamPreAndPostImages", "expireAfterSeconds",
	"ttlPaused", "expirationEvents"}

func (c *indexChange) has(option string) bool { return c.given[option] }

func (op *Op) parseIndexChange(a *Args, doc bson.Doc) *indexChange {
	i := NewArgs("collMod.index", doc)
	c := &indexChange{given: map[string]bool{}}
	name, byName := i.String("name")
	c.name = strings.Clone(name)
	c.key = i.Doc("keyPattern")
	if v, ok := i.typed("expireAfterSeconds", bson.TypeInt64, bson.TypeInt32, bson.TypeDecimal, bson.TypeDouble); ok {
		c.expire = v
	}
	c.hidden = i.SafeBool("hidden", false)
	c.unique = i.SafeBool("unique", false)
	c.prepareUnique = i.SafeBool("prepareUnique", false)
	c.forced = i.SafeBool("forceNonUnique", false)
	c.hideExpired = i.Bool("hideExpired", false)
	for _, option := range [...]string{"expireAfterSeconds", "hidden", "unique", "prepareUnique", "forceNonUnique", "hideExpired"} {
		if i.Has(option) {
			c.given[option] = true
		}
	}
	if op.APIStrict && !i.peek("prepareUnique").IsMissing() {
		i.Fail(notStable("collMod.index.prepareUnique"))
	}
	c.alone = len(c.given) == 1 && !slices.ContainsFunc(modifications[:], a.Has)
	switch err := i.Done(); {
	case err != nil:
		a.Fail(err)
	case byName && c.key != nil:
		a.Fail(invalidOptions("Cannot specify both key pattern and name."))
	case !byName && c.key == nil:
		a.Fail(invalidOptions("Must specify either index name or key pattern."))
	case len(c.given) == 0:
		a.Fail(invalidOptions("no expireAfterSeconds, hidden, unique, or prepareUnique field"))
	case c.has("unique") && c.has("forceNonUnique"):
		a.Fail(invalidOptions("collMod does not support 'unique' and 'forceNonUnique' options at the same time"))
	}
	return c
}

// find is the index that is meant.
func (c *indexChange) find(coll *catalog.Collection) (*index.Definition, error) {
	if c.has("hidden") && c.meansRecords(coll) {
		return nil, mongoerr.New(6011800, "The 'hidden' option is not supported for a clusteredIndex")
	}
	if c.key == nil {
		d := coll.Index(c.name)
		if d == nil {
			return nil, mongoerr.New(mongoerr.IndexNotFound, "cannot find index %s for ns %s", c.name, coll.NS)
		}
		return d, nil
	}
	found := index.WithKey(coll.Indexes, c.key)
	switch {
	case len(found) == 0:
		return nil, mongoerr.New(mongoerr.IndexNotFound, "cannot find index %s for ns %s", c.key, coll.NS)
	case len(found) > 1:
		return nil, mongoerr.New(mongoerr.AmbiguousIndexKeyPattern, "index keyPattern %s matches %d indexes, must use index name. Conflicting indexes:%s, %s",
			c.key, len(found), found[0].Spec, found[1].Spec)
	}
	return found[0], nil
}

// meansRecords says whether not an index is meant, but the order of a clustered collection.
func (c *indexChange) meansRecords(coll *catalog.Collection) bool {
	if c.key != nil {
		return ordersRecords(coll, c.key)
	}
	return coll.IsClustered() && c.name == coll.Options.Clustered.Name
}

// indexChanges are the options of d that become others, and what the reply tells of them.
func (op *Op) indexChanges(coll *catalog.Collection, d *index.Definition, c *indexChange, reply *bson.Builder) (changes []index.Change, err error) {
	set := func(option string, v bson.Value) { changes = append(changes, index.Change{Option: option, Value: v}) }
	if c.has("expireAfterSeconds") {
		n, err := op.newTTL(coll, d, c.expire)
		if err != nil {
			return nil, err
		}
		if d.TTL {
			reply.Int64("expireAfterSeconds_old", int64(d.ExpireAfterSeconds))
		}
		reply.Int64("expireAfterSeconds_new", int64(n))
		if !d.TTL || d.ExpireAfterSeconds != n {
			set("expireAfterSeconds", bson.Int32(n))
		}
	}
	if c.has("hideExpired") && c.hideExpired != d.HideExpired {
		if !d.TTL && !c.has("expireAfterSeconds") {
			return nil, invalidOptions("hideExpired is only for TTL indexes")
		}
		flag(reply, set, "hideExpired", c.hideExpired)
	}
	if c.has("hidden") {
		if err := checkHidable(coll, d); err != nil {
			return nil, err
		}
		if c.hidden != d.Hidden {
			flag(reply, set, "hidden", c.hidden)
		}
	}
	if err := uniqueChanges(d, c, reply, set); err != nil {
		return nil, err
	}
	return changes, prepareChanges(d, c, reply, set)
}

// flag changes an option that is a bool and tells of it.
func flag(reply *bson.Builder, set func(string, bson.Value), option string, on bool) {
	reply.Bool(option+"_old", !on).Bool(option+"_new", on)
	setFlag(set, option, on)
}

func setFlag(set func(string, bson.Value), option string, on bool) {
	if on {
		set(option, bson.True)
	} else {
		set(option, bson.Missing)
	}
}

// newTTL is the TTL that collMod gives an index: cut to a whole number and, where it is too large, to the largest.
func (op *Op) newTTL(coll *catalog.Collection, d *index.Definition, v bson.Value) (int32, error) {
	if v.IsNaN() && !op.flag("ttlCollModNaNIsZero") {
		return 0, invalidOptions("TTL index 'expireAfterSeconds' option must not be NaN")
	}
	n := min(index.WholeSeconds(v), math.MaxInt32)
	onTS := len(d.Fields) == 1 && d.Fields[0].Path == index.TSField && (d.Kind == index.Ordered || d.Kind == index.Deadline)
	switch {
	case onTS && n == 0:
		return 0, invalidOptions("TTL index 'expireAfterSeconds' option on '%s' must be positive, or -1 for no default", index.TSField)
	case n < 0 && !(onTS && n == -1):
		return 0, invalidOptions("TTL index 'expireAfterSeconds' option cannot be less than 0")
	case d.TTL:
		return int32(n), nil
	case d.IsID():
		return 0, invalidOptions("the _id field does not support TTL indexes")
	case len(d.Fields) != 1 || d.Kind == index.Text || d.Kind == index.Wildcard:
		return 0, invalidOptions("TTL indexes are single-field indexes, compound indexes do not support TTL")
	case coll.Options.Capped && !op.flag("ttlOnCapped") && !op.applies():
		return 0, invalidOptions("Cannot make an index of a capped collection a TTL index")
	}
	return int32(n), nil
}

func checkHidable(coll *catalog.Collection, d *index.Definition) error {
	switch {
	case d.IsID():
		return mongoerr.New(mongoerr.BadValue, "can't hide _id index")
	case coll.NS.IsSystem():
		return mongoerr.New(mongoerr.BadValue, "Can't hide index on system collection")
	}
	return nil
}

func uniqueChanges(d *index.Definition, c *indexChange, reply *bson.Builder, set func(string, bson.Value)) error {
	if c.has("unique") {
		switch {
		case !c.unique:
			return mongoerr.New(mongoerr.BadValue, "Cannot make index non-unique")
		case d.Unique || d.IsID():
		case !d.PrepareUnique:
			return invalidOptions("Cannot make index unique with 'prepareUnique=false'. Run collMod to set it first.")
		default:
			reply.Bool("unique_new", true)
			set("unique", bson.True)
			set("prepareUnique", bson.Missing)
		}
	}
	if c.has("forceNonUnique") {
		switch {
		case !c.forced:
			return mongoerr.New(mongoerr.BadValue, "'forceNonUnique: false' is not supported")
		case d.Unique:
			reply.Bool("forceNonUnique_new", true)
			set("unique", bson.Missing)
		}
	}
	return nil
}

func prepareChanges(d *index.Definition, c *indexChange, reply *bson.Builder, set func(string, bson.Value)) error {
	if !c.has("prepareUnique") || c.prepareUnique == d.PrepareUnique || d.Unique || d.IsID() {
		return nil
	}
	switch {
	case !c.alone:
		return invalidOptions("prepareUnique cannot be combined with any other modification.")
	case d.Kind != index.Ordered && d.Kind != index.Deadline:
		return invalidOptions("Cannot set prepareUnique on an index of type '%s'", d.Kind)
	}
	flag(reply, set, "prepareUnique", c.prepareUnique)
	return nil
}

// checkUniqueConversion looks for documents in the way of an index that is to become unique.
func (op *Op) checkUniqueConversion(r *collModRequest) error {
	coll := op.Query.Store.Catalog().Collection(r.ns)
	if coll == nil || coll.IsView() {
		return nil
	}
	d, err := r.index.find(coll)
	if err != nil {
		return err
	}
	if d.Unique || d.IsID() || !d.PrepareUnique || d.Kind != index.Ordered {
		if r.dryRun && !d.Unique && !d.IsID() {
			return invalidOptions("Cannot make index unique with 'prepareUnique=false'. Run collMod to set it first.")
		}
		return nil
	}
	groups, err := op.Query.Duplicates(op.Ctx, r.ns, d)
	if err != nil {
		return err
	}
	if len(groups) > 0 {
		return mongoerr.New(mongoerr.CannotConvertIndexToUnique,
			"Cannot convert the index to unique. Please resolve conflicting documents before running collMod again.").WithExtra(violations(groups))
	}
	return nil
}

func violations(groups [][]bson.Value) bson.Doc {
	b := bson.Build().Array("violations")
	for i, ids := range groups {
		b.Object(bson.IndexKey(i)).Value("ids", bson.ArrayOf(ids...)).End()
	}
	return b.End().Doc()
}
