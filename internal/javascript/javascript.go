// Package javascript runs users' functions on BSON values within limits of time, memory and recursion. It knows nothing of
// the operators and commands that take such functions.
//
// # Where functions run
//
// The interpreter (goja) is Go code. It parses by recursion, and its native functions (repeat, sort, join, JSON, powers of
// BigInt, regular expressions) neither ask for leave before they allocate nor look up while they work. A few bytes of source
// make it overflow the stack or run out of memory, which no Go program survives, or keep a processor busy for minutes. There
// are hundreds of such places, in code that is not ours, and more with each version. So an Engine with Processes runs
// functions, and parses them, in worker processes: the same program under another verb. A worker has limits of stack and
// memory that the kernel and the Go runtime enforce, and it is killed when its operation ends, whatever it does. A worker
// that dies takes one call with it.
//
// The price is a round trip over two pipes for each call: on a machine of two processors 10 µs, 20 when others are busy, where
// a call within the process takes 3 to 8. A find with $where over 100,000 documents takes 1.5 s then.
// Most $where conditions compare fields: such a function is "plain" (see plain.go), which means that it has no loops, no
// calls, and nothing that could grow. It runs within the server, without a round trip and without anybody who watches it: a
// call takes 1 µs, the 100,000 documents 0.4 s. A worker is started within 10 ms, and one at rest takes 35 MB, most of which
// is the program that the server has in memory anyway.
//
// A program that embeds the server and has no second verb to offer may run functions within its own process (InProcess).
// That holds against mistakes, not against enemies.
//
// # What always holds
//
//   - In the server's own process no more than maxPlain bytes of source are parsed, and only if their words are those of a
//     plain function.
//   - A worker in a call has exactly one Runtime. Between calls another Runtime may be given the worker, which then begins
//     with fresh global variables, and the first one, at its next call, with fresh ones in another.
//   - There are at most maxWorkers workers. Who finds all of them in calls waits for its turn, or until it is interrupted.
//   - What a worker has of the machine's memory, without the pages of the program's file, is taken from the Governor: a little
//     before it is started, and a step more than it has each time that it is looked at. Where there is none for a new worker, a
//     call waits for one that others have, or for memory, for as long as the Governor lets it. A worker that has more than there
//     is to give is ended, and its call fails with the Governor's error. Without a call it is ended when memory is short.
package javascript

import (
	"strings"
	"time"

	"github.com/dop251/goja"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Limits of one call.
const (
	// MaxCallTime ends a call that runs for longer.
	MaxCallTime = 30 * time.Second
	// MaxHeapGrowth ends a call within this process during which its heap grows by more. The interpreter cannot count for one
	// script, so this is a fuse and no measure.
	MaxHeapGrowth = 512 << 20
	// MaxCallDepth is how deep functions may call.
	MaxCallDepth = 512
	// MaxSource is the longest source of a function.
	MaxSource = 1 << 20
	// maxSourceInProcess is the longest source where the parser's stack is this process's. A level of nesting takes up to
	// 4 KB of it, and 1 GB is the end of the process.
	maxSourceInProcess = 64 << 10
	// watchEvery is how often a running call is looked at.
	watchEvery = 10 * time.Millisecond
)

// Engine is where functions run. A nil Engine has no JavaScript.
type Engine struct {
	clock clock.Clock
	pool  *pool // nil: in this process
}

// InProcess is an Engine that runs functions in this process, for tests and for those who trust their clients. Dates in
// functions are those of c.
func InProcess(c clock.Clock) *Engine { return &Engine{clock: c} }

// Resident is how much of the machine's memory the workers have.
func (e *Engine) Resident() int64 {
	if e == nil || e.pool == nil {
		return 0
	}
	return e.pool.resident()
}

// Close ends the workers. Nothing may run any more, nor be run later.
func (e *Engine) Close() {
	if e != nil && e.pool != nil {
		e.pool.close()
	}
}

// Function is source that was found to be good. It is immutable and may be used by any number of Runtimes of its Engine.
type Function struct {
	source, text string
	program      *goja.Program // nil when only workers have it
}

// Compile looks whether source is a function, or an expression or statements that are its body. Interrupt, which may be nil,
// is asked from another goroutine while that goes on.
func (e *Engine) Compile(source string, interrupt func() error) (*Function, error) {
	most := MaxSource
	if e.pool == nil {
		most = maxSourceInProcess
	}
	if len(source) > most {
		return nil, mongoerr.New(mongoerr.JSInterpreterFailure, "JavaScript function is longer than %d bytes", most)
	}
	text, ok := plainFunction(source)
	f := &Function{source: source, text: text}
	var err error
	switch {
	case ok:
		f.program, err = parse(text)
	case e.pool != nil:
		f.text = source
		return f, e.pool.check(f, interrupt)
	default:
		f.program, err = parse(function(source))
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Source is the function as it was given.
func (f *Function) Source() string { return f.source }

// parse compiles the text of a function.
func parse(text string) (*goja.Program, error) {
	p, err := goja.Compile("", "("+text+"\n)", false)
	if err != nil {
		return nil, mongoerr.New(mongoerr.JSInterpreterFailure, "%s", strings.TrimPrefix(err.Error(), "SyntaxError: SyntaxError: "))
	}
	return p, nil
}
