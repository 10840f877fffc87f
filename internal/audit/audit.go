// Package audit writes what is to be known afterwards of who did what: an event a document, in the form of MongoDB's audit log, to a file,
// to the system's log or to standard output. It knows neither commands nor who asks for an event.
package audit

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/serverlog"
)

// Where events go.
const (
	ToFile    = "file"
	ToSyslog  = "syslog"
	ToConsole = "console"
)

// In which form they go there.
const (
	JSON = "JSON"
	BSON = "BSON"
)

// Options say what is written, and where.
type Options struct {
	// Destination is ToFile, ToSyslog or ToConsole; the last two take JSON alone.
	Destination string
	// Format is JSON or BSON, and Path the file.
	Format, Path string
	// Filter is a match expression over events, as a BSON document; nil takes them all.
	Filter []byte
	// Reopen has a rotation go on in the file that is under the name then, which somebody else has moved.
	Reopen bool
	// StopOnFailure has the server end when an event cannot be written. Without it that is logged and counted.
	StopOnFailure bool
}

// ErrFailed is what Write returns where an event could not be written and that is to end the server.
var ErrFailed = errors.New("the audit log cannot be written")

// sink is where events go. One event is written at a time.
type sink interface {
	write(event bson.Doc) error
	// sync has what was written be on stable storage.
	sync() error
	rotate(now time.Time) (kept string, err error)
	close() error
}

// Log is the audit log of one server.
type Log struct {
	options Options
	log     *slog.Logger
	filter  *match.Filter
	sink    sink

	events, filtered, lost atomic.Int64
	failing                atomic.Bool

	mu sync.Mutex // one event at a time, so that they stay whole and in order
}

// Open opens the log. What goes wrong later is told to log.
func Open(o Options, log *slog.Logger) (*Log, error) { return open(o, log, os.Stdout) }

func open(o Options, log *slog.Logger, console io.Writer) (*Log, error) {
	l := &Log{options: o, log: log}
	var err error
	if o.Filter != nil {
		if l.filter, err = parseFilter(o.Filter); err != nil {
			return nil, fmt.Errorf("the filter of the audit log: %w", err)
		}
	}
	switch o.Destination {
	case ToFile:
		l.sink, err = openFile(o)
	case ToSyslog:
		l.sink, err = openSyslog()
	case ToConsole:
		l.sink = &lines{console}
	default:
		err = fmt.Errorf("%q is no destination", o.Destination)
	}
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	return l, nil
}

func parseFilter(d bson.Doc) (*match.Filter, error) {
	return match.NewParser().Parse(d, match.Options{Exprs: expr.NewParser(expr.Options{}), Allow: match.AllowMatch})
}

// CheckFilter says what is wrong with a filter.
func CheckFilter(d bson.Doc) error {
	_, err := parseFilter(d)
	return err
}

// Write writes an event, if the filter takes it, and returns ErrFailed where that fails and is to end the server.
func (l *Log) Write(e Event) error {
	doc := e.Doc()
	if !l.wants(doc) {
		l.filtered.Add(1)
		return nil
	}
	err := l.append(doc)
	if err == nil && e.Lasting {
		err = l.sink.sync()
	}
	if err == nil {
		l.events.Add(1)
		if l.failing.CompareAndSwap(true, false) {
			l.log.Info("The audit log is written again", "lost", l.lost.Load())
		}
		return nil
	}
	l.lost.Add(1)
	if !l.failing.Swap(true) { // and again when it is written again
		l.log.Error("The audit log cannot be written; events are lost", "atype", e.Type, "error", err.Error())
	}
	if l.options.StopOnFailure {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	return nil
}

func (l *Log) wants(doc bson.Doc) bool {
	if l.filter == nil {
		return true
	}
	ok, err := l.filter.Match(expr.NewParser(expr.Options{}).NewEnv(), doc)
	return ok || err != nil // rather one event too many
}

func (l *Log) append(doc bson.Doc) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sink.write(doc)
}

// Rotate begins a new file, where there is one, and says what the old one is called now.
func (l *Log) Rotate(now time.Time) (kept string, err error) { return l.sink.rotate(now) }

// Close ends the log.
func (l *Log) Close() error { return l.sink.close() }

// AppendStatus appends what serverStatus tells of the log.
func (l *Log) AppendStatus(b *bson.Builder) {
	b.String("destination", l.options.Destination).Int64("events", l.events.Load()).Int64("filtered", l.filtered.Load()).
		Int64("lost", l.lost.Load()).Bool("failing", l.failing.Load())
}

// lines writes a line of JSON an event.
type lines struct{ to io.Writer }

func (s *lines) write(event bson.Doc) error {
	_, err := s.to.Write(append(appendJSON(nil, event.Value()), '\n'))
	return err
}

func (*lines) sync() error                      { return nil }
func (*lines) rotate(time.Time) (string, error) { return "", nil }
func (*lines) close() error                     { return nil }

// file is a file of lines of JSON, or of BSON documents one behind the other.
type file struct {
	*serverlog.File
	bson, reopen bool
}

func openFile(o Options) (*file, error) {
	f, err := serverlog.OpenFile(o.Path)
	if err != nil {
		return nil, err
	}
	if err := f.Narrow(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &file{f, o.Format == BSON, o.Reopen}, nil
}

func (f *file) write(event bson.Doc) error {
	if f.bson {
		return f.Append(event)
	}
	return f.Append(append(appendJSON(nil, event.Value()), '\n'))
}

func (f *file) sync() error { return f.Sync() }

func (f *file) rotate(now time.Time) (string, error) {
	if f.reopen {
		return "", f.Reopen()
	}
	return f.Rotate(now)
}

func (f *file) close() error { return f.Close() }
