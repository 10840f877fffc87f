// Package accumulator folds many values into one: the accumulators of $group and the functions of $setWindowFields. It
// knows nothing of stages, groups, partitions or documents, only of the values that it is given one after another.
package accumulator

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
)

// Fold is an accumulator at work on one group.
type Fold interface {
	// Add takes the values of the accumulator's arguments for one document; missing ones too. It keeps copies only.
	Add(args []bson.Value) error
	// Value is what the values so far come to, missing when they come to nothing. Its bytes are good until the next Add.
	Value() (bson.Value, error)
	// Partial is all that has been taken, for Merge of a Fold of the same kind.
	Partial() bson.Value
	// Merge goes on behind what a Partial stands for. Nothing has been added before the first Merge.
	Merge(partial bson.Value) error
	// Size is about how many bytes of memory the Fold holds.
	Size() int
}

// Remover is a Fold over a window, whose first documents can be taken out again in the order they were added.
type Remover interface {
	Fold
	// Remove takes out what Add took first, and says whether it could; when not, the window is added up anew.
	Remove(args []bson.Value) bool
}

// Spec is a parsed accumulator.
type Spec struct {
	Op *Operator
	// Args are evaluated for each document.
	Args []expr.Expr
	// Init is evaluated for each group on the group's key (when that is a document), nil when there is nothing to know.
	Init expr.Expr
	// Grows says that Size may change with each Add.
	Grows bool

	make func(init bson.Value) (Fold, error)
	// leaving is make for windows that leave documents behind them; nil where it is the same, or not for the accumulator to say.
	leaving func(init bson.Value) (Fold, error)
	print   func(s *Spec) bson.Value
}

// New starts a group; init is what Init came to.
func (s *Spec) New(init bson.Value) (Fold, error) { return s.make(init) }

// Print is the accumulator as explain shows it: {$sum: "$a"}.
func (s *Spec) Print() bson.Value {
	arg := bson.Missing
	if s.print != nil {
		arg = s.print(s)
	} else if len(s.Args) == 1 {
		arg = s.Args[0].Value()
	}
	return bson.Build().Value(s.Op.Name, arg).Doc().Value()
}

// Exprs are all expressions of the accumulator.
func (s *Spec) Exprs() []expr.Expr {
	if s.Init == nil {
		return s.Args
	}
	return append([]expr.Expr{s.Init}, s.Args...)
}

// kept is a value with bytes of its own that are used again.
type kept struct{ bson.Value }

func (k *kept) set(v bson.Value) {
	k.Type = v.Type
	k.Data = append(k.Data[:0], v.Data...)
}

// orNull is v, or null when it is missing: $group never leaves a field out.
func orNull(v bson.Value) bson.Value {
	if v.IsMissing() {
		return bson.Null
	}
	return v
}
