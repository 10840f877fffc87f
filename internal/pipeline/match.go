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
	f, err := p.filter(arg.Doc(), match.AllowMatch|match.AllowText)
	if err != nil {
		return nil, err
	}
	if p.at > 0 && usesText(f.Root) {
		return nil, mongoerr.New(17313, "$match with $text is only allowed as the first pipeline stage")
	}
	return one(&Match{written{"$match", arg}, f}), nil
}

func (m *Match) needs(d *Dependencies) bool {
	d.filter(m.Filter)
	return true
}

func usesText(n match.Node) bool {
	if _, ok := n.(*match.Text); ok {
		return true
	}
	for _, c := range match.Children(n) {
		if usesText(c) {
			return true
		}
	}
	return false
}
