package javascript

import (
	"strings"

	"github.com/dop251/goja"

	"github.com/ebbdb/ebb/internal/bson"
)

// global is a global variable that functions are given.
type global struct {
	name  string
	value bson.Value
}

func globalsOf(d bson.Doc) (out []global) {
	for it := d.Iter(); it.Next(); {
		out = append(out, global{it.Key(), it.Value()})
	}
	return out
}

// given makes variables. Code becomes what it says, most often a function.
func (r *machine) given(globals []global) error {
	return r.guard(func() error {
		for _, g := range globals {
			v, err := r.globalValue(g.value)
			if err != nil {
				return err
			}
			if err := r.vm.Set(strings.Clone(g.name), v); err != nil {
				return failure(err)
			}
		}
		return nil
	})
}

func (r *machine) globalValue(v bson.Value) (goja.Value, error) {
	var source string
	switch v.Type {
	case bson.TypeCode:
		source = v.Str()
	case bson.TypeCodeWithScope:
		source, _ = v.CodeWithScope()
	default:
		return r.toJS(v), nil
	}
	p, err := parse(function(source))
	if err != nil {
		return nil, err
	}
	out, err := r.vm.RunProgram(p)
	if err != nil {
		return nil, failure(err)
	}
	return out, nil
}
