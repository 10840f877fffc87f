package javascript

import (
	"github.com/dop251/goja"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// emit calls f with doc as `this` and gives take what f passes to the function emit. An error of take ends the call.
func (r *machine) emit(f *Function, doc bson.Doc, take func(key, value bson.Value) error) error {
	var failed error
	r.set("emit", func(call goja.FunctionCall) goja.Value {
		if failed == nil {
			failed = r.emitted(call.Arguments, take)
		}
		if failed != nil {
			panic(r.vm.NewGoError(failed))
		}
		return goja.Undefined()
	})
	err := r.guard(func() error {
		_, err := r.invoke(f, r.toJS(doc.Value()))
		return err
	})
	if failed != nil { // which f may have caught
		return failed
	}
	return err
}

func (r *machine) emitted(args []goja.Value, take func(key, value bson.Value) error) error {
	if len(args) != 2 {
		return mongoerr.New(31220, "emit takes 2 args")
	}
	key, err := r.fromJS(args[0])
	if err != nil {
		return err
	}
	value, err := r.fromJS(args[1])
	if err != nil {
		return err
	}
	if key.IsNullish() {
		key = bson.Null
	}
	return take(key, value)
}
