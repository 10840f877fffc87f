package pebblekv_test

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
	"github.com/ebbdb/ebb/internal/kv/smalldisk"
	"github.com/ebbdb/ebb/internal/testseed"
)

var fullRounds = flag.Int("full-rounds", 3, "how often TestFullDisk fills its disk, lets go and restarts")

// fullWorld is a store on a small disk, and what was acknowledged.
type fullWorld struct {
	*testing.T
	disk *smalldisk.Disk
	e    *pebblekv.Engine
	rng  *rand.Rand
	next uint64
	kept map[uint64]uint64 // a key's number, and the seed of its value
	log  *strings.Builder
}

const (
	fullDiskBytes = 64 << 20
	maxFullValue  = 30_000
)

func newFullWorld(t *testing.T, seed uint64, o pebblekv.Options) *fullWorld {
	t.Logf("seed %d", seed)
	w := &fullWorld{T: t, disk: smalldisk.New(fullDiskBytes), rng: rand.New(rand.NewPCG(seed, 0)), kept: map[uint64]uint64{}}
	w.open(o)
	return w
}

func (w *fullWorld) open(o pebblekv.Options) {
	w.Helper()
	w.log = &strings.Builder{}
	o.FS, o.Logger = w.disk, slog.New(slog.NewTextHandler(&locked{out: w.log}, nil))
	o.OnFailure = func(err error) { w.Errorf("the store failed: %v", err) }
	w.e = open(w.T, "db", o)
}

// locked lets several loggers write.
type locked struct {
	mu  sync.Mutex
	out *strings.Builder
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}

func fullKey(n uint64) []byte { return binary.BigEndian.AppendUint64([]byte("k"), n) }

// fullValue is a value that no compression makes shorter.
func fullValue(seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 1))
	value := make([]byte, 100+rng.IntN(maxFullValue-100))
	for i := range value {
		value[i] = byte(rng.Uint32())
	}
	return value
}

// add commits one more value, if there is room for it.
func (w *fullWorld) add() error {
	seed := w.rng.Uint64()
	value := fullValue(seed)
	if err := w.e.Room(len(value)); err != nil {
		return err
	}
	txn, err := w.e.Begin()
	if err != nil {
		return err
	}
	txn.Set(fullKey(w.next), value)
	if err := txn.Commit(context.Background(), kv.Synced); err != nil {
		return err
	}
	w.kept[w.next] = seed
	w.next++
	return nil
}

// fill adds until there is no more room, and says how many bytes.
func (w *fullWorld) fill() (added int) {
	w.Helper()
	for refused := 0; ; {
		err := w.add()
		if errors.Is(err, kv.ErrNoSpace) && errors.Is(err, syscall.ENOSPC) {
			if err := w.e.Flush(); err != nil {
				w.Fatal(err)
			}
			w.e.LookAtDisk()
			if refused++; refused == 5 {
				return added
			}
			continue
		}
		if err != nil {
			w.Fatal(err)
		}
		added += len(fullValue(w.kept[w.next-1]))
		if w.next%16 == 0 {
			w.e.LookAtDisk()
		}
	}
}

// expire deletes all but the last few: as a range, or one by one.
func (w *fullWorld) expire(singly bool) {
	w.Helper()
	const stays = 20
	if w.next < stays {
		return
	}
	upTo := w.next - stays
	if singly {
		var list []uint64
		for n := range w.kept {
			if n < upTo {
				list = append(list, n)
			}
		}
		for len(list) > 0 {
			w.commit(func(txn kv.Txn) {
				for _, n := range list[:min(len(list), 100)] {
					txn.Delete(fullKey(n))
				}
			})
			list = list[min(len(list), 100):]
		}
		if err := w.e.Flush(); err != nil {
			w.Fatal(err)
		}
		if err := w.e.CompactAll([]byte("k"), []byte("l")); err != nil {
			w.Fatal(err)
		}
	} else {
		w.commit(func(txn kv.Txn) { txn.DeleteRange(fullKey(0), fullKey(upTo)) })
		if err := w.e.Flush(); err != nil {
			w.Fatal(err)
		}
		if _, isRead, err := w.e.Excise(fullKey(0), fullKey(upTo)); err != nil || isRead {
			w.Fatal(isRead, err)
		}
	}
	for n := range w.kept {
		if n < upTo {
			delete(w.kept, n)
		}
	}
}

