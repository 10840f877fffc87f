package javascript

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dop251/goja"

	"github.com/ebbdb/ebb/internal/bson"
)

// define makes the constructors and functions of the shell that users' functions may use.
func (r *machine) define() {
	for _, name := range []string{"NumberLong", "NumberInt", "NumberDecimal", "ObjectId", "Timestamp", "BinData", "BSON"} {
		r.classes[name] = r.vm.NewObject()
	}
	for _, class := range r.classes {
		r.method(class, "toString", func(v bson.Value) any { return v.String() })
		r.method(class, "toJSON", func(v bson.Value) any { return v.String() })
	}
	for _, name := range []string{"NumberLong", "NumberInt", "NumberDecimal"} {
		r.method(r.classes[name], "valueOf", func(v bson.Value) any { return v.AsDouble() })
		r.method(r.classes[name], "toNumber", func(v bson.Value) any { return v.AsDouble() })
	}
	r.method(r.classes["NumberLong"], "toString", func(v bson.Value) any { return `NumberLong(` + strconv.FormatInt(v.Int64(), 10) + `)` })
	r.method(r.classes["NumberInt"], "toString", func(v bson.Value) any { return `NumberInt(` + strconv.Itoa(int(v.Int32())) + `)` })
	r.method(r.classes["NumberDecimal"], "toString", func(v bson.Value) any { return `NumberDecimal("` + v.Decimal().String() + `")` })
	r.method(r.classes["ObjectId"], "toString", func(v bson.Value) any { return `ObjectId("` + hex.EncodeToString(v.Data) + `")` })
	r.method(r.classes["ObjectId"], "valueOf", func(v bson.Value) any { return hex.EncodeToString(v.Data) })
	r.getter("ObjectId", "str", func(v bson.Value) any { return hex.EncodeToString(v.Data) })
	r.getter("Timestamp", "t", func(v bson.Value) any { t, _ := v.Timestamp(); return int64(t) })
	r.getter("Timestamp", "i", func(v bson.Value) any { _, i := v.Timestamp(); return int64(i) })
	r.method(r.classes["BinData"], "base64", func(v bson.Value) any {
		_, data := v.Binary()
		return base64.StdEncoding.EncodeToString(data)
	})
	r.method(r.classes["BinData"], "length", func(v bson.Value) any { _, data := v.Binary(); return len(data) })
	r.constructors()
	if _, err := r.vm.RunProgram(arrayFunctions()); err != nil {
		panic(err) // it is ours
	}
	r.set("hex_md5", func(s string) string { sum := md5.Sum([]byte(s)); return hex.EncodeToString(sum[:]) })
	r.set("print", func(goja.FunctionCall) goja.Value { return goja.Undefined() })
	r.set("sleep", r.sleep)
	r.set("tojson", func(call goja.FunctionCall) goja.Value {
		v, err := r.fromJS(call.Argument(0))
		if err != nil {
			panic(r.vm.NewGoError(err))
		}
		return r.vm.ToValue(v.Text())
	})
}

// sleep waits as many milliseconds as asked, or until the call is ended.
func (r *machine) sleep(millis int64) {
	t := r.clock.NewTimer(time.Duration(min(max(millis, 0), MaxCallTime.Milliseconds()+1)) * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C():
	case <-r.broken:
	}
}

// arrayFunctions are what the shell adds to Array, and a sort that takes comparators which only say whether the first is the
// larger: where one says nothing of a pair, it is asked the other way round. The interpreter's own asks only for the smaller.
var arrayFunctions = sync.OnceValue(func() *goja.Program {
	return goja.MustCompile("", `
		Array.sum = function(a) { if (a.length == 0) return null; var s = a[0]; for (var i = 1; i < a.length; i++) s += a[i]; return s; };
		Array.avg = function(a) { return a.length == 0 ? null : Array.sum(a) / a.length; };
		Array.stdDev = function(a) {
			var mean = Array.avg(a), s = 0;
			for (var i = 0; i < a.length; i++) s += (a[i] - mean) * (a[i] - mean);
			return Math.sqrt(s / a.length);
		};
		Array.contains = function(a, x) { return a.indexOf(x) >= 0; };
		Array.unique = function(a) { return a.filter(function(x, i) { return a.indexOf(x) == i; }); };
		(function(own) {
			Object.defineProperty(Array.prototype, 'sort', {writable: true, configurable: true, enumerable: false, value: function sort(compare) {
				if (typeof compare != 'function') return own.call(this, compare);
				return own.call(this, function(a, b) {
					var order = +compare(a, b);
					if (order < 0 || order > 0) return order;
					return compare(b, a) > 0 ? -1 : 0;
				});
			}});
		})(Array.prototype.sort);`, false)
})

func (r *machine) constructors() {
	for name, literal := range map[string]string{"NumberLong": "NumberLong", "NumberInt": "NumberInt", "NumberDecimal": "NumberDecimal",
		"ObjectId": "ObjectId", "ObjectID": "ObjectId", "Timestamp": "Timestamp", "BinData": "BinData", "UUID": "UUID", "ISODate": "ISODate"} {
		r.set(name, func(call goja.FunctionCall) goja.Value { return r.construct(literal, call.Arguments) })
	}
}

// construct reads the arguments as the shell's notation does.
func (r *machine) construct(literal string, args []goja.Value) goja.Value {
	texts := make([]string, len(args))
	for i, a := range args {
		if s, ok := a.Export().(string); ok {
			texts[i] = strconv.Quote(s)
		} else {
			texts[i] = a.String()
		}
	}
	v, err := bson.Parse(literal + "(" + strings.Join(texts, ", ") + ")")
	if err != nil {
		panic(r.vm.NewTypeError("bad arguments of %s", literal))
	}
	if v.Type == bson.TypeDate {
		return r.toJS(v)
	}
	return r.box(v)
}

func (r *machine) method(class *goja.Object, name string, f func(v bson.Value) any) {
	err := class.Set(name, func(call goja.FunctionCall) goja.Value {
		b, ok := call.This.Export().(*boxed)
		if !ok {
			panic(r.vm.NewTypeError("%s of a value that is none of BSON's", name))
		}
		return r.vm.ToValue(f(b.v))
	})
	if err != nil {
		panic(err) // a new object takes any property
	}
}

func (r *machine) getter(class, name string, f func(v bson.Value) any) {
	get := r.vm.ToValue(func(call goja.FunctionCall) goja.Value {
		b, ok := call.This.Export().(*boxed)
		if !ok {
			return goja.Undefined()
		}
		return r.vm.ToValue(f(b.v))
	})
	if err := r.classes[class].DefineAccessorProperty(name, get, nil, goja.FLAG_FALSE, goja.FLAG_TRUE); err != nil {
		panic(err)
	}
}

func (r *machine) set(name string, v any) {
	if err := r.vm.Set(name, v); err != nil {
		panic(err)
	}
}
