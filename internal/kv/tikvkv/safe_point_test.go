package tikvkv_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv/tikvtest"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Who reads keeps what is read, but not for ever: a view that the cluster was let go of is refused, and all others are right.
func TestSafePoint(t *testing.T) {
	safePoint(t, tikvtest.Open(t))
}

// TestSafePointOnCluster is the same on a real cluster.
func TestSafePointOnCluster(t *testing.T) {
	e, err := tikvkv.Open(t.Context(), tikvkv.Options{PD: clusterAt(t), Keyspace: "safe-point-" + time.Now().Format("150405")})
	if err != nil {
		t.Fatal(err)
	}
	before := tikvkv.SafePoint(t, e)
	if err := tikvkv.Collect(e, 0, 0); err != nil {
		t.Fatal(err)
	}
	if after := tikvkv.SafePoint(t, e); after <= before {
		t.Errorf("the cluster keeps all from %d on, and all from %d on before", after, before)
	}
	safePoint(t, e)
}

// TestWhoCollects: PD keeps everything until somebody has said that it need not. Where there is a TiDB, that is for it to say, and what others keep is kept.
func TestWhoCollects(t *testing.T) {
	for _, tidb := range []string{"", "mBootstrapKey", "t\x80\x00\x00\x00\x00\x00\x00\x01_r1", "x\x00\x00\x01m"} {
		c := tikvtest.New(t)
		pd := c.PD
		keep := func(name string, ts uint64) {
			t.Helper()
			if _, err := pd.UpdateServiceGCSafePoint(t.Context(), name, math.MaxInt64, ts); err != nil {
				t.Fatal(err)
			}
		}
		keep("gc_worker", 0)
		if tidb != "" {
			other, err := c.Store(t).Begin()
			if err = errors.Join(err, other.Set([]byte(tidb), []byte("1")), other.Commit(t.Context())); err != nil {
				t.Fatal(err)
			}
		}
		e := c.Open(t, tikvkv.Options{Clock: tikvtest.ProcessClock(t)})
		collect := func() uint64 {
			t.Helper()
			if err := errors.Join(put(e, "a", "1"), tikvkv.Collect(e, 0, 0)); err != nil {
				t.Fatal(err)
			}
			return tikvkv.SafePoint(t, e)
		}
		first := collect()
		if (first > 0) != (tidb == "") {
			t.Errorf("beside %q the cluster keeps what there was from %d on", tidb, first)
		}
		if tidb == "" {
			if second := collect(); second <= first {
				t.Errorf("it keeps all from %d on, after %d", second, first)
			}
			keep("a backup", tikvkv.SafePoint(t, e)+1)
			kept := tikvkv.SafePoint(t, e) + 1
			if third := collect(); third != kept {
				t.Errorf("a backup has asked for all from %d on, and the cluster keeps all from %d on", kept, third)
			}
		} else {
			keep("gc_worker", 77)
			if second := collect(); second != 77 {
				t.Errorf("beside %q, whose TiDB keeps all from 77 on, the cluster does from %d on", tidb, second)
			}
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

func safePoint(t *testing.T, e *tikvkv.Engine) {
	write := func(value string) {
		t.Helper()
		if err := put(e, "a", value); err != nil {
			t.Fatal(err)
		}
	}
	look := func() kv.Snapshot {
		t.Helper()
		s, err := e.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	// A cached value would be right as well, but is not what is asked about.
	read := func(s kv.Snapshot) (string, error) {
		it, err := s.NewIter(kv.IterOptions{Lower: []byte("a"), Upper: []byte("b")})
		if err != nil {
			return "", err
		}
		defer it.Close()
		if !it.First() {
			return "", errors.Join(it.Err(), errors.New("there is nothing"))
		}
		value, err := it.Value()
		return string(value), err
	}
	collect := func(keep, most time.Duration) {
		t.Helper()
		if err := tikvkv.Collect(e, keep, most); err != nil {
			t.Fatal(err)
		}
	}
	write("1")
	old := look()
	write("2")
	kept := look()
	write("3")
	collect(0, time.Hour) // a reader's view is kept for an hour
	for i, s := range []kv.Snapshot{old, kept} {
		if value, err := read(s); err != nil || value != []string{"1", "2"}[i] {
			t.Errorf("a view that is kept has %q, %v", value, err)
		}
	}
	if err := old.Close(); err != nil {
		t.Error(err)
	}
	collect(0, time.Hour)
	if value, err := read(kept); err != nil || value != "2" {
		t.Errorf("the other one has %q, %v", value, err)
	}
	collect(0, 0) // its hour is over
	if _, err := read(kept); mongoerr.From(err).Code != mongoerr.SnapshotTooOld {
		t.Errorf("a view that is not kept: %v", err)
	}
	if _, err := kept.Get([]byte("b")); mongoerr.From(err).Code != mongoerr.SnapshotTooOld {
		t.Errorf("a view that is not kept: %v", err)
	}
	if err := kept.Close(); err != nil {
		t.Error(err)
	}
	have(t, e, "a", "3")
	write("4")
	s := look()
	if value, err := read(s); err != nil || value != "4" {
		t.Errorf("after that there is %q, %v", value, err)
	}
	if err := errors.Join(s.Close(), e.Close()); err != nil {
		t.Error(err)
	}
}