func (w *fullWorld) commit(f func(kv.Txn)) {
	w.Helper()
	txn, err := w.e.Begin()
	if err != nil {
		w.Fatal(err)
	}
	f(txn)
	if err := txn.Commit(context.Background(), kv.Synced); err != nil {
		w.Fatal(err)
	}
}

// check says whether all is there that was acknowledged, and nothing else.
func (w *fullWorld) check() {
	w.Helper()
	view, err := w.e.Snapshot()
	if err != nil {
		w.Fatal(err)
	}
	defer view.Close()
	it, err := view.NewIter(kv.IterOptions{Lower: []byte("k"), Upper: []byte("l")})
	if err != nil {
		w.Fatal(err)
	}
	defer it.Close()
	found := 0
	for it.Next() {
		n := binary.BigEndian.Uint64(it.Key()[1:])
		seed, ok := w.kept[n]
		value, err := it.Value()
		if err != nil || !ok || string(value) != string(fullValue(seed)) {
			w.Fatalf("key %d: expected %v, %d bytes, %v", n, ok, len(value), err)
		}
		found++
	}
	if it.Err() != nil || found != len(w.kept) {
		w.Fatalf("%d of %d keys are there: %v", found, len(w.kept), it.Err())
	}
}

// TestFullDisk fills a small disk, lets others fill what is left of it, lets go of what is old and restarts, in order or after
// a power cut: nothing that was acknowledged is lost, and the room comes back.
func TestFullDisk(t *testing.T) {
	w := newFullWorld(t, testseed.Of(t), pebblekv.Options{})
	for round := range *fullRounds {
		w.awaitRoom(round)
		added := w.fill()
		if used, _ := w.disk.Used(); added < fullDiskBytes/2 {
			t.Fatalf("round %d: %d bytes were added when %d of %d are used", round, added, used, fullDiskBytes)
		}
		w.check()
		if round%3 > 0 && w.hasReserve() { // somebody else takes the rest
			used, _ := w.disk.Used()
			w.disk.Resize(used)
		}
		if round%2 == 1 {
			w.restart(round) // on the full disk
		}
		w.expire(round%3 == 2)
		w.check()
		w.restart(round / 2)
		w.disk.Resize(fullDiskBytes)
		if lines := strings.Count(w.log.String(), "\n"); lines > 50 {
			t.Fatalf("round %d: %d lines\n%s", round, lines, w.log)
		}
	}
	if err := w.e.Close(); err != nil {
		t.Error(err)
	}
}

