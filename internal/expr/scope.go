package expr

import (
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Slot is the place of a variable's value in an Env.
type Slot int

// Scope is a set of variable names around an expression. Scopes nest: a child sees its parents' names. The nil Scope knows
// the system variables only.
type Scope struct {
	parent *Scope
	name   string
	slot   Slot
	next   Slot
	fixed  bool // the variable is a constant
	value  bson.Value
}

// Define is a scope below s with one more variable, whose value is given to Env.Set under the slot before evaluation.
func (s *Scope) Define(name string) (*Scope, Slot) {
	slot := s.nextSlot()
	return &Scope{parent: s, name: name, slot: slot, next: slot + 1}, slot
}

// Constant is a scope below s with one more variable that always is v, as a command's let gives it.
func (s *Scope) Constant(name string, v bson.Value) *Scope {
	return &Scope{parent: s, name: name, next: s.nextSlot(), fixed: true, value: v}
}

func (s *Scope) nextSlot() Slot {
	if s == nil {
		return 0
	}
	return s.next
}

func (s *Scope) find(name string) *Scope {
	for ; s != nil; s = s.parent {
		if s.name == name {
			return s
		}
	}
	return nil
}

// Has says whether name is defined by s or a scope around it; system variables are not.
func (s *Scope) Has(name string) bool { return s.find(name) != nil }

// systemVariable says which variable of the system a name means.
type systemVariable uint8

const (
	varNone systemVariable = iota
	varRoot
	varNow
	varClusterTime
	varRemove
	varUserRoles
	varSearchMeta
)

func systemVariableNamed(name string) systemVariable {
	switch name {
	case "ROOT", "CURRENT": // CURRENT is ROOT unless a scope says otherwise
		return varRoot
	case "NOW":
		return varNow
	case "CLUSTER_TIME":
		return varClusterTime
	case "REMOVE":
		return varRemove
	case "USER_ROLES":
		return varUserRoles
	case "SEARCH_META":
		return varSearchMeta
	}
	return varNone
}

// CheckVariableName refuses names that a user may not give to a variable.
func CheckVariableName(name string) error {
	if name == "CURRENT" { // the one system variable that users may set
		return nil
	}
	return checkVariable(name, false)
}

func checkVariable(name string, read bool) error {
	if name == "" {
		return mongoerr.New(mongoerr.FailedToParse, "empty variable names are not allowed")
	}
	c := name[0]
	if !(c >= 'a' && c <= 'z' || c >= 0x80 || read && c >= 'A' && c <= 'Z') {
		return mongoerr.New(mongoerr.FailedToParse, "'%s' starts with an invalid character for a user variable name", name)
	}
	for i := 1; i < len(name); i++ {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c >= 0x80) {
			return mongoerr.New(mongoerr.FailedToParse, "'%s' contains an invalid character for a variable name: '%c'", name, c)
		}
	}
	return nil
}

// variable is a variable of a scope; path is what follows its name.
type variable struct {
	name string
	slot Slot
}

func (v *variable) Eval(env *Env) (bson.Value, error) { return env.read(env.Get(v.slot)), nil }
func (v *variable) Value() bson.Value                 { return bson.String("$$" + v.name) }
func (v *variable) children() []Expr                  { return nil }
func (v *variable) fold(*Parser) (Expr, error)        { return v, nil }

// HasVariables says whether e reads variables that a user has named, its own among them.
func HasVariables(e Expr) bool {
	if _, ok := e.(*variable); ok {
		return true
	}
	return slices.ContainsFunc(e.children(), func(c Expr) bool { return c != nil && HasVariables(c) })
}

// systemRead reads a system variable.
type systemRead struct {
	name string
	kind systemVariable
}

func (v *systemRead) Eval(env *Env) (bson.Value, error) {
	switch v.kind {
	case varRoot:
		return env.read(env.Root.Value()), nil
	case varNow:
		return env.Date(env.Now), nil
	case varClusterTime:
		if env.ClusterTime == 0 {
			return bson.Missing, errNoClusterTime()
		}
		return bson.Timestamp(uint32(env.ClusterTime>>32), uint32(env.ClusterTime)), nil
	case varUserRoles:
		if env.UserRoles.IsMissing() {
			return bson.Missing, v.unavailable()
		}
		return env.read(env.UserRoles), nil
	case varSearchMeta:
		return env.SearchMeta, nil
	}
	return bson.Missing, nil
}

func (v *systemRead) Value() bson.Value { return bson.String("$$" + v.name) }
func (v *systemRead) children() []Expr  { return nil }

// check refuses a variable that the operation does not have, before anything is computed.
func (v *systemRead) check(p *Parser) error {
	if !p.opts.Definition && p.opts.NoNow && (v.kind == varNow || v.kind == varClusterTime || v.kind == varUserRoles) {
		return v.unavailable()
	}
	return nil
}

func (v *systemRead) unavailable() error {
	return mongoerr.New(51144, "Builtin variable '$$%s' is not available", v.name)
}

// fold refuses the time of a cluster where there is none, before any document is looked at.
func (v *systemRead) fold(p *Parser) (Expr, error) {
	if !p.opts.Definition && v.kind == varClusterTime && p.opts.ClusterTime == 0 {
		return nil, errNoClusterTime()
	}
	return v, nil
}

func errNoClusterTime() error {
	return mongoerr.New(10071200, "Builtin variable '$$CLUSTER_TIME' is not available")
}
