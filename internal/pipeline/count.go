package pipeline

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Count is $count: one document with the number of documents under a name, none when there are none.
type Count struct {
	written
	Field string
}

func parseCount(_ *parsing, arg bson.Value) ([]Stage, error) {
	if arg.Type != bson.TypeString {
		return nil, mongoerr.New(40156, "the count field must be a non-empty string")
	}
	switch name := arg.Str(); {
	case name == "":
		return nil, mongoerr.New(40157, "the count field must be a non-empty string")
	case name[0] == '$':
		return nil, mongoerr.New(40158, "the count field cannot be a $-prefixed path")
	case strings.IndexByte(name, 0) >= 0:
		return nil, mongoerr.New(40159, "the count field cannot contain a null byte")
	case strings.Contains(name, "."):
		return nil, mongoerr.New(40160, "the count field cannot contain '.'")
	case name == "_id":
		return nil, mongoerr.New(9039800, "the count field cannot be '_id'")
	}
	return one(&Count{written{"$count", arg}, arg.Str()}), nil
}

func (c *Count) needs(*Dependencies) bool { return false }

// parseSortByCount is a $group and a $sort.
func parseSortByCount(p *parsing, arg bson.Value) ([]Stage, error) {
	switch arg.Type {
	case bson.TypeObject:
		first := arg.Doc().FirstKey()
		if first == "" || first[0] != '$' {
			return nil, mongoerr.New(40147, "the sortByCount field must be defined as a $-prefixed path or an expression inside an object")
		}
	case bson.TypeString:
		if s := arg.Str(); s == "" || s[0] != '$' {
			return nil, mongoerr.New(40148, "the sortByCount field must be defined as a $-prefixed path or an expression inside an object")
		}
	default:
		return nil, mongoerr.New(40149, "the sortByCount field must be defined as a $-prefixed path or an expression inside an object")
	}
	one := bson.Build().Object("count").Int32("$sum", 1).End().Doc()
	group, err := parseGroup(p, bson.Build().Value("_id", arg).Fields(one).Doc().Value())
	if err != nil {
		return nil, err
	}
	sort, err := parseSort(p, bson.Build().Int32("count", -1).Doc().Value())
	if err != nil {
		return nil, err
	}
	return append(group, sort...), nil
}
