package javascript

import (
	"crypto/md5"
	"crypto/rand"
	_ "embed"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dop251/goja"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
)

// define makes the classes of the values that JavaScript has no type for.
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
	r.method(r.classes["BinData"], "toString", func(v bson.Value) any {
		subtype, data := v.Binary()
		return "BinData(" + strconv.Itoa(int(subtype)) + `,"` + base64.StdEncoding.EncodeToString(data) + `")`
	})
	r.method(r.classes["BinData"], "base64", func(v bson.Value) any {
		_, data := v.Binary()
		return base64.StdEncoding.EncodeToString(data)
	})
	r.method(r.classes["BinData"], "length", func(v bson.Value) any { _, data := v.Binary(); return len(data) })
}

// shell gives functions what MongoDB's manual says they may use. Plain functions use none of it.
func (r *machine) shell() {
	r.constructors()
	r.set("MinKey", r.box(bson.MinKey))
	r.set("MaxKey", r.box(bson.MaxKey))
	r.set("hex_md5", func(s string) string { sum := md5.Sum([]byte(s)); return hex.EncodeToString(sum[:]) })
	r.set("sleep", r.sleep)
	r.set("version", func() string { return Version })
	r.set("isBSON", func(call goja.FunctionCall) goja.Value {
		_, ok := call.Argument(0).Export().(*boxed)
		return r.vm.ToValue(ok)
	})
	if _, err := r.vm.RunProgram(shellFunctions()); err != nil {
		panic(err) // it is ours
	}
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

//go:embed shell.js
var shellSource string

// shellFunctions are those functions of the shell that are written in JavaScript.
var shellFunctions = sync.OnceValue(func() *goja.Program { return goja.MustCompile("", shellSource, false) })

func (r *machine) constructors() {
	for name, literal := range map[string]string{"NumberLong": "NumberLong", "NumberInt": "NumberInt", "NumberDecimal": "NumberDecimal",
		"ObjectId": "ObjectId", "ObjectID": "ObjectId", "Timestamp": "Timestamp", "BinData": "BinData", "HexData": "HexData",
		"MD5": "MD5", "UUID": "UUID", "DBPointer": "DBPointer", "ISODate": "ISODate"} {
		r.set(name, func(call goja.FunctionCall) goja.Value { return r.construct(literal, call.Arguments) })
	}
}

// construct reads the arguments as the shell's notation does.
func (r *machine) construct(literal string, args []goja.Value) goja.Value {
	if literal == "MD5" && len(args) == 1 {
		literal, args = "HexData", []goja.Value{r.vm.ToValue(5), args[0]}
	}
	if len(args) == 0 {
		switch literal {
		case "ObjectId":
			return r.box(bson.ObjectID(r.newID()))
		case "ISODate":
			return r.toJS(bson.Date(clock.Millis(r.clock)))
		}
	}
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

// newID is an id as clients make them: the time, and what is random.
func (r *machine) newID() (id [12]byte) {
	binary.BigEndian.PutUint32(id[:], uint32(r.clock.Now().Unix()))
	_, _ = rand.Read(id[4:]) // never fails
	return id
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
