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
	stored    func() (bson.Doc, error)
	local     *machine // runs plain functions, and all where there are no workers
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

// Stored gives the functions what is stored for all of them: fields of a document that f reads when a function is called that
// may use them. What Global gives goes before it.
func (r *Runtime) Stored(f func() (bson.Doc, error)) { r.stored = f }

// prepare reads what is stored.
func (r *Runtime) prepare() error {
	if r.stored == nil {
		return nil
	}
	d, err := r.stored()
	if err != nil {
		return err
	}
	r.stored = nil
	r.globals = append(globalsOf(d.Clone()), r.globals...)
	return nil
}

// Call calls f; missing values are undefined on both sides.
func (r *Runtime) Call(f *Function, this bson.Value, args ...bson.Value) (out bson.Value, err error) {
	if m, err := r.here(f, size(args)+len(this.Data)); m != nil || err != nil {
		if err != nil {
			return bson.Missing, err
		}
		return m.call(f, this, args)
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
	if m, err := r.here(f, len(doc)); m != nil || err != nil {
		if err != nil {
			return false, err
		}
		return m.predicate(f, doc)
	}
	err = r.engine.pool.do(r, r.interrupt, func(w *worker) error {
		yes, err = w.predicate(f, doc)
		return err
	})
	return yes && err == nil, err
}

// Emit calls f with doc as `this` and gives take what f passes to the function emit. An error of take ends the call.
func (r *Runtime) Emit(f *Function, doc bson.Doc, take func(key, value bson.Value) error) error {
	if m, err := r.here(f, len(doc)+maxPlainBytes); m != nil || err != nil {
		if err != nil {
			return err
		}
		return m.emit(f, doc, take)
	}
	return r.engine.pool.do(r, r.interrupt, func(w *worker) error { return w.emit(f, doc, take) })
}

// here is the machine in this process for a call of f; nil when the call is a worker's.
func (r *Runtime) here(f *Function, bytes int) (*machine, error) {
	if r.engine.pool != nil {
		if f.program == nil || bytes > maxPlainBytes || len(r.globals) > 0 {
			return nil, r.prepare()
		}
		if r.local == nil {
			r.local = newMachine(r.engine.clock)
		}
		return r.local, nil
	}
	if r.local == nil {
		if err := r.prepare(); err != nil {
			return nil, err
		}
		r.local = newMachine(r.engine.clock)
		r.local.shell()
		r.local.watch = func() func() error { return r.local.watchCall(r.interrupt) }
		if err := r.local.given(r.globals); err != nil {
			return nil, err
		}
	}
	return r.local, nil
}

func size(vs []bson.Value) (n int) {
	for _, v := range vs {
		n += len(v.Data)
	}
	return n
}
