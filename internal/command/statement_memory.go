package command

import (
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/memory"
)

const (
	// smallStatement is up to how many bytes of a command what it takes to parse is not counted.
	smallStatement = 16 << 10
	// parsedDocumentBytes is about what becomes of a document or an array when it is parsed, and parsedValueBytes of any other value: the expression, its
	// simpler forms, and what plans have of both. Measured with filters and pipelines of 16 MB.
	parsedDocumentBytes = 1000
	parsedValueBytes    = 200
)

// rawFields are the fields of a command whose documents stay as they are.
var rawFields = []string{"documents", "document", "applyOps"}

// statementFields are those of which one element after the other is parsed.
var statementFields = []string{"updates", "deletes", "ops"}

// parsedUpdates are the fields of a command or a statement that say how documents change.
var parsedUpdates = []string{"u", "update", "updateMods"}

// takeForParsing takes the memory that the parsing and planning of a large command needs. While others have too much of it the command waits, and is
// refused in the end: each of many large commands that come at once is allowed, and all of them together are not.
func (op *Op) takeForParsing() error {
	body := op.Args.Document()
	size := len(body)
	for _, s := range op.Sequences {
		size += s.Size()
	}
	if size <= smallStatement {
		return nil
	}
	n := parsedBytes(body)
	for _, s := range op.Sequences {
		if !slices.Contains(rawFields, s.Name) {
			largest := int64(0)
			for d := range s.Docs() {
				largest = max(largest, parsedBytes(d))
			}
			n += largest
		}
	}
	op.parsing.Open(op.Query.Memory, memory.Requests)
	return op.parsing.Wait(op.Ctx, n)
}

// parsedBytes is about how many bytes the parsed form of a command, or of a statement, takes.
func parsedBytes(d bson.Doc) (n int64) {
	for it := d.Iter(); it.Next(); {
		v := it.Value()
		switch {
		case v.Type != bson.TypeObject && v.Type != bson.TypeArray:
			n += parsedValueBytes
		case slices.Contains(rawFields, it.Key()):
		case slices.Contains(parsedUpdates, it.Key()) && v.Type == bson.TypeObject:
			n += parsedUpdateBytes(v.Doc())
		case slices.Contains(statementFields, it.Key()):
			largest := int64(0)
			for each := v.Doc().Iter(); each.Next(); {
				if each.Value().Type == bson.TypeObject {
					largest = max(largest, parsedBytes(each.Value().Doc()))
				}
			}
			n += largest
		default:
			n += parsedDocumentBytes + parsedBytesBelow(v.Doc())
		}
	}
	return n
}

// parsedBytesBelow is parsedBytes where the names of fields are the user's.
func parsedBytesBelow(d bson.Doc) (n int64) {
	for it := d.Iter(); it.Next(); {
		if v := it.Value(); v.Type == bson.TypeObject || v.Type == bson.TypeArray {
			n += parsedDocumentBytes + parsedBytesBelow(v.Doc())
		} else {
			n += parsedValueBytes
		}
	}
	return n
}

// parsedUpdateBytes is parsedBytes of an update. A document that takes the other's place, and what operators are to write, stay as they are.
func parsedUpdateBytes(d bson.Doc) (n int64) {
	for it := d.Iter(); it.Next(); {
		operator, v := it.Key(), it.Value()
		switch {
		case operator == "" || operator[0] != '$':
			return 0
		case v.Type != bson.TypeObject:
			n += parsedValueBytes
		case operator == "$pull":
			n += parsedDocumentBytes + parsedBytesBelow(v.Doc())
		default:
			n += parsedDocumentBytes
			for path := v.Doc().Iter(); path.Next(); {
				n += parsedValueBytes
			}
		}
	}
	return n
}
