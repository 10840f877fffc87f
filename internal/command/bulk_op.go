package command

import (
	"math"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// bulkKind is what an op of a bulkWrite does.
type bulkKind uint8

const (
	bulkInsert bulkKind = iota
	bulkUpdate
	bulkDelete
)

// bulkOp is one op of a bulkWrite: of an insert the document to add, of others the whole op.
type bulkOp struct {
	kind   bulkKind
	target int64
	doc    bson.Doc
}

// parseBulkOp reads what the op is and where it goes, and an insert entirely. a is room to work in.
func parseBulkOp(a *Args, d bson.Doc) (o bulkOp, err error) {
	a.reset("bulkWrite.ops", d, nil)
	o.doc = d
	kind := d.FirstKey()
	switch kind {
	case "insert":
		o.kind = bulkInsert
		a.Ignore("insert")
		o.doc = a.Doc("document")
		a.Required("insert", "document")
	case "update":
		o.kind = bulkUpdate
	case "delete":
		o.kind = bulkDelete
	default:
		return o, mongoerr.New(40415, "BSON field 'bulkWrite.%s' is an unknown field.", kind)
	}
	o.target, _ = a.IntIn(kind, 0, math.MaxInt32)
	a.Required(kind)
	if o.kind == bulkInsert {
		return o, a.Done()
	}
	return o, a.Err()
}

func (b *bulk) update(o bulkOp) (updateStatement, error) {
	a := NewArgs("bulkWrite.ops", o.doc)
	s := updateStatement{call: b.op.change(), source: o.doc}
	a.Ignore("update", "sampleId", "allowShardKeyUpdatesWithoutFullShardKeyInQuery")
	s.NS = b.targets[o.target].ns
	s.Filter = a.Doc("filter")
	s.Change = a.Value("updateMods")
	s.Sort = a.Doc("sort")
	s.Multi = a.Bool("multi", false)
	s.Upsert = a.Bool("upsert", false)
	supplied := a.SafeBool("upsertSupplied", false)
	s.Constants = a.Doc("constants")
	s.Hint = hint(a)
	s.ArrayFilters = arrayFilters(a)
	s.refused = collateStatement(a, "collation", s.call)
	s.call.Let, s.call.Bypass, s.call.KeepTimestamps = b.let, b.bypass, b.keepTimestamps
	s.call.Expected = b.targets[o.target].expected
	a.Required("filter")
	switch s.Change.Type {
	case bson.TypeObject:
	case bson.TypeArray:
		if !objectsOnly(s.Change.Doc()) {
			a.Fail(notStages())
		}
	case bson.TypeMissing:
		a.Fail(mongoerr.New(40414, "BSON field 'bulkWrite.ops.updateMods' is missing but a required field").Unparsed())
	default:
		a.Fail(noChange())
	}
	s.supply(supplied)
	return s, a.Done()
}

func (b *bulk) delete(o bulkOp) (deleteStatement, error) {
	a := NewArgs("bulkWrite.ops", o.doc)
	s := deleteStatement{call: b.op.change(), source: o.doc}
	a.Ignore("delete", "sampleId")
	s.NS = b.targets[o.target].ns
	s.Filter = a.Doc("filter")
	s.Multi = a.Bool("multi", false)
	s.Hint = hint(a)
	s.refused = collateStatement(a, "collation", s.call)
	s.call.Let, s.call.Expected = b.let, b.targets[o.target].expected
	a.Required("filter")
	return s, a.Done()
}
