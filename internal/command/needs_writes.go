package command

import (
	"iter"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/namespace"
)

// documents are those of a field that may come in the body or as a document sequence, without reading the field.
func (op *Op) documents(key string) iter.Seq[bson.Doc] {
	return func(yield func(bson.Doc) bool) {
		for _, s := range op.Sequences {
			if s.Name != key {
				continue
			}
			for d := range s.Docs() {
				if !yield(d) {
					return
				}
			}
		}
		if v := op.Args.peek(key); v.Type == bson.TypeArray {
			for it := v.Doc().Iter(); it.Next(); {
				if it.Value().Type == bson.TypeObject && !yield(it.Value().Doc()) {
					return
				}
			}
		}
	}
}

// needsWrite is what a write's arguments need on its collection.
func needsWrite(op *Op) error {
	return op.permitted(!op.Args.peek("bypassDocumentValidation").Truthy() || op.mayNamed(privilege.BypassDocumentValidation))
}

// needsUpdate is what the arguments of an update need: insert where a statement may insert.
func needsUpdate(op *Op) error {
	if !op.mayNamed(privilege.Insert) {
		for d := range op.documents("updates") {
			if upserts(d) {
				return op.refusal()
			}
		}
	}
	return needsWrite(op)
}

// upserts says whether a statement asks for an upsert, by any of the fields of that name.
func upserts(d bson.Doc) bool {
	for it := d.Iter(); it.Next(); {
		if it.Key() == "upsert" && it.Value().Truthy() {
			return true
		}
	}
	return false
}

func needsFindAndModify(op *Op) error {
	a := op.Args
	ok := true
	if a.peek("remove").Truthy() {
		ok = op.mayNamed(privilege.Remove)
	}
	if !a.peek("update").IsMissing() {
		ok = ok && op.mayNamed(privilege.Update)
	}
	if a.peek("upsert").Truthy() {
		ok = ok && op.mayNamed(privilege.Insert)
	}
	if !ok {
		return op.refusal()
	}
	return needsWrite(op)
}

// needsBulkWrite is what a bulkWrite needs on each collection that one of its operations names. It reads them as the command does: what cannot be read
// is refused there before anything is written.
func needsBulkWrite(op *Op) error {
	var targets []namespace.NS
	for d := range op.documents("nsInfo") {
		t, _ := parseBulkTarget(d, (&Args{}).asKept) // rights are on what is named
		targets = append(targets, t.ns)
	}
	needed := make([]privilege.Actions, len(targets))
	bypass := op.Args.peek("bypassDocumentValidation").Truthy()
	a := &Args{}
	for d := range op.documents("ops") {
		o, err := parseBulkOp(a, d)
		if err != nil || o.target < 0 || o.target >= int64(len(targets)) {
			continue
		}
		switch o.kind {
		case bulkInsert:
			needed[o.target].Add(privilege.Insert)
		case bulkUpdate:
			needed[o.target].Add(privilege.Update)
			if upserts(d) {
				needed[o.target].Add(privilege.Insert)
			}
		case bulkDelete:
			needed[o.target].Add(privilege.Remove)
		}
		if bypass {
			needed[o.target].Add(privilege.BypassDocumentValidation)
		}
	}
	for i, ns := range targets {
		for _, a := range [...]privilege.Action{privilege.Insert, privilege.Update, privilege.Remove, privilege.BypassDocumentValidation} {
			if needed[i].Has(a) && !op.mayOn(ns, a) {
				return op.refusal()
			}
		}
	}
	return nil
}

// needsApplyOps is what each of the operations needs.
func needsApplyOps(op *Op) error {
	array := op.Args.peek(op.Name())
	if array.Type != bson.TypeArray {
		return nil
	}
	for it := array.Doc().Iter(); it.Next(); {
		if it.Value().Type != bson.TypeObject {
			continue
		}
		l, err := readOneLogged(it.Value().Doc())
		if err != nil {
			return nil // as nothing is done where one of them cannot be read
		}
		ok, err := op.mayApply(l)
		if err != nil {
			return err
		}
		if !ok {
			return op.refusal()
		}
	}
	return nil
}

func (op *Op) mayApply(l logged) (bool, error) {
	if l.uuid != nil && !op.May(privilege.Cluster(), privilege.UseUUID) {
		return false, nil
	}
	switch l.op {
	case "n":
		return op.May(privilege.Cluster(), privilege.AppendOplogNote), nil
	case "i":
		return op.mayOn(l.ns, privilege.Insert) && (!l.replayed || op.mayOn(l.ns, privilege.Update)), nil // which takes the place of what is there
	case "u":
		return op.mayOn(l.ns, privilege.Update) && (!l.upsert || op.mayOn(l.ns, privilege.Insert)), nil
	case "d":
		return op.mayOn(l.ns, privilege.Remove), nil
	}
	inner := *op
	command := loggedCommand(l)
	if !loggedCommands[l.o.FirstKey()] {
		return true, nil // and refused, or passed over, later
	}
	if command.FirstKey() == "applyOps" && op.Conn.applying >= maxNestedApplyOps {
		return true, nil
	}
	givesUUID := command.FirstKey() == "create" && l.uuid != nil || command.FirstKey() == "renameCollection" && l.renamedUUID() != nil
	if givesUUID && !op.May(privilege.Cluster(), privilege.ForceUUID) {
		return false, nil
	}
	inner.Command, inner.DB = op.table[command.FirstKey()], command.Lookup("$db").Str()
	inner.Args, inner.Sequences = NewArgs(inner.Command.Name, command), nil
	return inner.permit() == nil, nil
}

func needsMapReduce(op *Op) error {
	out := op.Args.peek("out")
	to := namespace.NS{DB: op.DB}
	second := privilege.Update
	switch out.Type {
	case bson.TypeString:
		to.Coll, second = out.Str(), privilege.Remove
	case bson.TypeObject:
		var o mapReduceOut
		if err := o.read(out.Doc()); err != nil || o.mode == "inline" {
			return nil // or refused later
		}
		if to.Coll = o.coll; o.db != "" {
			to.DB = o.db
		}
		if o.mode == "replace" {
			second = privilege.Remove
		}
	default:
		return nil
	}
	return op.permitted(op.mayOn(to, privilege.Insert, second) &&
		(!op.Args.peek("bypassDocumentValidation").Truthy() || op.mayOn(to, privilege.BypassDocumentValidation)))
}
