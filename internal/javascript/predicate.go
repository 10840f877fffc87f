package javascript

import "github.com/ebbdb/ebb/internal/bson"

// predicate calls f without arguments and says what JavaScript takes its result for, true or false. The document is both
// `this` and the global variable obj.
func (r *machine) predicate(f *Function, doc bson.Doc) (bool, error) {
	yes := false
	err := r.guard(func() error {
		this := r.toJS(doc.Value())
		if err := r.vm.GlobalObject().Set("obj", this); err != nil {
			return failure(err)
		}
		v, err := r.invoke(f, this)
		if err != nil {
			return err
		}
		yes = v.ToBoolean()
		return nil
	})
	return yes && err == nil, err
}
