package diskwatch

import (
	"bytes"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv/hangdisk"
)

// TestHangingDisk: a disk from which nothing comes back is told of once, and when it goes on; one that is slow is not.
func TestHangingDisk(t *testing.T) {
	fake := clock.NewFake(time.UnixMilli(0))
	disk := hangdisk.New()
	var log bytes.Buffer
	w := &Watch{clock: fake, log: slog.New(slog.NewTextHandler(&log, nil))}
	w.mu.calls = map[uint64]call{}
	f, err := w.Over(disk).Create("000001.log", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	told := func(hangs, ends int) {
		t.Helper()
		w.look()
		w.look()
		if h, e := strings.Count(log.String(), "The disk hangs"), strings.Count(log.String(), "does not hang any more"); h != hangs || e != ends || w.Stalls() != int64(hangs) {
			t.Errorf("it is told %d and %d times, not %d and %d:\n%s", h, e, hangs, ends, log.String())
		}
	}
	fake.Advance(time.Hour)
	if told(0, 0); w.Stalled() != 0 {
		t.Error("a disk hangs that has nothing to do")
	}
	disk.Hang("")
	came := make(chan error)
	waiting := func(n int) {
		for {
			w.mu.Lock()
			got := len(w.mu.calls)
			w.mu.Unlock()
			if got == n {
				return
			}
			runtime.Gosched()
		}
	}
	go func() { came <- f.Sync() }()
	waiting(1)
	fake.Advance(Patience - 1)
	told(0, 0)
	fake.Advance(1)
	told(1, 0)
	if got := w.Stalled(); got != Patience {
		t.Error(got)
	}
	if text := log.String(); !strings.Contains(text, "waitsFor=\"to sync\" file=000001.log") {
		t.Error(text)
	}
	disk.GoOn()
	if err := <-came; err != nil {
		t.Fatal(err)
	}
	waiting(0)
	told(1, 1)

	slow := w.begin(toWrite, "000002.sst")
	for range 10 { // something comes back now and then
		fake.Advance(Patience - 1)
		told(1, 1)
		if err := f.SyncData(); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 { // the machine's memory takes what is written, and nothing reaches the disk
		fake.Advance(Patience / 2)
		if _, err := f.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
	}
	told(2, 1)
	w.end(slow, false)
	told(2, 2)
}
