package main

import (
	"testing"
	"time"
)

func TestParseProcess(t *testing.T) {
	// The name may hold whatever a program is called.
	line := "4211 (a) (b c) S 17 4211 4211 0 -1 4194560 1 2 3 4 150 50 7 3 20 0 12 0 999 123456789 2048 18446744073709551615 1 1\n"
	p, err := parseProcess([]byte(line))
	want := process{pid: 4211, parent: 17, cpu: 2100 * time.Millisecond, rssPages: 2048}
	if err != nil || p != want {
		t.Errorf("got %+v, %v; want %+v", p, err, want)
	}
	for _, bad := range []string{"", "4211", "4211 (a", "4211 (a) S 17 4211", "x (a) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23"} {
		if p, err := parseProcess([]byte(bad)); err == nil {
			t.Errorf("%q is read as %+v", bad, p)
		}
	}
}

func TestParseBusy(t *testing.T) {
	busy, err := parseBusy([]byte("cpu  100 20 30 4000 500 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n"))
	if want := 1630 * time.Millisecond; err != nil || busy != want {
		t.Errorf("got %v, %v; want %v", busy, err, want)
	}
	for _, bad := range []string{"", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8", "cpu a b c d e f g h"} {
		if busy, err := parseBusy([]byte(bad)); err == nil {
			t.Errorf("%q is read as %v", bad, busy)
		}
	}
}
