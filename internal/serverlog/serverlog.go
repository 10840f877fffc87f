// Package serverlog writes the server's log: a line of JSON an event, in the shape of mongod's, the last of them kept
// for getLog. It must not know who logs.
package serverlog

import (
	"bytes"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
)

const (
	// keptLines is how many lines getLog can show.
	keptLines = 1024
	// keptLineBytes is how much of a line is kept.
	keptLineBytes = 1024
	// maxPending bounds what waits for SetOutput; lines beyond are only kept for getLog.
	maxPending = 1 << 20
	// keptWarnings is how many lines about the start are kept, and startupTag is what tells them.
	keptWarnings = 64
	startupTag   = "startupWarnings"
	startupField = `"tags":["` + startupTag + `"]` // the quotes of a text are escaped
	// attrGroup is where a line has its attributes.
	attrGroup = "attr"
	// timeLayout is mongod's, to the millisecond.
	timeLayout = "2006-01-02T15:04:05.000-07:00"
)

// Log is where the lines of one server go.
type Log struct {
	level  slog.LevelVar
	root   *slog.Logger
	redact atomic.Bool

	mu struct {
		sync.Mutex // guards writing, so that lines stay whole and in order
		out        io.Writer
		pending    []byte   // what came before there was an output
		kept       []string // a ring, the oldest at total % keptLines once it is full
		total      int
		startup    []string
	}
}

// New returns a Log that writes to out; nil makes the lines wait for SetOutput. Verbosity is mongod's: 0 for what an operator needs, up to 5.
func New(out io.Writer, verbosity int) *Log {
	l := &Log{}
	l.mu.out = out
	l.SetVerbosity(verbosity)
	l.root = slog.New(&handler{log: l, lines: l.jsonLines()})
	return l
}

func (l *Log) jsonLines() slog.Handler {
	return slog.NewJSONHandler(l, &slog.HandlerOptions{Level: &l.level, ReplaceAttr: shape})
}

// SetOutput makes the lines go to out from now on, those first that waited for it.
func (l *Log) SetOutput(out io.Writer) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.out = out
	_, err := out.Write(l.mu.pending)
	l.mu.pending = nil
	return err
}

// SetVerbosity changes what is logged from now on.
func (l *Log) SetVerbosity(verbosity int) {
	if verbosity <= 0 {
		l.level.Set(slog.LevelInfo)
		return
	}
	l.level.Set(slog.LevelDebug - slog.Level(verbosity-1))
}

// Logger is the logger that all others of the Log come from. Of finds the Log behind it again.
func (l *Log) Logger() *slog.Logger { return l.root }

// For is the logger of one component, one of mongod's: NETWORK, STORAGE, COMMAND, INDEX, CONTROL …
func (l *Log) For(component string) *slog.Logger {
	return l.root.With("c", component).WithGroup(attrGroup)
}

// Startup is the logger of what an operator should know since the start, which getLog keeps apart.
func (l *Log) Startup() *slog.Logger {
	return l.root.With("c", "CONTROL", "tags", []string{startupTag}).WithGroup(attrGroup)
}

// StartupWarnings is what went to Startup.
func (l *Log) StartupWarnings() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.mu.startup)
}

// Recent is the last lines, the oldest first, and how many there were in all.
func (l *Log) Recent() (lines []string, total int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.total <= keptLines {
		return append(lines, l.mu.kept...), l.mu.total
	}
	oldest := l.mu.total % keptLines
	return append(append(lines, l.mu.kept[oldest:]...), l.mu.kept[:oldest]...), l.mu.total
}

// Write takes one line; it is there for the handler behind For.
func (l *Log) Write(line []byte) (int, error) {
	text := bytes.TrimSuffix(line, []byte("\n"))
	kept := string(text[:min(len(text), keptLineBytes)])
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.mu.kept) < keptLines {
		l.mu.kept = append(l.mu.kept, kept)
	} else {
		l.mu.kept[l.mu.total%keptLines] = kept
	}
	l.mu.total++
	if len(l.mu.startup) < keptWarnings && bytes.Contains(line, []byte(startupField)) {
		l.mu.startup = append(l.mu.startup, kept)
	}
	if l.mu.out != nil {
		return l.mu.out.Write(line)
	}
	if len(l.mu.pending)+len(line) <= maxPending {
		l.mu.pending = append(l.mu.pending, line...)
	}
	return len(line), nil
}

// shape gives slog's own fields mongod's names and forms.
func shape(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.TimeKey:
		return slog.Group("t", slog.String("$date", a.Value.Time().Format(timeLayout)))
	case slog.LevelKey:
		return slog.String("s", severity(a.Value.Any().(slog.Level)))
	case slog.MessageKey:
		return numbered(a)
	}
	return a
}

func severity(level slog.Level) string {
	switch {
	case level >= slog.LevelError:
		return "E"
	case level >= slog.LevelWarn:
		return "W"
	case level >= slog.LevelInfo:
		return "I"
	}
	return "D" + strconv.Itoa(min(max(int(slog.LevelDebug-level)+1, 1), 5))
}

// Discard is a Log that keeps the last lines, and writes none.
func Discard() *Log { return New(io.Discard, 0) }
