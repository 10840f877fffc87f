package javascript

import (
	"bufio"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

const (
	// maxStack bounds the stack of a worker, which parses and calls by recursion. JSON and the like recurse without a limit
	// of their own.
	maxStack = 128 << 20
	// overhead is what a worker may use beside its heap: the program, stacks, and what is being moved.
	overhead = 256 << 20
	// maxCompiled is how many functions that were checked a worker keeps.
	maxCompiled = 64
)

// Work is a worker: it answers what the server asks on in, until in ends, with a heap of no more than heap bytes.
func Work(in io.Reader, out io.Writer, heap int64) error {
	debug.SetMaxStack(maxStack)
	debug.SetMemoryLimit(heap - heap/4)
	confine(uint64(heap + overhead))
	w := &work{out: bufio.NewWriterSize(out, 32<<10), heap: uint64(heap), parent: os.Getppid(), compiled: make(map[string]*Function)}
	w.patrol = startPatrol(idleTime, w.look)
	defer w.patrol.end()
	from := bufio.NewReaderSize(in, 32<<10)
	for {
		var head [frameHead]byte
		kind, body, err := receive(from, &head)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if w.buf, err = w.answer(kind, body).send(w.out); err == nil {
			err = w.out.Flush()
		}
		if err != nil {
			return err
		}
	}
}

// work is a worker, seen from within.
type work struct {
	out      *bufio.Writer
	buf      []byte
	heap     uint64
	parent   int
	compiled map[string]*Function
	machine  *machine
	current  atomic.Pointer[machine] // the one in a call
	tooMuch  atomic.Bool
	defined  []*Function
	patrol   *patrol
}

// look interrupts a call that uses too much memory. The server sees to the rest, unless it is gone.
func (w *work) look() {
	m := w.current.Load()
	if m == nil {
		return
	}
	if os.Getppid() != w.parent {
		os.Exit(1)
	}
	if heapBytes() <= w.heap {
		return
	}
	runtime.GC()
	if heapBytes() > w.heap {
		w.tooMuch.Store(true)
		m.vm.Interrupt(errTooMuch(w.heap))
	}
}

// watch is a machine's.
func (w *work) watch() (stop func() error) {
	w.current.Store(w.machine)
	w.patrol.begin()
	return w.unwatch
}

func (w *work) unwatch() error {
	w.patrol.finish()
	w.current.Store(nil)
	if !w.tooMuch.Load() {
		return nil
	}
	w.tooMuch.Store(false)
	w.machine.vm.ClearInterrupt()
	return errTooMuch(w.heap)
}

func (w *work) answer(kind byte, body []byte) frame {
	f, err := w.do(kind, body)
	if err != nil {
		return failedFrame(w.buf, err)
	}
	return f
}

func (w *work) do(kind byte, body []byte) (frame, error) {
	done := newFrame(w.buf, frameDone)
	switch kind {
	case frameCheck:
		_, err := w.compile(string(body))
		return done, err
	case frameReset:
		w.machine = newMachine(clock.Wall())
		w.machine.shell()
		w.machine.watch = w.watch
		w.defined = nil
		return done, w.machine.given(globalsOf(bson.Doc(body)))
	}
	r := reader{body}
	n, err := r.number()
	if err != nil {
		return nil, err
	}
	if kind == frameDefine {
		f, err := w.compile(string(r.rest))
		if err == nil {
			w.defined = append(w.defined, f)
		}
		return done, err
	}
	if int(n) >= len(w.defined) {
		return nil, mongoerr.New(mongoerr.InternalError, "a JavaScript function that was not defined")
	}
	return w.run(kind, w.defined[n], &r)
}

func (w *work) compile(text string) (*Function, error) {
	if f := w.compiled[text]; f != nil {
		return f, nil
	}
	p, err := parse(function(text))
	if err != nil {
		return nil, err
	}
	if len(w.compiled) >= maxCompiled {
		clear(w.compiled)
	}
	f := &Function{text: text, program: p}
	w.compiled[text] = f
	return f, nil
}

func (w *work) run(kind byte, f *Function, r *reader) (frame, error) {
	switch kind {
	case frameCall:
		var vs []bson.Value
		for len(r.rest) > 0 {
			v, err := r.value()
			if err != nil {
				return nil, err
			}
			vs = append(vs, v)
		}
		v, err := w.machine.call(f, vs[0], vs[1:])
		return newFrame(w.buf, frameValue).value(v), err
	case framePredicate:
		yes, err := w.machine.predicate(f, bson.Doc(r.rest))
		if yes {
			return newFrame(w.buf, frameTrue), err
		}
		return newFrame(w.buf, frameFalse), err
	case frameEmit:
		return w.emit(f, bson.Doc(r.rest))
	}
	return nil, mongoerr.New(mongoerr.InternalError, "a frame of kind %q", kind)
}

// emit sends what was emitted in frames of emittedBytes.
func (w *work) emit(f *Function, doc bson.Doc) (frame, error) {
	out := newFrame(w.buf, frameEmitted)
	flush := func() (err error) {
		out, err = out.send(w.out)
		out = newFrame(out, frameEmitted)
		return err
	}
	err := w.machine.emit(f, doc, func(key, value bson.Value) error {
		if out = out.value(key).value(value); len(out) < emittedBytes {
			return nil
		}
		return flush()
	})
	if err == nil && len(out) > frameHead {
		err = flush()
	}
	return newFrame(w.buf[:0:0], frameDone), err
}
