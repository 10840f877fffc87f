package pipeline

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Match is $match.
type Match struct {
	written
	Filter *match.Filter
}

func parseMatch(p *parsing, arg bson.Value) ([]Stage, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(15959, "the match filter must be an expression in an object")
	}
	allow := match.AllowMatch
	if p.at == 0 {
		allow |= match.AllowText
	}
	f, err := p.filter(arg.Doc(), allow)
	if err != nil {
		return nil, err
	}
	return one(&Match{written{"$match", arg}, f}), nil
}

func (m *Match) needs(d *Dependencies) bool {
	of := m.Filter.Dependencies()
	d.Fields = append(d.Fields, of.Fields...)
	d.Whole = d.Whole || of.Whole
	return true
}
