package expr

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/javascript"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Env is what one evaluation sees and where its results lie. An Env serves one goroutine; Parser.NewEnv makes it. Set Root,
// evaluate, use or copy the results, and Reset before the next document.
type Env struct {
	// Root is the document that field paths and $$ROOT mean.
	Root bson.Doc
	// Now is $$NOW in milliseconds since the epoch.
	Now int64
	// ClusterTime is $$CLUSTER_TIME, the seconds in its upper half; 0 on a server that has none.
	ClusterTime uint64
	// UserRoles is $$USER_ROLES; Missing where there is none.
	UserRoles bson.Value
	// SearchMeta is $$SEARCH_META; Missing where nothing was searched for.
	SearchMeta bson.Value
	// Collation compares strings; nil compares bytes.
	Collation bson.Collator
	// Meta gives the metadata of the document for $meta; nil gives none.
	Meta func(name string) bson.Value
	// Rand gives numbers in [0, 1) for $rand.
	Rand func() float64
	// Interrupt is asked now and then in loops; its error ends the evaluation. Nil never ends it.
	Interrupt func() error

	vars    []bson.Value // by slot
	stack   []bson.Value // operands of the operators being evaluated
	slab    []byte       // the results; full slabs are left to the collector
	ticks   int          // turns of loops and bytes looked at since Interrupt was asked
	made    int          // bytes of all results that were ever made
	live    int          // bytes of those among them that wait, as operands and variables, while others are made
	places  places
	once    bson.Places // of an array that nobody remembers
	zones   map[string]*time.Location
	js      *javascript.Runtime
	scripts *javascript.Engine
	stored  StoredScripts
	globals bson.Doc // of JavaScript
}

const (
	firstSlabBytes = 512
	maxSlabBytes   = 64 << 10
	ticksPerAsk    = 1024
	bytesPerTick   = 1024
	perTick        = 64 // elements that are moved
	valueBytes     = 32 // of a Value on the stack
	maxStackKept   = 1 << 14
)

// Reset forgets the results of the last document. Values that were given out are no longer good.
func (e *Env) Reset() {
	e.slab = e.slab[:0]
	e.stack = e.stack[:0]
	e.live = 0
	e.once.Forget()
	if cap(e.stack) > maxStackKept {
		e.stack = nil
	}
}

// Set gives the variable in slot a value for the evaluations that follow.
func (e *Env) Set(slot Slot, v bson.Value) {
	for int(slot) >= len(e.vars) {
		e.vars = append(e.vars, bson.Missing)
	}
	e.vars[slot] = v
}

// Get is the value of the variable in slot.
func (e *Env) Get(slot Slot) bson.Value {
	if int(slot) >= len(e.vars) {
		return bson.Missing
	}
	return e.vars[slot]
}

// Compare orders values with the Env's collation.
func (e *Env) Compare(a, b bson.Value) int { return bson.CompareWith(a, b, e.Collation) }

// tick counts a turn of a loop and says when the operation has been ended.
func (e *Env) tick() error {
	e.ticks++
	return e.tired()
}

// Tick counts a turn of a loop outside of expressions, as tick does of those inside.
func (e *Env) Tick() error { return e.tick() }

// TickFor counts a turn that looks at v, which takes the longer the more there is of it.
func (e *Env) TickFor(v bson.Value) error {
	e.read(v)
	return e.tick()
}

// tired says when the operation has been ended, which it asks after much work only.
func (e *Env) tired() error {
	if e.ticks < ticksPerAsk {
		return nil
	}
	e.ticks = 0
	if e.Interrupt == nil {
		return nil
	}
	return e.Interrupt()
}

// read counts the work that a value makes for whoever asked for it.
func (e *Env) read(v bson.Value) bson.Value {
	e.ticks += len(v.Data) / bytesPerTick
	return v
}

// alloc is n bytes that are good until Reset. Large ones are left to the collector, so that a loop that makes many does not
// hold them all.
func (e *Env) alloc(n int) []byte {
	e.made += n
	if n > cap(e.slab)-len(e.slab) {
		if n > maxSlabBytes/4 {
			e.ticks += n / bytesPerTick
			return make([]byte, n)
		}
		e.slab = make([]byte, 0, max(n, firstSlabBytes, min(2*cap(e.slab), maxSlabBytes)))
	}
	at := len(e.slab)
	e.slab = e.slab[:at+n]
	return e.slab[at : at+n : at+n]
}

// Int32 is an int.
func (e *Env) Int32(n int32) bson.Value {
	b := e.alloc(4)
	binary.LittleEndian.PutUint32(b, uint32(n))
	return bson.Value{Type: bson.TypeInt32, Data: b}
}

// Int64 is a long.
func (e *Env) Int64(n int64) bson.Value { return e.bits(bson.TypeInt64, uint64(n)) }

// Int is n as an int when it fits one, else as a long.
func (e *Env) Int(n int64) bson.Value {
	if n >= math.MinInt32 && n <= math.MaxInt32 {
		return e.Int32(int32(n))
	}
	return e.Int64(n)
}

// Double is a double.
func (e *Env) Double(f float64) bson.Value { return e.bits(bson.TypeDouble, math.Float64bits(f)) }

// Date is a date.
func (e *Env) Date(ms int64) bson.Value { return e.bits(bson.TypeDate, uint64(ms)) }

