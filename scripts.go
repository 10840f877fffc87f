package ebb

import (
	"fmt"
	"io"
	"strconv"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/host"
	"github.com/ebbdb/ebb/internal/javascript"
	"github.com/ebbdb/ebb/internal/memory"
	"github.com/ebbdb/ebb/internal/serverlog"
)

// WorkScripts is what a program named by Options.ScriptCommand does: it runs the scripts that come on in, its standard
// input, answers on out, its standard output, and returns when the server has gone. Limit is the argument that it was given
// in addition.
func WorkScripts(in io.Reader, out io.Writer, limit string) error {
	heap, err := strconv.ParseInt(limit, 10, 64)
	if err != nil || heap <= 0 {
		return fmt.Errorf("%q is no limit of a heap in bytes", limit)
	}
	return javascript.Work(in, out, heap)
}

// scriptEngine is where scripts run; nil is nowhere.
func scriptEngine(o Options, log *serverlog.Log, g *memory.Governor) *javascript.Engine {
	switch {
	case o.NoJavaScript:
		return nil
	case len(o.ScriptCommand) > 0:
		return javascript.InWorkers(clock.Wall(), javascript.Processes{
			Command: o.ScriptCommand, Memory: host.Look().MemoryLimit, Governor: g, Log: log.For("COMMAND"),
		})
	case o.ScriptsInProcess:
		return javascript.InProcess(clock.Wall())
	}
	return nil
}
