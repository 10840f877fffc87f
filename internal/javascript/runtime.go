package javascript

import (
	"github.com/ebbdb/ebb/internal/bson"
)

// Runtime runs functions for one goroutine. What functions leave in global variables stays in it while it can; see the
// package's comment.
type Runtime struct {
	engine    *Engine
	interrupt func() error
	globals   []global
	local     *machine // runs plain functions, and all where there are no workers
	numbers   map[*Function]uint32
}

type global struct {
	name  string
	value bson.Value
}

// Runtime returns a Runtime. Interrupt, which may be nil, is asked from another goroutine while a call runs; its error ends
// the call and is returned.
func (e *Engine) Runtime(interrupt func() error) *Runtime {
	return &Runtime{engine: e, interrupt: interrupt}
}

// Global gives the functions a global variable. No function may have been called yet.
func (r *Runtime) Global(name string, v bson.Value) {
	r.globals = append(r.globals, global{name, v})
}

// Call calls f; missing values are undefined on both sides.
func (r *Runtime) Call(f *Function, this bson.Value, args ...bson.Value) (out bson.Value, err error) {
	if r.here(f, size(args)+len(this.Data)) {
		return r.machine().call(f, this, args)
	}
	err = r.engine.pool.do(r, r.interrupt, func(w *worker) error {
		out, err = w.call(f, this, args)
		return err
	})
	if err != nil {
		return bson.Missing, err
	}
	return out, nil
}

// Predicate calls f without arguments and says what JavaScript takes its result for, true or false. The document is both
// `this` and the global variable obj.
func (r *Runtime) Predicate(f *Function, doc bson.Doc) (yes bool, err error) {
	if r.here(f, len(doc)) {
		return r.machine().predicate(f, doc)
	}
	err = r.engine.pool.do(r, r.interrupt, func(w *worker) error {
		yes, err = w.predicate(f, doc)
		return err
	})
	return yes && err == nil, err
}

// Emit calls f with doc as `this` and gives take what f passes to the function emit. An error of take ends the call.
func (r *Runtime) Emit(f *Function, doc bson.Doc, take func(key, value bson.Value) error) error {
	if r.engine.pool == nil {
		return r.machine().emit(f, doc, take)
	}
	return r.engine.pool.do(r, r.interrupt, func(w *worker) error { return w.emit(f, doc, take) })
}

// here says whether a call of f runs in this process.
func (r *Runtime) here(f *Function, bytes int) bool {
	return r.engine.pool == nil || f.program != nil && bytes <= maxPlainBytes && len(r.globals) == 0
}

func size(vs []bson.Value) (n int) {
	for _, v := range vs {
		n += len(v.Data)
	}
	return n
}

func (r *Runtime) machine() *machine {
	if r.local == nil {
		r.local = newMachine(r.engine.clock)
		for _, g := range r.globals {
			r.local.global(g.name, g.value)
		}
		if r.engine.pool == nil {
			r.local.watch = func() func() error { return r.local.watchCall(r.interrupt) }
		}
	}
	return r.local
}
