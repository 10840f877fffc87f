package ebb_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/javascript"
)

// portOf is the port of an address.
func portOf(t *testing.T, address string) int {
	t.Helper()
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func TestOpenServeClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	for range 2 { // the second one finds the port and the directory free again
		s, err := ebb.Open(ebb.Options{Port: ebb.AnyPort, DBPath: path})
		if err != nil {
			t.Fatal(err)
		}
		if s.DBPath() != path {
			t.Errorf("dbpath %s", s.DBPath())
		}
		if _, err := ebb.Open(ebb.Options{Port: ebb.AnyPort, DBPath: path}); !errors.Is(err, ebb.ErrInUse) {
			t.Errorf("a second server in the same directory: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- s.Serve(ctx) }()
		c, err := net.Dial("tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestOpenThatFailsTouchesNothing(t *testing.T) {
	dir := t.TempDir()
	first, err := ebb.Open(ebb.Options{Port: ebb.AnyPort, Engine: ebb.InMemory})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	path := filepath.Join(dir, "data")
	if _, err := ebb.Open(ebb.Options{Port: portOf(t, first.Addr()), DBPath: path}); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("busy port: %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the directory was made although the port is busy")
	}

	// A directory that cannot be used gives the port back.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := portOf(t, l.Addr().String())
	l.Close()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ebb.Open(ebb.Options{Port: port, DBPath: path}); err == nil {
		t.Error("a file was opened as a directory")
	}
	again, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		t.Errorf("the port is still taken: %v", err)
	} else {
		again.Close()
	}
}

// A misspelled engine is not the default one, which would write to the disk.
func TestOpenRefusesOptions(t *testing.T) {
	for _, o := range []ebb.Options{
		{Engine: "inmemory"},
		{Engine: ebb.InMemory, BlockCompressor: "zip"},
		{Engine: ebb.InMemory, ReplicaSet: &ebb.ReplicaSet{Initiate: true}},
		{Engine: ebb.InMemory, ReplicaSet: &ebb.ReplicaSet{Name: "rs", Advertise: "a.example.org"}},
		{Engine: ebb.InMemory, ReplicaSet: &ebb.ReplicaSet{Name: "rs", Advertise: ":27017"}},
		{Engine: ebb.InMemory, MaxConns: -1},
		{Engine: ebb.InMemory, CacheBytes: -1},
		{Engine: ebb.InMemory, Profiling: &ebb.Profiling{Level: 3}},
		{Engine: ebb.InMemory, Profiling: &ebb.Profiling{SampleRate: 2}},
		{Engine: ebb.InMemory, Parsed: []byte{}},
	} {
		o.Port, o.DBPath = ebb.AnyPort, filepath.Join(t.TempDir(), "data")
		s, err := ebb.Open(o)
		if err == nil {
			t.Errorf("opened: %+v", o)
			s.Close()
		}
		if _, err := os.Stat(o.DBPath); err == nil {
			t.Errorf("the directory was made: %+v", o)
		}
	}
}

func TestServeTwice(t *testing.T) {
	s, err := ebb.Open(ebb.Options{Port: ebb.AnyPort, Engine: ebb.InMemory})
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := s.Serve(ended); err != nil {
		t.Error(err)
	}
	if err := s.Serve(ended); err == nil {
		t.Error("it was served again")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestCloseWithoutServe(t *testing.T) {
	s, err := ebb.Open(ebb.Options{Port: ebb.AnyPort, DBPath: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestScriptsSeeTheVersion: what JavaScript is told is what clients are.
func TestScriptsSeeTheVersion(t *testing.T) {
	if javascript.Version != ebb.MongoVersion {
		t.Error(javascript.Version)
	}
}
