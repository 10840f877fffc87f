package pebblekv_test

import (
	"io/fs"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
)

// A compaction takes a table away after excise has listed it and before it is read: the file is missing then, or short,
// as files go in steps. That is no damage. The tables are listed anew, and where they keep going the range is left for later.
func TestExciseWhereTablesGo(t *testing.T) {
	missing := func(string) (vfs.File, error) { return nil, fs.ErrNotExist }
	short := func(string) (vfs.File, error) {
		disk := vfs.NewMem()
		writeFile(t, disk, "short", "what is left of a table")
		return disk.Open("short")
	}
	for name, c := range map[string]struct {
		instead func(path string) (vfs.File, error)
		times   int // so often a table goes
		gone    bool
	}{
		"missing once": {missing, 1, true},
		"short once":   {short, 1, true},
		"short thrice": {short, 3, true},
		"always":       {missing, -1, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := openExcised(t, vfs.NewMem())
			deleteExcised(t, e)
			if err := e.Flush(); err != nil {
				t.Fatal(err)
			}
			looked, went := map[string]int{}, 0
			e.BeforeTable(func(path string) (vfs.File, error) {
				looked[path]++
				if went == c.times {
					return nil, nil
				}
				went++
				rewriteBeside(t, e)
				return c.instead(path)
			})
			excise(t, e, c.gone, !c.gone)
			if c.times > 0 && went != c.times || went == 0 {
				t.Fatalf("%d tables went while they were looked at", went)
			}
			if len(looked) < 2 {
				t.Fatalf("tables that were looked at: %v; no compaction took one away", looked)
			}
			checkExcised(t, e, 2*excised)
			write(t, e, func(txn kv.Txn) { txn.Set([]byte("later"), nil) }) // nothing was taken for damage
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// rewriteBeside replaces all tables that hold something on either side of the excised range.
func rewriteBeside(t *testing.T, e *pebblekv.Engine) {
	t.Helper()
	write(t, e, func(txn kv.Txn) {
		txn.Set(recordKey('r', 0, excised-1), []byte("left"))
		txn.Set(recordKey('r', 0, 2*excised), []byte("right"))
	})
	if err := e.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := e.CompactAll(recordKey('r', 0, 0), recordKey('s', 0, 0)); err != nil {
		t.Fatal(err)
	}
}
