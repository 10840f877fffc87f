package pebblekv

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
)

// pebbleLogger hands Pebble's lines to slog.
type pebbleLogger struct {
	log     *slog.Logger
	failure *failure
}

func (l pebbleLogger) Infof(format string, args ...any) { l.log.Debug(fmt.Sprintf(format, args...)) }

func (l pebbleLogger) Errorf(format string, args ...any) { l.log.Error(fmt.Sprintf(format, args...)) }

// Fatalf must not return: Pebble relies on nothing happening after it. What we have called panics, which we catch. A goroutine of
// Pebble's own stops for good, with what it has locked: a panic there would end the process, which is not ours to end.
func (l pebbleLogger) Fatalf(format string, args ...any) {
	err := fmt.Errorf("pebble: "+format, args...)
	if isCaught() {
		l.failure.set(err)
		panic(err)
	}
	l.failure.stuck.Store(true)
	l.failure.set(err)
	select {}
}

// isCaught says whether a panic here is.
func isCaught() bool {
	return isCalledBy("pebblekv.(*committer).write", "pebblekv.(*committer).cutOff", "pebblekv.(*committer).ingest", "pebblekv.openPebble")
}

// isCalledBy says whether one of the functions waits for this to return.
func isCalledBy(functions ...string) bool {
	var callers [64]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers[:])])
	for {
		frame, more := frames.Next()
		if slices.Contains(functions, frame.Function[strings.LastIndexByte(frame.Function, '/')+1:]) {
			return true
		}
		if !more {
			return false
		}
	}
}

func events(log *slog.Logger, f *failure, r *room, g *regions) *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: func(err error) {
			if pebble.IsCorruptionError(err) && isCalledBy(flushes) {
				r.damagedOpening(err)
			}
			if merging := errMerging(""); !isFull(err) && !errors.As(err, &merging) { // which room has told, or failure; Pebble tries at once again
				log.Error("store: background work failed; it will be tried again", "err", err)
			}
		},
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			f.damaged(info)
			if isCalledBy(cutsTables) {
				pebbleLogger{log, f}.Fatalf("cut a table that is damaged: %s: %v", info.Path, info.Details)
			}
		},
		CompactionEnd: func(info pebble.CompactionInfo) { r.installed(mergedTable, info.Err) },
		FlushEnd: func(info pebble.FlushInfo) {
			r.installed(flushedTable, info.Err)
			if info.Err == nil && !info.Ingest {
				g.flushed(info.Output)
			}
		},
		DiskSlow: func(info pebble.DiskSlowInfo) { log.Warn("store: the disk is slow", "op", info.String()) },
		WriteStallBegin: func(info pebble.WriteStallBeginInfo) {
			r.stalled.Store(true)
			log.Warn("store: writes wait", "reason", info.Reason)
		},
		WriteStallEnd: func() {
			r.stalled.Store(false)
			log.Warn("store: writes go on")
		},
		LowDiskSpace: func(info pebble.LowDiskSpaceInfo) {
			log.Warn("store: the disk is nearly full", "space", info.String())
		},
	}
}

// cutsTables is what of Pebble's drops what it cannot read (lookBeside). It must not go on with that, whoever called it.
const cutsTables = "v2.(*DB).exciseTable"

// flushes is what of Pebble's makes tables of what is in memory and in the log. A table that was taken over is compared with others
// then. Where one of those is damaged it tries again at once, without end, and the opening of a store waits for it.
const flushes = "v2.(*DB).flush"

var errFailed = errors.New("the store has failed and takes no more writes")