// awaitRoom returns when the files that are not needed any more have gone, and a reserve is there.
func (w *fullWorld) awaitRoom(round int) {
	w.Helper()
	for tries := 0; !w.e.LookAtDisk(); tries++ {
		if tries == 3000 {
			used, _ := w.disk.Used()
			w.Fatalf("round %d: nothing is set aside, with %d of %d bytes used\n%s", round, used, fullDiskBytes, w.log)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// hasReserve says whether there is something to give up.
func (w *fullWorld) hasReserve() bool {
	_, err := w.disk.Stat("db/EBB-RESERVE")
	return err == nil
}

// restart closes the store, or cuts the power.
func (w *fullWorld) restart(how int) {
	w.Helper()
	if how%2 == 0 {
		if err := w.e.Close(); err != nil {
			w.Fatal(err)
		}
	} else {
		left, err := w.disk.Crash(100, w.rng)
		if err != nil {
			w.Fatal(err)
		}
		if err := w.e.Close(); err != nil {
			w.Fatal(err)
		}
		w.disk = left
		if usage, err := left.GetDiskUsage("db"); err == nil && !w.hasReserve() && usage.AvailBytes < fullDiskBytes/16 {
			left.Resize(fullDiskBytes) // what was set aside was given up at the last moment, as for a compaction that ended: such a store need not open
		}
	}
	w.open(pebblekv.Options{})
	w.check()
}

// noRoom is a store without any provision for a full disk.
func noRoom() pebblekv.Options { return pebblekv.Options{MinFreeBytes: -1, ReserveBytes: -1} }

// fillToTheBrim writes until a commit waits for room, which it returns: its number, and how it ends.
func (w *fullWorld) fillToTheBrim() (last uint64, seed uint64, ended chan error) {
	w.Helper()
	ended = make(chan error, 1)
	for {
		last, seed = w.next, w.rng.Uint64()
		w.next++
		txn, err := w.e.Begin()
		if err != nil {
			w.Fatal(err)
		}
		txn.Set(fullKey(last), fullValue(seed))
		go func() { ended <- txn.Commit(context.Background(), kv.Synced) }()
		for waits := false; !waits; {
			select {
			case err := <-ended:
				if err != nil {
					w.Fatal(err)
				}
				w.kept[last] = seed
				waits = true
			case <-time.After(time.Millisecond):
				if w.e.IsStuck() {
					return last, seed, ended
				}
			}
		}
	}
}

// Where nothing provides for a full disk a commit waits until there is room, and then goes on. Who comes meanwhile is told, and
// reads go on.
func TestCommitsWaitForRoom(t *testing.T) {
	w := newFullWorld(t, testseed.Of(t), noRoom())
	last, seed, ended := w.fillToTheBrim()
	for _, change := range []func(kv.Txn){
		func(txn kv.Txn) { txn.Set([]byte("a"), nil) },
		func(txn kv.Txn) { txn.Delete(fullKey(0)) },
	} {
		txn, err := w.e.Begin()
		if err != nil {
			t.Fatal(err)
		}
		change(txn)
		if err := txn.Commit(context.Background(), kv.Synced); !errors.Is(err, kv.ErrNoSpace) {
			t.Fatalf("a commit on a full disk: %v", err)
		}
	}
	if err := w.e.DeleteRange([]byte("a"), []byte("b")); !errors.Is(err, kv.ErrNoSpace) {
		t.Fatalf("a deletion on a full disk: %v", err)
	}
	w.disk.Resize(2 * fullDiskBytes)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	w.kept[last] = seed
	w.check()
	w.commit(func(txn kv.Txn) { txn.Set([]byte("a"), nil) })
	w.restart(1)
	if err := w.e.Close(); err != nil {
		t.Error(err)
	}
}

// A store that is closed while a commit waits for room says so, and what was acknowledged is there the next time.
func TestCloseWhileCommitsWait(t *testing.T) {
	w := newFullWorld(t, testseed.Of(t), noRoom())
	last, _, _ := w.fillToTheBrim()
	if err := w.e.Close(); err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Fatalf("closed: %v", err)
	}
	left, err := w.disk.Crash(100, w.rng)
	if err != nil {
		t.Fatal(err)
	}
	left.Resize(2 * fullDiskBytes)
	w.disk.Resize(2 * fullDiskBytes) // what waited must not go on
	w.disk = left
	w.open(noRoom())
	defer w.e.Close()
	view, err := w.e.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := view.Get(fullKey(last)); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("what was not acknowledged is there: %v", err)
	}
	view.Close()
	w.check()
}

// A store on a disk without any room opens, or says in one line why not; and opens in the same process when there is room.
func TestOpenOnAFullDisk(t *testing.T) {
	for _, o := range []pebblekv.Options{{}, noRoom()} {
		w := newFullWorld(t, 1, o)
		w.e.LookAtDisk()
		for range 500 {
			if err := w.add(); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.e.Close(); err != nil {
			t.Fatal(err)
		}
		used, _ := w.disk.Used()
		w.disk.Resize(used)
		e, err := pebblekv.Open("db", pebblekv.Options{FS: w.disk, MinFreeBytes: o.MinFreeBytes, ReserveBytes: o.ReserveBytes})
		if o.ReserveBytes < 0 {
			if !errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), "\n") {
				t.Errorf("opened without room: %v", err)
			}
			w.disk.Resize(fullDiskBytes) // what was left behind must not go on
			w.open(o)
		} else if err != nil {
			t.Fatal(err)
		} else {
			w.e = e
		}
		w.check()
		if err := w.e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A load that does not fit is refused, and leaves nothing.
func TestLoadOnAFullDisk(t *testing.T) {
	w := newFullWorld(t, testseed.Of(t), noRoom())
	defer w.e.Close()
	before, _ := w.disk.Used()
	n := uint64(0)
	err := w.e.Load(context.Background(), func() (key, value []byte, ok bool, err error) {
		n++
		return fullKey(n), fullValue(n), true, nil
	})
	if !errors.Is(err, kv.ErrNoSpace) {
		t.Fatalf("loaded: %v", err)
	}
	if after, _ := w.disk.Used(); after > before+1<<20 {
		t.Errorf("%d bytes were used, and now %d", before, after)
	}
	w.check()
	if err := w.add(); err != nil {
		t.Error(err)
	}
}

// The reserve's size is a setting within a share of the disk, and a sparse copy of it is no reserve.
func TestReserve(t *testing.T) {
	for _, c := range []struct {
		setting, want int64
	}{{0, fullDiskBytes / 16}, {1 << 20, 1 << 20}, {fullDiskBytes, fullDiskBytes / 4}, {-1, 0}} {
		t.Run(fmt.Sprint(c.setting), func(t *testing.T) {
			w := newFullWorld(t, 1, pebblekv.Options{ReserveBytes: c.setting})
			defer w.e.Close()
			if has := w.e.LookAtDisk(); has != (c.want > 0) {
				t.Fatalf("a reserve: %v", has)
			}
			info, err := w.disk.Stat("db/EBB-RESERVE")
			if c.want == 0 {
				if err == nil {
					t.Errorf("there is one of %d bytes", info.Size())
				}
				return
			}
			if err != nil || info.Size() != c.want {
				t.Errorf("it has %v, %v", info, err)
			}
		})
	}
	dir := t.TempDir()
	e := open(t, dir, pebblekv.Options{ReserveBytes: 1 << 20, MinFreeBytes: 1})
	if !e.LookAtDisk() {
		t.Fatal("nothing is set aside")
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if n := taken(t, dir+"/EBB-RESERVE"); n < 1<<20 {
		t.Errorf("it takes %d bytes", n)
	}
}

func taken(t *testing.T, path string) int64 {
	t.Helper()
	var stat syscall.Stat_t
	if err := syscall.Stat(path, &stat); err != nil {
		t.Fatal(err)
	}
	return stat.Blocks * 512
}

// What was deleted shortly before a store was closed gives its space back when it is open again, though nobody writes.
func TestSpaceComesBackAfterRestart(t *testing.T) {
	fake := clock.NewFake(time.Unix(0, 0))
	w := newFullWorld(t, testseed.Of(t), pebblekv.Options{Clock: fake})
	for range 1500 {
		if err := w.add(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.e.Flush(); err != nil {
		t.Fatal(err)
	}
	w.add() // what stays beside it
	w.commit(func(txn kv.Txn) { txn.DeleteRange(fullKey(0), fullKey(w.next-1)) })
	for n := range w.next - 1 {
		delete(w.kept, n)
	}
	if err := w.e.Close(); err != nil {
		t.Fatal(err)
	}
	w.open(pebblekv.Options{Clock: fake})
	for tries := 0; ; tries++ {
		used, _ := w.disk.Used()
		if used < fullDiskBytes/8 {
			break
		}
		if tries == 5000 {
			t.Fatalf("%d bytes are in use\n%s", used, w.log)
		}
		fake.Advance(time.Second)
		time.Sleep(2 * time.Millisecond)
	}
	w.check()
	if err := w.e.Close(); err != nil {
		t.Error(err)
	}
}
