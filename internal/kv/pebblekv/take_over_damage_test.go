package pebblekv_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/crashdisk"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
	"github.com/ebbdb/ebb/internal/testseed"
)

// TestTakeOverDamage damages a table after a crash in which the log named tables that were taken over: the store is refused with the
// table's name, or what meets the damage is told, or nothing needs it. That ends, and nothing is missing silently.
func TestTakeOverDamage(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 0))
	told := &marks{of: map[uint64]string{}}
	c := &crasher{disk: crashdisk.New(), told: told, rng: rng}
	e := open(t, "db", pebblekv.Options{FS: errorfs.Wrap(c.disk, c), CommitKey: []byte("number")})
	e.Observe(told)
	for n := range 3 {
		mark(t, e, fmt.Sprintf("a%d", n), kv.Buffered)
		c.during(func() {
			if err := errors.Join(e.Load(context.Background(), marking(fmt.Sprintf("l%d", n))), e.Flush()); err != nil {
				t.Error(err)
			}
		})
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	outcomes := map[string]int{}
	for _, left := range c.left {
		for path, bytes := range readFiles(t, left.disk, "db") {
			if !strings.HasSuffix(path, ".sst") || strings.Contains(path, "/load/") || len(bytes) == 0 {
				continue
			}
			disk := left.disk.(*vfs.MemFS).CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rng})
			how := damageTable(t, disk, path, bytes, rng)
			outcome := openDamaged(t, disk, told, path)
			if outcome == "silent" {
				t.Errorf("before %s: %s %s: something is missing", left.before, path, how)
			}
			outcomes[how+": "+outcome]++
		}
	}
	t.Log(outcomes)
	for _, outcome := range []string{"gone: refused", "flipped: refused", "cut: refused", "flipped: fine"} {
		if outcomes[outcome] == 0 {
			t.Errorf("there was none that is %s", outcome)
		}
	}
}

// damageTable removes a table, cuts it, or turns a bit in it.
func damageTable(t *testing.T, disk vfs.FS, path string, bytes []byte, rng *rand.Rand) (how string) {
	t.Helper()
	bytes = slices.Clone(bytes)
	switch rng.IntN(3) {
	case 0:
		if err := disk.Remove(path); err != nil {
			t.Fatal(err)
		}
		return "gone"
	case 1:
		how, bytes = "cut", bytes[:rng.IntN(len(bytes))]
	default:
		how = "flipped"
		bytes[rng.IntN(min(len(bytes), 64))] ^= 1 << rng.IntN(8) // in a block of keys
	}
	file, err := disk.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.Write(bytes)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		t.Fatal(err)
	}
	return how
}

// openDamaged says what becomes of a store.
func openDamaged(t *testing.T, disk vfs.FS, told *marks, path string) string {
	t.Helper()
	e, err := pebblekv.Open("db", pebblekv.Options{FS: disk, CommitKey: []byte("number")})
	if err != nil {
		if number := strings.TrimSuffix(disk.PathBase(path), ".sst"); !strings.Contains(err.Error(), number) {
			t.Errorf("%s is not named: %v", path, err)
		}
		return "refused"
	}
	defer e.Close() // which may fail: it is damaged
	last, _ := e.Last()
	view, err := e.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	it, err := view.NewIter(kv.IterOptions{})
	var got []string
	if err == nil {
		for it.Next() {
			if key := string(it.Key()); key != "number" {
				got = append(got, key)
			}
		}
		err = errors.Join(it.Err(), it.Close())
	}
	switch {
	case errors.Is(err, kv.ErrCorrupt):
		return "told"
	case err != nil:
		t.Errorf("%s: %v", path, err)
	case !slices.Equal(got, told.upTo(last)):
		return "silent"
	}
	return "fine"
}
