package pebblekv_test

import (
	"context"
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
)

// TestNumbersGoOn: whoever opens a store goes on behind its last commit, of whatever kind that was, also after a crash.
func TestNumbersGoOn(t *testing.T) {
	disk := vfs.NewCrashableMem()
	o := pebblekv.Options{FS: disk, CommitKey: []byte("number")}
	e := open(t, "db", o)
	e.Observe(still(1000))
	kinds := []func() error{
		func() error {
			txn := begin(t, e)
			txn.Set([]byte("a"), []byte("1"))
			return txn.Commit(context.Background(), kv.Synced)
		},
		func() error { return e.DeleteRange([]byte("a"), []byte("b")) },
		func() error {
			n := 0
			return e.Load(context.Background(), func() (key, value []byte, ok bool, err error) { n++; return []byte("m"), nil, n == 1, nil })
		},
		func() error {
			r, err := e.Replace([]byte("m"))
			if err == nil {
				err = r.Seal([]byte("n"))
			}
			if err != nil {
				return err
			}
			return r.Commit(context.Background())
		},
	}
	for i, do := range kinds {
		if err := do(); err != nil {
			t.Fatal(err)
		}
		if err := e.Sync(); err != nil {
			t.Fatal(err)
		}
		o.FS = disk.CrashClone(vfs.CrashCloneCfg{})
		again := open(t, "db", o)
		if number, at := again.Last(); number != uint64(i+1) || at != 1000 {
			t.Errorf("after %d commits the last is %d at %d", i+1, number, at)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFollowersKeepTimes: a member that has led, and whose time is ahead of that of who leads now, stores what the log says, as all others do.
func TestFollowersKeepTimes(t *testing.T) {
	o := pebblekv.Options{FS: vfs.NewMem(), CommitKey: []byte("number")}
	e := open(t, "db", o)
	e.Observe(still(1000))
	e.Lead(nowhere{})
	e.Ordered(1000)
	e.Follow(errors.New("another one leads"))
	c := &kv.Commit{Number: 1, Time: 900, Writes: &kv.WriteList{Ops: []kv.Op{{Key: []byte("a"), Value: []byte("1")}}}}
	if err := e.Apply(context.Background(), c, kv.Unsynced); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, "db", o)
	if number, at := again.Last(); number != 1 || at != 900 {
		t.Errorf("the last commit is %d at %d", number, at)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

type nowhere struct{}

func (nowhere) Append([]byte) {}

// still is an Observer whose time stands still.
type still int64

func (s still) Now() int64       { return int64(s) }
func (still) Ordered(*kv.Commit) {}
func (still) Appears(*kv.Commit) {}
func (still) Visible(*kv.Commit) {}
