package tikvkv_test

import (
	"errors"
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
	safePoint(t, e)
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
