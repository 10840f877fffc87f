// Package javascript runs users' functions on BSON values within limits of time, memory and recursion. It knows nothing of
// the operators and commands that take such functions.
package javascript

import (
	"errors"
	"regexp"
	"runtime/metrics"
	"strings"
	"sync"
	"time"

	"github.com/dop251/goja"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Limits of one call.
const (
	// MaxCallTime ends a call that runs for longer.
	MaxCallTime = 30 * time.Second
	// MaxHeapGrowth ends a call during which the process's heap grows by more. The engine cannot count for one script, so
	// this is a fuse and no measure.
	MaxHeapGrowth = 512 << 20
	// MaxCallDepth is how deep functions may call.
	MaxCallDepth = 512
	// MaxSource is the longest source of a function.
	MaxSource = 1 << 20
	// watchEvery is how often a running call is looked at.
	watchEvery = 10 * time.Millisecond
)

// Function is compiled source. It is immutable and may be used by any number of Runtimes.
type Function struct {
	source  string
	program *goja.Program
}

// Compile compiles a function, or an expression or statements that are its body.
func Compile(source string) (*Function, error) {
	if len(source) > MaxSource {
		return nil, mongoerr.New(mongoerr.JSInterpreterFailure, "JavaScript function is longer than %d bytes", MaxSource)
	}
	text := strings.TrimRight(strings.TrimSpace(source), "; \t\r\n")
	switch {
	case functionSyntax().MatchString(text):
	case returnSyntax().MatchString(text):
		text = "function() {" + text + "\n}"
	default:
		text = "function() { return " + text + "\n}"
	}
	p, err := goja.Compile("", "("+text+"\n)", false)
	if err != nil {
		return nil, mongoerr.New(mongoerr.JSInterpreterFailure, "%s", strings.TrimPrefix(err.Error(), "SyntaxError: SyntaxError: "))
	}
	return &Function{source, p}, nil
}

var functionSyntax = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:function\b|\([^()]*\)\s*=>|[A-Za-z_$][\w$]*\s*=>)`)
})

var returnSyntax = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\breturn\b|;`) })

// Source is the function as it was given.
func (f *Function) Source() string { return f.source }

// Runtime runs functions for one goroutine. What functions leave in global variables stays in it.
type Runtime struct {
	vm        *goja.Runtime
	clock     clock.Clock
	interrupt func() error
	functions map[*Function]goja.Callable
	classes   map[string]*goja.Object // prototypes by name
	// broken is closed when the call under way is ended from outside.
	broken chan struct{}
}

// New returns a Runtime. Interrupt, which may be nil, is asked from another goroutine while a call runs; its error ends the
// call and is returned.
func New(c clock.Clock, interrupt func() error) *Runtime {
	r := &Runtime{vm: goja.New(), clock: c, interrupt: interrupt, functions: make(map[*Function]goja.Callable), classes: make(map[string]*goja.Object)}
	r.vm.SetMaxCallStackSize(MaxCallDepth)
	r.vm.SetTimeSource(c.Now)
	r.define()
	return r
}

// Call calls f; missing values are undefined on both sides.
func (r *Runtime) Call(f *Function, this bson.Value, args ...bson.Value) (bson.Value, error) {
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
func (r *Runtime) guard(call func() error) (err error) {
	stop := r.watch()
	defer func() {
		cause := stop()
		switch broken := recover().(type) {
		case nil:
		case *goja.InterruptedError: // outside of what Try catches
			err = failure(broken)
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
func (r *Runtime) invoke(f *Function, this goja.Value, args ...goja.Value) (goja.Value, error) {
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

func (r *Runtime) function(f *Function) (goja.Callable, error) {
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

// watch starts to look at the call that follows; stop ends that and says why the call was ended, if it was.
func (r *Runtime) watch() (stop func() error) {
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
			if cause = r.over(start, heap); cause != nil {
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

func (r *Runtime) over(start time.Time, heap uint64) error {
	if r.interrupt != nil {
		if err := r.interrupt(); err != nil {
			return err
		}
	}
	if clock.Since(r.clock, start) > MaxCallTime {
		return mongoerr.New(mongoerr.JSInterpreterFailure, "JavaScript function ran for more than %s", MaxCallTime)
	}
	if now := heapBytes(); now > heap && now-heap > MaxHeapGrowth {
		return mongoerr.New(mongoerr.JSInterpreterFailure, "JavaScript function used more than %d MB of memory", MaxHeapGrowth>>20)
	}
	return nil
}

func heapBytes() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
