package javascript

import (
	"bufio"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/memory"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// worker is a process that runs functions, seen from the server.
type worker struct {
	pool   *pool
	cmd    *exec.Cmd
	in     *os.File
	pipe   *os.File
	out    *bufio.Reader
	head   [frameHead]byte
	buf    []byte // for the next frame
	stderr tail
	ended  chan struct{} // closed when the process is no more

	// owner's global variables it has; no other worker has them. busy says that it is in a call, until used that was the last. The
	// pool's lock guards them.
	owner *Runtime
	busy  bool
	used  time.Time

	numbers map[*Function]uint32 // of the functions that it has; for its call alone

	// What it has of the machine's memory, and what it was given of the Governor's.
	resident, granted atomic.Int64

	now struct {
		sync.Mutex
		room      memory.Account
		measured  time.Time
		since     time.Time // zero: there is no call
		interrupt func() error
		cause     error // why it was killed
	}
}

// start starts a worker that has room.
func (p *pool) start(room memory.Account) (*worker, error) {
	w := &worker{pool: p, ended: make(chan struct{})}
	w.now.room = room
	w.granted.Store(room.Used())
	in, w2, err := os.Pipe()
	if err != nil {
		return nil, failedToStart(err)
	}
	r2, out, err := os.Pipe()
	if err != nil {
		_ = in.Close()
		_ = w2.Close()
		return nil, failedToStart(err)
	}
	w.in, w.pipe, w.out = w2, r2, bufio.NewReaderSize(r2, 32<<10)
	w.cmd = exec.Command(p.command[0], append(p.command[1:len(p.command):len(p.command)], strconv.FormatInt(p.heap, 10))...)
	w.cmd.Stdin, w.cmd.Stdout, w.cmd.Stderr = in, out, &w.stderr
	w.cmd.Env = []string{"GOMAXPROCS=1", "GOTRACEBACK=none"}
	w.cmd.SysProcAttr = apart()
	err = w.cmd.Start()
	_ = in.Close()
	_ = out.Close()
	if err != nil {
		_ = w2.Close()
		_ = r2.Close()
		return nil, failedToStart(err)
	}
	go func() {
		_ = w.cmd.Wait() // stderr tells why
		close(w.ended)
	}()
	return w, nil
}

func failedToStart(err error) error {
	return mongoerr.New(mongoerr.JSInterpreterFailure, "cannot start a process for JavaScript: %s", err)
}

// end kills the process, unless it is over, and waits for that.
func (w *worker) end() {
	_ = w.cmd.Process.Kill()
	<-w.ended
	_ = w.in.Close()
	_ = w.pipe.Close()
	w.now.Lock()
	defer w.now.Unlock()
	w.now.room.Close()
}

// over says whether the process has ended by itself.
func (w *worker) over() bool {
	select {
	case <-w.ended:
		return true
	default:
		return false
	}
}

func (w *worker) begin(interrupt func() error) {
	w.now.Lock()
	w.now.since, w.now.interrupt, w.now.cause = clock.Wall().Now(), interrupt, nil
	w.now.Unlock()
	w.pool.patrol.begin()
}

// finish ends what begin began, and says why the process was killed meanwhile, if it was.
func (w *worker) finish() error {
	w.pool.patrol.finish()
	w.now.Lock()
	defer w.now.Unlock()
	w.now.since, w.now.interrupt = time.Time{}, nil
	return w.now.cause
}

// look sees to the memory that the process has, and kills it when its call has to end. Another goroutine than the call's calls it.
func (w *worker) look() {
	w.now.Lock()
	defer w.now.Unlock()
	short := w.measure()
	if w.now.since.IsZero() || w.now.cause != nil {
		return
	}
	w.now.cause = short
	if w.now.cause == nil && w.now.interrupt != nil {
		w.now.cause = w.now.interrupt()
	}
	if w.now.cause == nil && clock.Since(clock.Wall(), w.now.since) > MaxCallTime {
		w.now.cause = errTooLong()
	}
	if w.now.cause != nil {
		_ = w.cmd.Process.Kill()
	}
}

// why is the error for a call during which the process ended by itself, from what it has said at its end.
func (w *worker) why() error {
	last := w.stderr.String()
	switch {
	case strings.Contains(last, "stack overflow"), strings.Contains(last, "stack exceeds"):
		return mongoerr.New(mongoerr.JSInterpreterFailure, "InternalError: too much recursion")
	case last == "", strings.Contains(last, "out of memory"), strings.Contains(last, "cannot allocate"), strings.Contains(last, "out of range"):
		// Without a word: the kernel has ended it, since memory was short.
		return errTooMuch(uint64(w.pool.heap))
	}
	line, _, _ := strings.Cut(last, "\n")
	return mongoerr.New(mongoerr.JSInterpreterFailure, "InternalError: the JavaScript interpreter has failed: %s", line)
}

// ask sends a frame and receives one.
func (w *worker) ask(f frame) (kind byte, body []byte, err error) {
	if w.buf, err = f.send(w.in); err != nil {
		return 0, nil, err
	}
	return w.next()
}

// next receives a frame; one of failure is an error.
func (w *worker) next() (kind byte, body []byte, err error) {
	kind, body, err = receive(w.out, &w.head)
	if err == nil && kind == frameFailed {
		err = failed(body)
	}
	return kind, body, err
}

// reset gives the worker fresh global variables, those of r.
func (w *worker) reset(r *Runtime) error {
	w.numbers = make(map[*Function]uint32)
	globals := bson.Build()
	for _, g := range r.globals {
		globals.Value(g.name, g.value)
	}
	_, _, err := w.ask(append(newFrame(w.buf, frameReset), globals.Doc()...))
	return err
}

// define makes sure that the worker has f, and returns its number.
func (w *worker) define(f *Function) (uint32, error) {
	n, ok := w.numbers[f]
	if ok {
		return n, nil
	}
	n = uint32(len(w.numbers))
	if _, _, err := w.ask(newFrame(w.buf, frameDefine).number(n).text(f.text)); err != nil {
		return 0, err
	}
	w.numbers[f] = n
	return n, nil
}

func (w *worker) call(f *Function, this bson.Value, args []bson.Value) (bson.Value, error) {
	n, err := w.define(f)
	if err != nil {
		return bson.Missing, err
	}
	fr := newFrame(w.buf, frameCall).number(n).value(this)
	for _, v := range args {
		fr = fr.value(v)
	}
	_, body, err := w.ask(fr)
	if err != nil {
		return bson.Missing, err
	}
	r := reader{body}
	return r.value()
}

func (w *worker) predicate(f *Function, doc bson.Doc) (bool, error) {
	n, err := w.define(f)
	if err != nil {
		return false, err
	}
	kind, _, err := w.ask(append(newFrame(w.buf, framePredicate).number(n), doc...))
	return kind == frameTrue, err
}

func (w *worker) emit(f *Function, doc bson.Doc, take func(key, value bson.Value) error) error {
	n, err := w.define(f)
	if err != nil {
		return err
	}
	kind, body, err := w.ask(append(newFrame(w.buf, frameEmit).number(n), doc...))
	for ; err == nil && kind == frameEmitted; kind, body, err = w.next() {
		for r := (reader{body}); len(r.rest) > 0; {
			key, err := r.value()
			if err != nil {
				return err
			}
			value, err := r.value()
			if err != nil {
				return err
			}
			if err := take(key, value); err != nil {
				return refused{err}
			}
		}
	}
	return err
}

// refused is an error of whoever takes results. The rest of them is still in the pipe.
type refused struct{ error }

// tail keeps the beginning of what a process says at its end.
type tail struct {
	mu struct {
		sync.Mutex
		text []byte
	}
}

// maxTail is how much of it is kept.
const maxTail = 2 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.text = append(t.mu.text, b[:min(len(b), maxTail-len(t.mu.text))]...)
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.mu.text)
}

// Executable is the program that runs, also when its file has been replaced since.
func Executable() (string, error) {
	if runtime.GOOS == "linux" {
		if _, err := os.Stat("/proc/self/exe"); err == nil {
			return "/proc/self/exe", nil
		}
	}
	return os.Executable()
}
