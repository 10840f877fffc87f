package expr

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Let is a scope below scope with the variables that the let of a command gives: each is computed once, and may use those
// before it but neither documents nor the system's variables.
func (p *Parser) Let(vars bson.Doc, scope *Scope) (*Scope, error) {
	held := 0
	for it := vars.Iter(); it.Next(); {
		switch systemVariableNamed(it.Key()) {
		case varNow, varClusterTime, varUserRoles:
			return nil, mongoerr.New(4738901, "Attempt to set a runtime constant variable via the let parameter: %s", it.Key())
		}
		if err := CheckVariableName(it.Key()); err != nil {
			return nil, err
		}
		e, err := p.parse(it.Value(), scope)
		if err != nil {
			return nil, err
		}
		if err := checkSystem(e); err != nil { // before one that there is not is refused as such
			return nil, err
		}
		if e, err = e.fold(p); err != nil {
			return nil, err
		}
		if err := checkLet(e); err != nil {
			return nil, err
		}
		p.env.Reset()
		v, err := e.Eval(p.env)
		if err != nil {
			return nil, err
		}
		if held += len(v.Data); held > MaxArrayBytes {
			return nil, mongoerr.New(mongoerr.ExceededMemoryLimit,
				"let would use too much memory (%d bytes) and cannot spill to disk. Memory limit: %d bytes", held, MaxArrayBytes)
		}
		scope = scope.Constant(strings.Clone(it.Key()), v.Clone())
	}
	return scope, nil
}

// checkSystem refuses the system's variables, but for those that stand for the document.
func checkSystem(e Expr) error {
	if v, ok := e.(*systemRead); ok && v.kind != varRoot {
		return mongoerr.New(51144, "Command let Expression tried to access the system variable $$%s, which is not allowed in this context", v.name)
	}
	for _, c := range e.children() {
		if err := checkSystem(c); err != nil {
			return err
		}
	}
	return nil
}

// checkLet refuses what reads the document.
func checkLet(e Expr) error {
	switch e.(type) {
	case *field, *systemRead:
		return errLetField()
	}
	for _, c := range e.children() {
		if err := checkLet(c); err != nil {
			return err
		}
	}
	return nil
}

func errLetField() error {
	return mongoerr.New(4890500, "Command let Expression tried to access a field, but this is not allowed because command let expressions run before the query examines any documents.")
}
