package ebb_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebbdb/ebb"
)

// A failure of the store ends Serve with an error, and not the process.
func TestStoreFailure(t *testing.T) {
	told, served := make(chan error, 2), make(chan error, 1)
	var heard error
	onFailure := func(err error) { // who waits for Serve there waits for nobody who waits for it
		heard = <-served
		told <- err
	}
	s, err := ebb.Open(ebb.Options{Port: ebb.AnyPort, Engine: ebb.InMemory, OnFailure: onFailure})
	if err != nil {
		t.Fatal(err)
	}
	go func() { served <- s.Serve(t.Context()) }()
	if err := s.Err(); err != nil {
		t.Fatalf("before: %v", err)
	}
	cause := errors.New("the disk is gone")
	s.Fail(cause)
	s.Fail(errors.New("later"))
	for _, err := range []error{<-told, heard, s.Err()} {
		if !errors.Is(err, ebb.ErrStoreFailed) || !errors.Is(err, cause) {
			t.Errorf("got %v", err)
		}
	}
	if len(told) > 0 {
		t.Error("told again")
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// made is a directory with a store that was closed in order.
func made(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	s, err := ebb.Open(ebb.Options{Port: ebb.AnyPort, DBPath: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A store that cannot be opened is an error that says why.
func TestOpenSaysWhatIsWrong(t *testing.T) {
	cases := []struct {
		name  string
		spoil func(t *testing.T, store string)
		want  string
	}{
		{"a newer format", func(t *testing.T, store string) {
			write(t, filepath.Join(store, "EBB-FORMAT"), "ebb pebblekv 999\n")
		}, "has store format 999, this Ebb knows"},
		{"a missing list of tables", func(t *testing.T, store string) { remove(t, store, "MANIFEST-*") }, "MANIFEST-"},
		{"a marker of another version", func(t *testing.T, store string) {
			names := match(t, store, "marker.format-version.*")
			if err := os.Rename(names[0], filepath.Join(store, "marker.format-version.999999.999")); err != nil {
				t.Fatal(err)
			}
		}, "999"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := made(t)
			c.spoil(t, filepath.Join(dir, "store"))
			s, err := ebb.Open(ebb.Options{Port: ebb.AnyPort, DBPath: dir})
			if err == nil {
				t.Fatal("it opened", s.Close())
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func match(t *testing.T, dir, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %v, %v", pattern, names, err)
	}
	return names
}

func remove(t *testing.T, dir, pattern string) {
	t.Helper()
	for _, name := range match(t, dir, pattern) {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
