package match

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/javascript"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Where matches when a JavaScript function says so, which sees the whole document as `this`.
type Where struct {
	Code string

	compiled *javascript.Function
}

func (n *Where) match(c run, _ subject) (bool, error) {
	if c.env == nil {
		panic("match: $where needs an Env")
	}
	return c.env.JavaScript().Predicate(n.compiled, c.root)
}

func (n *Where) test(c run, _ bson.Value) (bool, error) { return n.match(c, subject{}) }

func parseWhere(p *parsing, arg bson.Value) (Node, error) {
	switch {
	case p.Allow&AllowWhere == 0:
		return nil, badValue("$where is not allowed in this context")
	case p.level != topLevel:
		return nil, badValue("$elemMatch cannot contain $where expression")
	case arg.Type != bson.TypeString && arg.Type != bson.TypeCode: // code with a scope is no longer taken
		return nil, badValue("$where got bad type")
	}
	if !p.Exprs.HasScripts() {
		return nil, mongoerr.New(6108304, "no globalScriptEngine in $where parsing")
	}
	compiled, err := p.Exprs.Script(arg.Str())
	if err != nil {
		return nil, err
	}
	return &Where{arg.Str(), compiled}, nil
}
