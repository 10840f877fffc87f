package serverlog

import (
	"fmt"
	"log/slog"
	"runtime"
)

// maxFrames is how much of a stack is logged.
const maxFrames = 64

// Stack is the attribute with the caller's stack, innermost first: a list of "function file:line", so that an event stays one
// line and can be read.
func Stack() slog.Attr {
	var pcs [maxFrames]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	var lines []string
	for {
		f, more := frames.Next()
		lines = append(lines, fmt.Sprintf("%s %s:%d", f.Function, f.File, f.Line))
		if !more {
			return slog.Any("stack", lines)
		}
	}
}

// Panic is what somebody has panicked with: an error of the language, or a text that may have clients' data in it.
func Panic(v any) slog.Value {
	if e, ok := v.(runtime.Error); ok {
		return slog.StringValue(e.Error())
	}
	return slog.AnyValue(Client(fmt.Sprint(v)))
}
