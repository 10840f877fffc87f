package tikvkv

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/tikv/client-go/v2/oracle"
	"github.com/tikv/client-go/v2/tikv"
	"github.com/tikv/client-go/v2/txnkv/transaction"
	pd "github.com/tikv/pd/client"
)

// LoseAnswers has the answers to the next commits be lost, whether the cluster gets those or not.
func LoseAnswers(e *Engine, arrives bool, times int) {
	e.commits.turn.Lock()
	defer e.commits.turn.Unlock()
	e.lease.commit = func(t *transaction.KVTxn) error {
		if times--; times < 0 {
			return e.lease.commitOnce(t)
		}
		if arrives {
			if err := e.lease.commitOnce(t); err != nil {
				return err
			}
		}
		return errors.New("the answer is lost")
	}
}

// Collect has the cluster let go of what was there so long ago and is not read, or was read and is older than most.
func Collect(e *Engine, keep, most time.Duration) error {
	for { // a later millisecond than that of all views
		now, err := e.store.CurrentTimestamp(oracle.GlobalTxnScope)
		if err != nil {
			return err
		}
		if oracle.ExtractPhysical(now) > oracle.ExtractPhysical(e.views.time()) {
			return e.letGo(now, keep, most)
		}
	}
}

// SafePoint is from when on the cluster keeps what was there.
func SafePoint(t testing.TB, e *Engine) uint64 {
	t.Helper()
	now, err := e.store.GetPDClient().UpdateGCSafePoint(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// OpenBy is Open that calls PD and the stores by what is made of its own clients.
func OpenBy(ctx context.Context, o Options, placement func(pd.Client) pd.Client, stores func(tikv.Client) tikv.Client) (*Engine, error) {
	o = o.withDefaults()
	store, err := connectBy(o, placement, stores)
	if err != nil {
		return nil, err
	}
	return openStore(ctx, store, o)
}

// Parts is how many parts of values are stored.
func Parts(e *Engine) (n int) {
	scan, err := e.store.GetSnapshot(e.views.time()).Iter(e.space.in(partArea), e.space.in(partArea+1))
	if err != nil {
		return -1
	}
	for ; scan.Valid(); n++ {
		if err := scan.Next(); err != nil {
			return -1
		}
	}
	return n
}

// Epoch is how often the keyspace was taken over when this server got it.
func Epoch(e *Engine) uint64 { return e.lease.epoch() }

// GiveBack gives the lease back behind a server's back: it takes itself for the holder still.
func GiveBack(e *Engine) error { return e.lease.giveBack() }

// Renew renews the lease.
func Renew(e *Engine) error {
	_, err := e.lease.renew()
	return err
}

// Tombstones is how many range tombstones there are.
func Tombstones(e *Engine) int { return e.views.current().tombstones.Len() }

// Stored is how many pairs the cluster holds, whatever hides them, and how many parts of values.
func Stored(e *Engine) (pairs, parts int) {
	scan, err := e.store.GetSnapshot(e.views.time()).Iter(e.space.first, e.space.limit)
	for ; err == nil && scan.Valid(); err = scan.Next() {
		pairs++
	}
	if err != nil {
		return -1, -1
	}
	return pairs, Parts(e)
}

// SetFormat writes another format of the keyspace.
func SetFormat(e *Engine, format byte) error {
	t, err := e.store.Begin()
	if err != nil {
		return err
	}
	if err := t.Set(e.space.format(), []byte{format}); err != nil {
		return err
	}
	return t.Commit(e.ctx)
}

// Format is the format that is stored.
func Format(e *Engine) (byte, error) {
	t, err := e.store.Begin()
	if err != nil {
		return 0, err
	}
	defer rollback(t)
	entry, err := t.Get(e.ctx, e.space.format())
	if err != nil || len(entry.Value) != 1 {
		return 0, errors.Join(err, errFormat)
	}
	return entry.Value[0], nil
}

// PutLong stores values that say that they lie in parts, each a short one, so that there may be many. The engine is not told of them.
func PutLong(e *Engine, keys []string, parts int) error {
	t, err := e.store.Begin()
	if err != nil {
		return err
	}
	defer rollback(t)
	for _, key := range keys {
		err = errors.Join(err, t.Set(e.space.pair([]byte(key)), binary.BigEndian.AppendUint32([]byte{partsValue}, uint32(parts))))
		for n := range parts {
			err = errors.Join(err, t.Set(e.space.part([]byte(key), n), []byte{byte(n)}))
		}
	}
	return errors.Join(err, t.Commit(e.ctx))
}

// MayBeLong says whether what the engine knows lets the value of a key have parts.
func MayBeLong(e *Engine, key string) bool { return e.longs.may([]byte(key)) }

// HeldOfLong is how much memory the engine holds of which values have parts, in bytes, and whether it has learnt that and need not again.
func HeldOfLong(e *Engine) (size int, known bool) {
	e.longs.mu.Lock()
	defer e.longs.mu.Unlock()
	for _, f := range []*filter{e.longs.mu.known, e.longs.mu.next} {
		if f != nil {
			size += 8 * len(f.bits)
		}
	}
	return size, !e.longs.isStale()
}