func (e *Env) bits(t bson.Type, u uint64) bson.Value {
	b := e.alloc(8)
	binary.LittleEndian.PutUint64(b, u)
	return bson.Value{Type: t, Data: b}
}

// Decimal is a decimal.
func (e *Env) Decimal(d bson.Decimal128) bson.Value {
	b := e.alloc(16)
	binary.LittleEndian.PutUint64(b, d.Low)
	binary.LittleEndian.PutUint64(b[8:], d.High)
	return bson.Value{Type: bson.TypeDecimal, Data: b}
}

// String is a string with the text of s.
func (e *Env) String(s string) bson.Value {
	b := e.alloc(len(s) + 5)
	binary.LittleEndian.PutUint32(b, uint32(len(s)+1))
	copy(b[4:], s)
	b[len(b)-1] = 0
	return bson.Value{Type: bson.TypeString, Data: b}
}

// Binary is binary data.
func (e *Env) Binary(subtype byte, data []byte) bson.Value {
	b := e.alloc(len(data) + 5)
	binary.LittleEndian.PutUint32(b, uint32(len(data)))
	b[4] = subtype
	copy(b[5:], data)
	return bson.Value{Type: bson.TypeBinary, Data: b}
}

// Array is an array of values, in which missing ones are null. It fails when that is larger than any document.
func (e *Env) Array(vs []bson.Value) (bson.Value, error) {
	n := 5
	for i, v := range vs {
		n += len(v.Data) + len(bson.IndexKey(i)) + 2
	}
	if err := checkSize(n); err != nil {
		return bson.Missing, err
	}
	b := e.alloc(n)
	binary.LittleEndian.PutUint32(b, uint32(n))
	at := 4
	for i, v := range vs {
		t := v.Type
		if t == bson.TypeMissing {
			t = bson.TypeNull
		}
		at = putElement(b, at, t, bson.IndexKey(i), v.Data)
	}
	b[at] = 0
	return bson.Value{Type: bson.TypeArray, Data: b}, nil
}

// emptyStringBytes is what a string takes beside its text.
const emptyStringBytes = 5

// arrayBytes is how large an array of n values is that take so many bytes each.
func arrayBytes(n, each int) int {
	size := 5 + n*(each+2)
	for digits, from := 1, 0; from < n; digits++ {
		to := 10 * max(1, from)
		size += digits * (min(n, to) - from)
		from = to
	}
	return size
}

// Object is a document of keys and values; missing ones are left out.
func (e *Env) Object(keys []string, vs []bson.Value) (bson.Value, error) {
	n := 5
	for i, v := range vs {
		if v.Type != bson.TypeMissing {
			n += len(v.Data) + len(keys[i]) + 2
		}
	}
	if err := checkSize(n); err != nil {
		return bson.Missing, err
	}
	b := e.alloc(n)
	binary.LittleEndian.PutUint32(b, uint32(n))
	at := 4
	for i, v := range vs {
		if v.Type != bson.TypeMissing {
			at = putElement(b, at, v.Type, keys[i], v.Data)
		}
	}
	b[at] = 0
	return bson.Value{Type: bson.TypeObject, Data: b}, nil
}

func putElement(b []byte, at int, t bson.Type, key string, data []byte) int {
	b[at] = byte(t)
	at += 1 + copy(b[at+1:], key)
	b[at] = 0
	return at + 1 + copy(b[at+1:], data)
}

func checkSize(n int) error {
	if n > MaxValueBytes {
		return mongoerr.New(mongoerr.BSONObjectTooLarge,
			"BSONObj size: %d (0x%X) is invalid. Size must be between 0 and %d(16MB)", n, n, MaxValueBytes)
	}
	return nil
}

// elements puts the elements of an array on the stack. The caller cuts the stack back to mark.
func (e *Env) elements(array bson.Value) (vs []bson.Value, mark int) {
	mark = len(e.stack)
	e.stack = array.Doc().Values(e.stack)
	e.ticks += (len(e.stack) - mark) / perTick
	return e.stack[mark:len(e.stack):len(e.stack)], mark
}

// cut ends the use of the stack from mark on.
func (e *Env) cut(mark int) { e.stack = e.stack[:mark] }

// arrayFrom is an array of what has been put on the stack since mark.
func (e *Env) arrayFrom(mark int) (bson.Value, error) {
	v, err := e.Array(e.stack[mark:])
	e.cut(mark)
	return v, err
}

// keep evaluates x, whose value stays while others are computed: together they have a limit. Whoever has asked sets live
// back when it is done with the value. What lies in the document or in an expression takes no room.
func (e *Env) keep(x Expr) (bson.Value, error) {
	made := e.made
	v, err := x.Eval(e)
	if err == nil && e.ticks >= ticksPerAsk {
		err = e.tired()
	}
	if err != nil {
		return v, err
	}
	e.live += min(e.made-made, len(v.Data))
	if bytes := e.live + len(e.stack)*valueBytes; bytes > MaxArrayBytes {
		return v, mongoerr.New(mongoerr.ExceededMemoryLimit,
			"Expression would use too much memory (%d bytes) and cannot spill to disk. Memory limit: %d bytes", bytes, MaxArrayBytes)
	}
	return v, nil
}

// CopyVariables gives to the variables of e, as a pipeline inside of a stage sees those around it.
func (e *Env) CopyVariables(to *Env) {
	to.vars, to.SearchMeta = append(to.vars[:0], e.vars...), e.SearchMeta
}
