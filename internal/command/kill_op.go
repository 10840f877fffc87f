package command

import (
	"math"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func killOpCommands() []*Command {
	return []*Command{
		{Name: "killOp", Needs: Needs{Also: needsKillOp}, Doc: "Stops an operation.", AdminOnly: true, Run: killOp},
	}
}

func killOp(op *Op) (bson.Doc, error) {
	v := op.Args.Value("op")
	if v.IsMissing() {
		return nil, mongoerr.New(mongoerr.NoSuchKey, "Did not provide \"op\" field")
	}
	if v.Type == bson.TypeString && op.Beside != nil {
		return op.killBeside(v.Str())
	}
	if !v.IsNumber() {
		return nil, mongoerr.New(mongoerr.TypeMismatch, "Expected field \"op\" to have a value exactly representable as a 64-bit integer, but found op: %s", v)
	}
	id, exact := v.AsInt64()
	switch {
	case !exact:
		return nil, mongoerr.New(mongoerr.BadValue, "Expected field \"op\" to have a value exactly representable as a 64-bit integer, but found op: %s", v)
	case id < math.MinInt32 || id > math.MaxInt32:
		return nil, mongoerr.New(26823, "invalid op : %d. Op ID cannot be represented with 32 bits", id)
	}
	op.Log.Info("Going to kill op", "opId", id)
	op.Ops.Kill(id)
	return bson.Build().String("info", "attempting to kill op").Doc(), nil
}
