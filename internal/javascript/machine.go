package javascript

import (
	"errors"
	"runtime"
	"runtime/metrics"
	"time"

	"github.com/dop251/goja"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// machine is an interpreter, for one goroutine.
type machine struct {
	vm        *goja.Runtime
	clock     clock.Clock
	functions map[*Function]goja.Callable
	classes   map[string]*goja.Object // prototypes by name
	// watch begins to look after a call; stop ends that and says why the call was ended, if it was.
	watch func() (stop func() error)
	// broken is closed when the call under way is ended from outside.
	broken chan struct{}
}

func newMachine(c clock.Clock) *machine {
	r := &machine{vm: goja.New(), clock: c, functions: make(map[*Function]goja.Callable), classes: make(map[string]*goja.Object),
		watch: func() func() error { return func() error { return nil } }}
	r.vm.SetMaxCallStackSize(MaxCallDepth)
	r.vm.SetTimeSource(c.Now)
	r.define()
	return r
}

// Version is what functions are told to run on.
const Version = "8.2.4"

func (r *machine) call(f *Function, this bson.Value, args []bson.Value) (bson.Value, error) {
	result := bson.Missing
	err := r.guard(func() error {
		js := make([]goja.Value, len(args))
		for i, v := range args {
			js[i] = r.toJS(v)
		}
		v, err := r.invoke(f, r.toJS(this), js...)
		if err != nil {
			return err
		}
		result, err = r.fromJS(v)
		return err
	})
	if err != nil {
		return bson.Missing, err
	}
	return result, nil
}

// guard runs a call with an eye on its limits.
func (r *machine) guard(call func() error) (err error) {
	stop := r.watch()
	defer func() {
		cause := stop()
		switch broken := recover().(type) {
		case nil:
		case *goja.InterruptedError: // outside of what Try catches
			err = failure(broken)
		case runtime.Error: // the interpreter's own fault, as with some sparse arrays
			err = mongoerr.New(mongoerr.JSInterpreterFailure, "InternalError: %s", broken)
		default:
			panic(broken)
		}
		if cause != nil {
			err = cause
		}
	}()
	// Reading the result may run getters of the user's.
	if thrown := r.vm.Try(func() { err = call() }); thrown != nil {
		return failure(thrown)
	}
	return err
}

// invoke calls f.
func (r *machine) invoke(f *Function, this goja.Value, args ...goja.Value) (goja.Value, error) {
	fn, err := r.function(f)
	if err != nil {
		return nil, err
	}
	v, err := fn(this, args...)
	if err != nil {
		return nil, failure(err)
	}
	return v, nil
}

func (r *machine) function(f *Function) (goja.Callable, error) {
	if fn, ok := r.functions[f]; ok {
		return fn, nil
	}
	v, err := r.vm.RunProgram(f.program)
	if err != nil {
		return nil, failure(err)
	}
	fn, ok := goja.AssertFunction(v)
	if !ok {
		return nil, mongoerr.New(mongoerr.JSInterpreterFailure, "the source is no function")
	}
	r.functions[f] = fn
	return fn, nil
}

func failure(err error) error {
	var stack *goja.StackOverflowError
	if errors.As(err, &stack) {
		return mongoerr.New(mongoerr.JSInterpreterFailure, "InternalError: too much recursion")
	}
	var thrown *goja.Exception
	if errors.As(err, &thrown) {
		return mongoerr.New(mongoerr.JSInterpreterFailure, "%s", thrown.Value().String())
	}
	return mongoerr.New(mongoerr.JSInterpreterFailure, "%s", err.Error())
}

// watchCall is what watch is within the server's process: it asks interrupt, and looks at the clock and at the heap.
func (r *machine) watchCall(interrupt func() error) (stop func() error) {
	done, ended, broken := make(chan struct{}), make(chan struct{}), make(chan struct{})
	r.broken = broken
	var cause error
	start, heap := r.clock.Now(), heapBytes()
	go func() {
		defer close(ended)
		for {
			t := r.clock.NewTimer(watchEvery)
			select {
			case <-done:
				t.Stop()
				return
			case <-t.C():
			}
			if cause = r.over(start, heap, interrupt); cause != nil {
				r.vm.Interrupt(cause)
				close(broken)
				return
			}
		}
	}()
	return func() error {
		close(done)
		<-ended
		r.vm.ClearInterrupt()
		return cause
	}
}

func (r *machine) over(start time.Time, heap uint64, interrupt func() error) error {
	if interrupt != nil {
		if err := interrupt(); err != nil {
			return err
		}
	}
	if clock.Since(r.clock, start) > MaxCallTime {
		return errTooLong()
	}
	if now := heapBytes(); now > heap && now-heap > MaxHeapGrowth {
		return errTooMuch(MaxHeapGrowth)
	}
	return nil
}

func heapBytes() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func errTooLong() error {
	return mongoerr.New(mongoerr.JSInterpreterFailure, "JavaScript function ran for more than %s", MaxCallTime)
}

func errTooMuch(bytes uint64) error {
	return mongoerr.New(mongoerr.JSInterpreterFailure, "JavaScript function used more than %d MB of memory", bytes>>20)
}
