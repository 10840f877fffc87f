package command

import (
	"math"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/replset"
)

// WriteConcern is what a write waits for.
type WriteConcern struct {
	// Buffered: the client does not wait for the journal (j: false, or w: 0).
	Buffered bool
	// Unacknowledged: w is 0.
	Unacknowledged bool
	Given          bool
	// unsatisfied is why a replica set cannot give what is asked for; the write is done all the same.
	unsatisfied *mongoerr.Error
	// enough says whether enough members have a write, or why that is never so, by the configuration of the moment; nil where a majority is enough.
	// timeout is how long either is waited for, 0 for as long as need be, and shown is the write concern as replies show it. patience is that of the
	// operation's commits, once there are any.
	enough   func(has func(member int64) bool) (bool, *mongoerr.Error)
	timeout  time.Duration
	shown    bson.Doc
	patience *kv.Patience
}

// concernFields are the fields of a write concern as they came.
type concernFields struct{ w, j, fsync, timeout bson.Value }

// maxMembers is how many members a replica set may have.
const maxMembers = 50

func (op *Op) readWriteConcern(a *Args) {
	v := a.Value("writeConcern")
	ordinary := op.defaultConcern()
	if v.IsNullish() {
		if ordinary != nil {
			op.WriteConcern, _ = ordinary.fields.concern(op.Replica, "customDefault") // which was looked at when it was set
		}
		return
	}
	if v.Type != bson.TypeObject {
		a.Fail(a.wrongType("writeConcern", v.Type, []bson.Type{bson.TypeObject}))
		return
	}
	fields, err := parseConcern(NewArgs("writeConcern", v.Doc()))
	if err == nil && ordinary != nil && fields.w.IsMissing() {
		fields.w = ordinary.fields.w
	}
	if err == nil && !op.Command.WriteConcern { // whether or not it could be satisfied
		err = mongoerr.New(mongoerr.InvalidOptions, "Command %s does not support { writeConcern: %s }", op.Command.Name, v)
	}
	var wc WriteConcern
	if err == nil {
		wc, err = fields.concern(op.Replica, "clientSupplied")
	}
	if err != nil {
		a.Fail(err)
		return
	}
	wc.Given = true
	op.WriteConcern = wc
}

// parseConcern reads the fields of a write concern.
func parseConcern(a *Args) (f concernFields, err error) {
	f = concernFields{a.Value("w"), a.Value("j"), a.Value("fsync"), a.Value("wtimeout")}
	a.provenance()
	a.Ignore("getLastError")
	if err := a.Done(); err != nil {
		return f, err
	}
	for _, flag := range [...]struct {
		name string
		v    bson.Value
	}{{"j", f.j}, {"fsync", f.fsync}} {
		if !flag.v.IsNullish() && flag.v.Type != bson.TypeBool && !flag.v.IsNumber() {
			return f, a.wrongType(flag.name, flag.v.Type, []bson.Type{bson.TypeBool, bson.TypeInt64, bson.TypeInt32, bson.TypeDecimal, bson.TypeDouble})
		}
	}
	if f.timeout.IsNumber() && f.timeout.TruncInt64() > math.MaxInt32 {
		return f, mongoerr.New(mongoerr.FailedToParse, "wtimeout must be a 32-bit integer")
	}
	if !f.j.IsNullish() && !f.fsync.IsNullish() && f.j.Truthy() && f.fsync.Truthy() {
		return f, mongoerr.New(mongoerr.FailedToParse, "fsync and j options cannot be used together")
	}
	return f, nil
}

// concern is what the fields ask of a member of a replica set, nil for a standalone. source says where they come from.
func (f *concernFields) concern(member *replset.Node, source string) (wc WriteConcern, err error) {
	wc.Buffered = !f.j.IsNullish() && !f.j.Truthy()
	if err := f.checkW(member != nil); err != nil {
		return wc, err
	}
	if f.w.IsNumber() && index.WholeSeconds(f.w) == 0 {
		wc.Buffered, wc.Unacknowledged = !f.j.Truthy(), !f.j.Truthy()
	}
	if member == nil {
		return wc, nil
	}
	v := member.View()
	if e := f.unsatisfied(v, source); e != nil {
		wc.unsatisfied = e
	} else if v.Config != nil && len(v.Config.Members) > 1 {
		if f.timeout.IsNumber() {
			wc.timeout = time.Duration(max(f.timeout.TruncInt64(), 0)) * time.Millisecond
		}
		if wc.enough = f.enough(member, source); wc.enough != nil || wc.timeout > 0 {
			wc.shown = f.document(source)
		}
	}
	return wc, nil
}

// enough is what WriteConcern.enough says for the fields. Another configuration may come meanwhile, with other members, tags or modes.
func (f *concernFields) enough(member *replset.Node, source string) func(has func(int64) bool) (bool, *mongoerr.Error) {
	if _, isMode := f.mode(); !isMode && f.w.Type != bson.TypeObject && (!f.w.IsNumber() || index.WholeSeconds(f.w) <= 1) {
		return nil
	}
	kept := &concernFields{w: f.w.Clone(), j: f.j.Clone(), fsync: f.fsync.Clone(), timeout: f.timeout.Clone()}
	return func(has func(int64) bool) (bool, *mongoerr.Error) {
		v := member.View()
		if v.Config == nil {
			return false, nil
		}
		if e := kept.unsatisfied(v, source); e != nil {
			return false, e
		}
		return kept.isEnough(v.Config, has), nil
	}
}

