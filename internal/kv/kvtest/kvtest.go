// Package kvtest holds an engine to the contract of kv. It knows no engine: it is given one and tells what it breaks.
package kvtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/kv"
)

// Store is an empty engine to try things on. The suite closes what it was given.
type Store struct {
	kv.Engine
	// Reopen closes the engine properly and opens it again on the same data; nil if its data ends with it.
	Reopen func(t *testing.T) kv.Engine
	// Another opens another empty engine of the kind, which the suite closes; nil if there can be but one.
	Another func(t *testing.T) kv.Engine
	// Break opens an empty engine, and says how its disk is made to fail from then on; nil if that cannot be.
	Break func(t *testing.T) (e kv.Engine, breakDisk func())
}

// Run holds the engines that open makes to the contract. Each call of open makes a new, empty one.
func Run(t *testing.T, open func(t *testing.T) Store) {
	checks := []struct {
		name string
		run  func(t *testing.T, s *Store)
	}{
		{"get", checkGet},
		{"get many", checkGetMany},
		{"get many near", checkGetManyNear},
		{"order", checkOrder},
		{"bounds", checkBounds},
		{"moves", checkMoves},
		{"snapshot", checkSnapshot},
		{"own writes", checkOwnWrites},
		{"own writes under an iterator", checkWriteWhileIterating},
		{"copies", checkCopies},
		{"rollback", checkRollback},
		{"cancelled commit", checkCancelled},
		{"lost update", checkLostUpdate},
		{"write skew", checkWriteSkew},
		{"blind writes", checkBlindWrites},
		{"claims do not linger", checkClaimsEnd},
		{"a failed commit claims nothing", checkFailedClaims},
		{"concurrent claims", checkConcurrentClaims},
		{"counters", checkCounters},
		{"concurrent counters", checkConcurrentCounters},
		{"delete range", checkDeleteRange},
		{"delete range in a transaction", withRangeDeletes(checkTxnDeleteRange)},
		{"load", withTables(checkLoad)},
		{"replace", withTables(checkReplace)},
		{"stamped writes", checkStamped},
		{"commit order", withTables(withRangeDeletes(checkCommitOrder))},
		{"concurrent commit order", checkConcurrentOrder},
		{"encoded commits", withTables(withRangeDeletes(checkEncoding))},
		{"apply", withTables(withRangeDeletes(checkApply))},
		{"begin blind", checkBeginBlind},
		{"begin at", checkBeginAt},
		{"still", checkStill},
		{"set cached", checkSetCached},
		{"unsynced", checkUnsynced},
		{"undetermined", checkUndetermined},
		{"size of", checkSizeOf},
		{"durability", checkDurability},
		{"group commit", checkGroupCommit},
		{"closed", checkClosed},
		{"model", checkModel},
	}
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			c.run(t, &s)
			if err := s.Close(); err != nil && !errors.Is(err, kv.ErrClosed) {
				t.Errorf("close: %v", err)
			}
		})
	}
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func begin(t *testing.T, e kv.Engine) kv.Txn {
	t.Helper()
	txn, err := e.Begin()
	noError(t, err)
	return txn
}

func snap(t *testing.T, e kv.Engine) kv.Snapshot {
	t.Helper()
	s, err := e.Snapshot()
	noError(t, err)
	return s
}

func commit(t *testing.T, txn kv.Txn) {
	t.Helper()
	noError(t, txn.Commit(context.Background(), kv.Synced))
}

func conflict(t *testing.T, txn kv.Txn) {
	t.Helper()
	if err := txn.Commit(context.Background(), kv.Synced); !errors.Is(err, kv.ErrConflict) {
		t.Fatalf("commit: %v, want a write conflict", err)
	}
}

// put commits "key=value" pairs; "-key" deletes.
func put(t *testing.T, e kv.Engine, pairs ...string) {
	t.Helper()
	txn := begin(t, e)
	write(txn, pairs...)
	commit(t, txn)
}

func write(txn kv.Txn, pairs ...string) {
	for _, pair := range pairs {
		if key, ok := strings.CutPrefix(pair, "-"); ok {
			txn.Delete([]byte(key))
			continue
		}
		key, value, _ := strings.Cut(pair, "=")
		txn.Set([]byte(key), []byte(value))
	}
}

// have compares what the reader gives, forward and backward, with "key=value" pairs separated by spaces.
func have(t *testing.T, r kv.Reader, want string) {
	t.Helper()
	haveWithin(t, r, kv.IterOptions{}, want)
}

func haveWithin(t *testing.T, r kv.Reader, o kv.IterOptions, want string) {
	t.Helper()
	it, err := r.NewIter(o)
	noError(t, err)
	defer func() { noError(t, it.Close()) }()
	if got := walk(t, it, it.First, it.Next, false); got != want {
		t.Fatalf("forward:\n got %s\nwant %s", got, want)
	}
	if got := walk(t, it, it.Last, it.Prev, true); got != want {
		t.Fatalf("backward:\n got %s\nwant %s", got, want)
	}
}

func walk(t *testing.T, it kv.Iterator, first, next func() bool, reverse bool) string {
	t.Helper()
	var out []string
	for ok := first(); ok; ok = next() {
		entry := at(t, it)
		if reverse {
			out = append([]string{entry}, out...)
		} else {
			out = append(out, entry)
		}
	}
	noError(t, it.Err())
	return strings.Join(out, " ")
}

func at(t *testing.T, it kv.Iterator) string {
	t.Helper()
	if !it.Valid() {
		return "-"
	}
	value, err := it.Value()
	noError(t, err)
	return fmt.Sprintf("%s=%s", it.Key(), value)
}

func haveValue(t *testing.T, r kv.Reader, key, want string) {
	t.Helper()
	for name, get := range lookUps(r) {
		got, err := get([]byte(key))
		noError(t, err)
		if !bytes.Equal(got, []byte(want)) {
			t.Fatalf("%s %s: got %q, want %q", name, key, got, want)
		}
	}
}

func haveNothing(t *testing.T, r kv.Reader, key string) {
	t.Helper()
	for name, get := range lookUps(r) {
		if got, err := get([]byte(key)); !errors.Is(err, kv.ErrNotFound) {
			t.Fatalf("%s %s: got %q, %v, want nothing", name, key, got, err)
		}
	}
}

func lookUps(r kv.Reader) map[string]func([]byte) ([]byte, error) {
	return map[string]func([]byte) ([]byte, error){"get": r.Get, "probe": r.Probe}
}

func haveCount(t *testing.T, r kv.Reader, key string, want int64) {
	t.Helper()
	got, err := r.Counter([]byte(key))
	noError(t, err)
	if got != want {
		t.Fatalf("counter %s: got %d, want %d", key, got, want)
	}
}
