package main

import "testing"

func TestCollectionPercent(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		name           string
		alive, scanned uint64
		want           int
	}{
		{"nothing", 0, 0, maxPercent},
		{"small", 10 * mb, 5 * mb, maxPercent},
		{"memtables", 96 * mb, 10 * mb, 50},
		{"caches", 4800 * mb, 50 * mb, 2},
		{"much to look at", 1000 * mb, 400 * mb, 80},
		{"nothing but that", 1000 * mb, 1000 * mb, maxPercent},
		{"caches beyond measure", 1 << 50, 50 * mb, 1},
	} {
		if got := (collection{alive: c.alive, scanned: c.scanned}).percent(); got != c.want {
			t.Errorf("%s: %d", c.name, got)
		}
	}
	if c, cycles := lookAtCollection(); cycles > 0 && (c.alive == 0 || c.scanned == 0) {
		t.Errorf("%+v after %d", c, cycles)
	}
}