// isEnough says whether those members that have a write are enough for the fields.
func (f *concernFields) isEnough(c *replset.Config, has func(int64) bool) bool {
	if f.w.IsNumber() {
		n := int64(0)
		for i := range c.Members {
			if has(c.Members[i].ID) {
				n++
			}
		}
		return n >= index.WholeSeconds(f.w)
	}
	for it := f.pattern(c).Iter(); it.Next(); {
		if c.TagValues(it.Key(), has) < it.Value().TruncInt64() {
			return false
		}
	}
	return true
}

// pattern is of how many different values of tags the members have to be; nil where the write concern is about no tags.
func (f *concernFields) pattern(c *replset.Config) bson.Doc {
	if f.w.Type == bson.TypeObject {
		return f.w.Doc()
	}
	if name, isMode := f.mode(); isMode {
		if mode := c.Settings.Modes.Lookup(name); mode.Type == bson.TypeObject {
			return mode.Doc()
		}
	}
	return nil
}

func noSuchMode(name string) error {
	return mongoerr.New(mongoerr.BadValue, "cannot use non-majority 'w' mode \"%s\" when a host is not a member of a replica set", name)
}

// checkW refuses a number of nodes that is none, and on a standalone what it does not have. Tags are taken there: the one node there is
// has none to wait for.
func (f *concernFields) checkW(member bool) error {
	switch w := f.w; {
	case w.IsMissing():
	case w.IsNumber():
		n := index.WholeSeconds(w)
		switch {
		case w.IsNaN() || n < 0 || n > maxMembers:
			return mongoerr.New(mongoerr.FailedToParse, "w has to be a non-negative number and not greater than %d; found: %d", maxMembers, n)
		case n > 1 && !member:
			return mongoerr.New(mongoerr.BadValue, "cannot use 'w' > 1 when a host is not replicated")
		}
	case w.IsNullish():
		if !member {
			return noSuchMode("")
		}
	case w.Type == bson.TypeString:
		if w.Str() != "majority" && !member {
			return noSuchMode(w.Str())
		}
	case w.Type == bson.TypeObject:
		if w.Doc().IsEmpty() {
			return mongoerr.New(mongoerr.FailedToParse, "tagged write concern requires tags")
		}
		for it := w.Doc().Iter(); it.Next(); {
			if !it.Value().IsNumber() {
				return mongoerr.New(mongoerr.FailedToParse, "tags must be a single level document with only number values")
			}
		}
	default:
		return mongoerr.New(mongoerr.FailedToParse, "w has to be a number, string, or object; found: %s", w.Type)
	}
	return nil
}

// mode is the name of the write concern mode that w is, "" for none.
func (f *concernFields) mode() (name string, is bool) {
	switch {
	case f.w.IsMissing() || f.w.IsNumber() || f.w.Type == bson.TypeObject:
		return "", false
	case f.w.Type == bson.TypeString:
		return strings.Clone(f.w.Str()), f.w.Str() != "majority"
	}
	return "", true
}

// unsatisfied is why a set never gives what is asked for, as replies tell it; nil where it may. source says where the write concern comes from.
func (f *concernFields) unsatisfied(v *replset.View, source string) *mongoerr.Error {
	e := f.impossible(v, mongoerr.UnsatisfiableWriteConcern)
	if e == nil {
		return nil
	}
	return e.WithInfo(bson.Build().Document("writeConcern", f.document(source)).Doc())
}

// impossible is why no members of the set can be what w asks for, with the code for too few of them.
func (f *concernFields) impossible(v *replset.View, tooFew mongoerr.Code) *mongoerr.Error {
	name, isMode := f.mode()
	switch {
	case v.Config == nil: // what comes next is not primary
		return nil
	case f.w.IsNumber() && index.WholeSeconds(f.w) > int64(len(v.Config.Members)):
		return mongoerr.New(tooFew, "Not enough data-bearing nodes")
	case isMode && v.Config.Settings.Modes.Lookup(name).Type != bson.TypeObject:
		return unknownMode(name)
	}
	all := func(int64) bool { return true }
	for it := f.pattern(v.Config).Iter(); it.Next(); {
		if it.Value().TruncInt64() > v.Config.TagValues(it.Key(), all) {
			return mongoerr.New(tooFew, "Not enough nodes match write concern mode \"%s\"", name)
		}
	}
	return nil
}

func unknownMode(name string) *mongoerr.Error {
	return mongoerr.New(mongoerr.UnknownReplWriteConcern, "No write concern mode named '%s' found in replica set configuration", name)
}

// document is the write concern as replies show it; source says where it comes from, "" that nobody is told.
func (f *concernFields) document(source string) bson.Doc {
	b := bson.Build()
	switch {
	case f.w.IsMissing():
		b.Int32("w", 1)
	case f.w.IsNumber():
		b.Number("w", index.WholeSeconds(f.w))
	case f.w.IsNullish():
		b.String("w", "")
	default:
		b.Value("w", f.w)
	}
	if !f.j.IsNullish() {
		b.Bool("j", f.j.Truthy())
	}
	timeout := int64(0)
	if f.timeout.IsNumber() {
		timeout = f.timeout.TruncInt64()
	}
	b.Int32("wtimeout", int32(max(timeout, math.MinInt32)))
	if !f.fsync.IsNullish() && f.fsync.Truthy() {
		b.Bool("fsync", true)
	}
	if source != "" {
		b.String("provenance", source)
	}
	return b.Doc()
}
