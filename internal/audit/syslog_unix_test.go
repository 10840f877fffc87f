//go:build unix

package audit

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSyslog(t *testing.T) {
	dir, err := os.MkdirTemp("", "ebb") // whose name is short, as that of a socket has to be
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	at := filepath.Join(dir, "log")
	socket, err := net.ListenPacket("unixgram", at)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	s, err := dialSyslog("unixgram", at)
	if err != nil {
		t.Fatal(err)
	}
	l := &Log{log: slog.New(slog.DiscardHandler), sink: s}
	if err := l.Write(event("createCollection")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 4096)
	n, _, err := socket.ReadFrom(got)
	if text := string(got[:n]); err != nil || !strings.HasPrefix(text, "<14>") || !strings.Contains(text, "ebb[") || !strings.Contains(text, strings.TrimSuffix(line, "\n")) {
		t.Errorf("%q, %v", text, err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestFullDisk: what does not fit leaves nothing, and the server learns of it.
func TestFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("the system has no device that is always full")
	}
	l, err := Open(Options{Destination: ToFile, Format: JSON, Path: "/dev/full"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.Write(event("createUser")); err != nil || l.lost.Load() != 1 || !l.failing.Load() {
		t.Errorf("%v, %d lost", err, l.lost.Load())
	}
}
