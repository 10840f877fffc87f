package javascript

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dop251/goja"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// maxDepth is how deep a value may nest on its way out.
const maxDepth = 150

// boxed is a BSON value that JavaScript has no type for.
type boxed struct{ v bson.Value }

// toJS is v for JavaScript. Longs become NumberLong objects, which count as numbers.
func (r *machine) toJS(v bson.Value) goja.Value {
	switch v.Type {
	case bson.TypeMissing, bson.TypeUndefined:
		return goja.Undefined()
	case bson.TypeNull:
		return goja.Null()
	case bson.TypeInt32, bson.TypeDouble:
		return r.vm.ToValue(v.AsDouble())
	case bson.TypeString, bson.TypeSymbol:
		return r.vm.ToValue(strings.Clone(v.Str()))
	case bson.TypeBool:
		return r.vm.ToValue(v.Bool())
	case bson.TypeDate:
		d, err := r.vm.New(r.vm.Get("Date"), r.vm.ToValue(float64(v.Millis())))
		if err != nil {
			return goja.Undefined()
		}
		return d
	case bson.TypeRegex:
		pattern, options := v.Regex()
		re, err := r.vm.New(r.vm.Get("RegExp"), r.vm.ToValue(strings.Clone(pattern)), r.vm.ToValue(jsFlags(options)))
		if err == nil {
			return re
		}
	case bson.TypeArray:
		var items []any
		for it := v.Doc().Iter(); it.Next(); {
			items = append(items, r.toJS(it.Value()))
		}
		return r.vm.NewArray(items...)
	case bson.TypeObject:
		o := r.vm.NewObject()
		for it := v.Doc().Iter(); it.Next(); {
			if err := o.Set(strings.Clone(it.Key()), r.toJS(it.Value())); err != nil {
				return goja.Undefined()
			}
		}
		return o
	}
	return r.box(v.Clone())
}

// jsFlags are the options that a JavaScript pattern takes.
func jsFlags(options string) string {
	return strings.Map(func(c rune) rune {
		if strings.ContainsRune("ims", c) {
			return c
		}
		return -1
	}, options)
}

func (r *machine) box(v bson.Value) goja.Value {
	o := r.vm.ToValue(&boxed{v}).ToObject(r.vm)
	if class, ok := r.classes[className(v.Type)]; ok {
		if err := o.SetPrototype(class); err != nil {
			return goja.Undefined()
		}
	}
	return o
}

func className(t bson.Type) string {
	switch t {
	case bson.TypeInt64:
		return "NumberLong"
	case bson.TypeInt32:
		return "NumberInt"
	case bson.TypeDecimal:
		return "NumberDecimal"
	case bson.TypeObjectID:
		return "ObjectId"
	case bson.TypeTimestamp:
		return "Timestamp"
	case bson.TypeBinary:
		return "BinData"
	}
	return "BSON"
}

// fromJS is what JavaScript gave back; numbers are doubles.
func (r *machine) fromJS(v goja.Value) (bson.Value, error) {
	w := &writer{r: r}
	return w.value(v, 0)
}

type writer struct {
	r     *machine
	bytes int
}

func (w *writer) value(v goja.Value, depth int) (bson.Value, error) {
	if depth > maxDepth {
		return bson.Missing, mongoerr.New(17279, "Exceeded depth limit of %d when converting js object to BSON. Do you have a cycle?", maxDepth)
	}
	if w.bytes > bson.MaxInternalSize {
		return bson.Missing, mongoerr.New(17260, "Converting from JavaScript to BSON failed: Object size %d exceeds limit of %d bytes.", w.bytes, bson.MaxInternalSize)
	}
	out := bson.Missing
	switch x := v.Export().(type) {
	case nil:
		if _, object := v.(*goja.Object); object || goja.IsNull(v) { // an invalid Date exports nothing
			return bson.Null, nil
		}
		return bson.Undefined, nil
	case *boxed:
		out = x.v
	case bool:
		out = bson.Bool(x)
	case int64:
		out = bson.Double(float64(x))
	case float64:
		out = bson.Double(x)
	case string:
		out = bson.String(x)
	case time.Time:
		out = date(v)
	default:
		return w.object(v, depth)
	}
	w.bytes += len(out.Data) + 8
	return out, nil
}

// date is a JavaScript Date; an invalid one is null.
func date(v goja.Value) bson.Value {
	f := v.ToFloat()
	if math.IsNaN(f) {
		return bson.Null
	}
	return bson.Date(int64(f))
}

func (w *writer) object(v goja.Value, depth int) (bson.Value, error) {
	o, ok := v.(*goja.Object)
	if !ok {
		return bson.String(v.String()), nil
	}
	switch o.ClassName() {
	case "Array":
		n := o.Get("length").ToInteger()
		b := bson.Build()
		for i := range int(n) {
			e, err := w.value(o.Get(strconv.Itoa(i)), depth+1)
			if err != nil {
				return e, err
			}
			b.Value(bson.IndexKey(i), e)
		}
		return b.Doc().ArrayValue(), nil
	case "Function":
		return bson.Code(v.String()), nil
	case "RegExp":
		return bson.Regex(o.Get("source").String(), jsFlags(o.Get("flags").String())), nil
	case "Date":
		return date(v), nil
	case "String":
		return bson.String(v.String()), nil
	}
	b := bson.Build()
	for _, key := range o.Keys() {
		e, err := w.value(o.Get(key), depth+1)
		if err != nil {
			return e, err
		}
		if strings.IndexByte(key, 0) >= 0 {
			return e, mongoerr.New(mongoerr.JSInterpreterFailure, "field names may not hold a zero byte")
		}
		w.bytes += len(key) + 2
		b.Value(key, e)
	}
	return b.Doc().Value(), nil
}
