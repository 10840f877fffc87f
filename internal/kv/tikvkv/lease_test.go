package tikvkv_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tikv/client-go/v2/tikv"
	"github.com/tikv/client-go/v2/tikvrpc"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv/tikvtest"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// wire is the way to the cluster, on which a test may have something happen to a request.
type wire struct {
	tikv.Client
	meet atomic.Pointer[func(req *tikvrpc.Request, send func() (*tikvrpc.Response, error)) (*tikvrpc.Response, error)]
}

func (w *wire) over(c *tikvtest.Cluster) *wire {
	w.Client = c.Client
	return w
}

func (w *wire) SendRequest(ctx context.Context, addr string, req *tikvrpc.Request, timeout time.Duration) (*tikvrpc.Response, error) {
	send := func() (*tikvrpc.Response, error) { return w.Client.SendRequest(ctx, addr, req, timeout) }
	if meet := w.meet.Load(); meet != nil {
		return (*meet)(req, send)
	}
	return send()
}

func put(e kv.Engine, key, value string) error {
	txn, err := e.Begin()
	if err != nil {
		return err
	}
	txn.Set([]byte(key), []byte(value))
	txn.Add([]byte("n"), 1)
	return txn.Commit(context.Background(), kv.Synced)
}

func have(t *testing.T, e kv.Engine, key, want string) {
	t.Helper()
	s, err := e.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, err := s.Get([]byte(key))
	if errors.Is(err, kv.ErrNotFound) {
		got, err = []byte("nothing"), nil
	}
	if err != nil || string(got) != want {
		t.Errorf("%s is %s, %v; want %s", key, got, err, want)
	}
}

func haveCount(t *testing.T, e kv.Engine, want int64) {
	t.Helper()
	s, err := e.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if n, err := s.Counter([]byte("n")); n != want || err != nil {
		t.Errorf("%d are counted, %v; want %d", n, err, want)
	}
}

// One server at a time has a keyspace: who comes second is told of the first, and gets it when that has ended.
func TestSecondServer(t *testing.T) {
	c := tikvtest.New(t)
	first := c.Open(t, tikvkv.Options{Name: "one:1", Term: 2 * time.Second})
	if err := put(first, "a", "1"); err != nil {
		t.Fatal(err)
	}
	_, err := tikvkv.OpenStore(t.Context(), c.Store(t), tikvkv.Options{Name: "two:2", Term: 2 * time.Second})
	var held *tikvkv.HeldError
	if !errors.As(err, &held) || held.Holder != "one:1" {
		t.Fatalf("a second server: %v", err)
	}
	elsewhere := c.Open(t, tikvkv.Options{Keyspace: "other"})
	have(t, elsewhere, "a", "nothing")
	if err := errors.Join(elsewhere.Close(), first.Close()); err != nil {
		t.Fatal(err)
	}
	second := c.Open(t, tikvkv.Options{Name: "two:2"})
	have(t, second, "a", "1")
	if err := put(second, "b", "2"); err != nil {
		t.Error(err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

// stopped opens an engine whose clock stands still: it takes itself for the holder of the lease as long as the test wants, as a process does that
// was stopped.
func stopped(t *testing.T, c *tikvtest.Cluster, w *wire) (*tikvkv.Engine, *clock.Fake) {
	t.Helper()
	still := clock.NewFake(time.Unix(0, 0))
	return c.OpenOver(t, w.over(c), tikvkv.Options{Name: "stopped:1", Clock: still, Term: time.Second, OnFailure: func(error) {}}), still
}

// A server whose lease has run out writes nothing any more, although it knows nothing of that: neither what it begins after another one has taken
// over, nor what it began before.
func TestStoppedServerWritesNothing(t *testing.T) {
	t.Parallel()
	for _, began := range []string{"before", "after"} {
		t.Run(began, func(t *testing.T) {
			c, w := tikvtest.New(t), &wire{}
			first, still := stopped(t, c, w)
			if err := put(first, "a", "1"); err != nil {
				t.Fatal(err)
			}
			reached, goOn := make(chan struct{}), make(chan struct{})
			if began == "before" {
				var once atomic.Bool
				hold := func(req *tikvrpc.Request, send func() (*tikvrpc.Response, error)) (*tikvrpc.Response, error) {
					if req.Type == tikvrpc.CmdPrewrite && !once.Swap(true) {
						close(reached)
						<-goOn
					}
					return send()
				}
				w.meet.Store(&hold)
			}
			done := make(chan error, 1)
			write := func() { done <- put(first, "a", "late") }
			if began == "before" {
				go write()
				<-reached
			}
			second := c.Open(t, tikvkv.Options{Name: "second:2", Term: time.Minute})
			haveCount(t, second, 1)
			if err := put(second, "b", "2"); err != nil {
				t.Fatal(err)
			}
			close(goOn)
			if began == "after" {
				go write()
			}
			if err := tikvtest.TurnFor(t, still, tikvtest.FastStep, done); err == nil {
				t.Error("a server without the lease writes")
			}
			have(t, second, "a", "1")
			haveCount(t, second, 2)
			if err := put(first, "c", "3"); err == nil {
				t.Error("a server that has lost the keyspace goes on")
			}
			closed := make(chan error, 1)
			go func() { closed <- first.Close() }()
			_ = tikvtest.TurnFor(t, still, tikvtest.FastStep, closed) // it may say that it could not end well
			if err := second.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A server that takes itself for the holder, by all that it knows and by PD's time as well, writes nothing once another one has taken over: TiKV refuses it.
func TestEndedEpochWritesNothing(t *testing.T) {
	for name, write := range map[string]func(kv.Engine) error{
		"a commit":          func(e kv.Engine) error { return put(e, "a", "late") },
		"a range's removal": func(e kv.Engine) error { return e.DeleteRange([]byte("a"), []byte("b")) },
	} {
		t.Run(name, func(t *testing.T) {
			c, lost := tikvtest.New(t), make(chan error, 1)
			first := c.Open(t, tikvkv.Options{Term: time.Hour, OnFailure: func(err error) { lost <- err }})
			if err := errors.Join(put(first, "a", "1"), tikvkv.GiveBack(first)); err != nil {
				t.Fatal(err)
			}
			second := c.Open(t, tikvkv.Options{Term: time.Hour})
			if err := put(second, "b", "2"); err != nil {
				t.Fatal(err)
			}
			if err := write(first); !errors.Is(err, tikvkv.ErrLost) || mongoerr.From(err).Code != mongoerr.HostUnreachable {
				t.Errorf("the one before writes: %v", err)
			}
			if err := <-lost; !errors.Is(err, tikvkv.ErrLost) {
				t.Errorf("it fails with %v", err)
			}
			have(t, second, "a", "1")
			haveCount(t, second, 2)
			if err := errors.Join(put(second, "c", "3"), first.Close(), second.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// A scan that the cluster does not answer ends with an error.
func TestUnansweredScanEnds(t *testing.T) {
	c, w := tikvtest.New(t), &wire{}
	e, still := stopped(t, c, w)
	if err := put(e, "a", "1"); err != nil {
		t.Fatal(err)
	}
	s, err := e.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	goOn := make(chan struct{})
	hold := func(req *tikvrpc.Request, send func() (*tikvrpc.Response, error)) (*tikvrpc.Response, error) {
		if req.Type == tikvrpc.CmdScan {
			<-goOn
		}
		return send()
	}
	w.meet.Store(&hold)
	scan := func() error {
		it, err := s.NewIter(kv.IterOptions{})
		if err != nil {
			return err
		}
		it.First()
		return errors.Join(it.Err(), it.Close())
	}
	done := make(chan error, 1)
	go func() { done <- scan() }()
	var coded interface{ Code() mongoerr.Code }
	if err := tikvtest.TurnFor(t, still, tikvtest.FastStep, done); !errors.As(err, &coded) || coded.Code() != mongoerr.NetworkTimeout {
		t.Errorf("a scan that is not answered ends with %v", err)
	}
	close(goOn)
	w.meet.Store(nil)
	if err := errors.Join(scan(), s.Close()); err != nil {
		t.Errorf("after that: %v", err)
	}
	closed := make(chan error, 1)
	go func() { closed <- e.Close() }()
	_ = tikvtest.TurnFor(t, still, tikvtest.FastStep, closed) // the lease has run out meanwhile
}

// A commit of which the answer is lost happens once, whether the cluster got it or not.
func TestLostAnswer(t *testing.T) {
	for _, arrives := range []bool{true, false} {
		t.Run(fmt.Sprint(arrives), func(t *testing.T) {
			c := tikvtest.New(t)
			e := c.Open(t, tikvkv.Options{})
			if err := put(e, "a", "1"); err != nil {
				t.Fatal(err)
			}
			tikvkv.LoseAnswers(e, arrives, 3)
			if err := put(e, "a", "2"); err != nil {
				t.Fatal(err)
			}
			have(t, e, "a", "2")
			haveCount(t, e, 2)
			if number, _ := e.Last(); number != 2 {
				t.Errorf("the last commit is %d", number)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			again := c.Open(t, tikvkv.Options{})
			have(t, again, "a", "2")
			haveCount(t, again, 2)
			if err := again.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Values above what a raft entry holds are split, and nothing of them stays behind.
func TestLongValues(t *testing.T) {
	c := tikvtest.New(t)
	e := c.Open(t, tikvkv.Options{})
	long := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i / 1000)
		}
		return string(b)
	}
	reopen := func() {
		t.Helper()
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		e = c.Open(t, tikvkv.Options{})
	}
	for _, size := range []int{17 << 20, 1 << 20, 256 << 10, 256<<10 + 1, 1} {
		if err := put(e, "a", long(size)); err != nil {
			t.Fatal(err)
		}
		reopen()
		have(t, e, "a", long(size))
		s, err := e.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		it, err := s.NewIter(kv.IterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !it.First() || string(it.Key()) != "a" {
			t.Fatalf("the first key is %q, %v", it.Key(), it.Err())
		}
		if value, err := it.Value(); err != nil || string(value) != long(size) {
			t.Errorf("%d bytes come back as %d, %v", size, len(value), err)
		}
		many, err := s.GetMany([][]byte{[]byte("b"), []byte("a")})
		if err != nil || many[0] != nil || string(many[1]) != long(size) {
			t.Errorf("%d bytes among many: %v", size, err)
		}
		if err := errors.Join(it.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	}
	if err := put(e, "a", long(9<<20)); err != nil {
		t.Fatal(err)
	}
	if err := e.DeleteRange([]byte("a"), []byte("b")); err != nil {
		t.Fatal(err)
	}
	for tikvkv.Tombstones(e) > 0 {
		runtime.Gosched()
	}
	if parts := tikvkv.Parts(e); parts != 0 {
		t.Errorf("%d parts are left", parts)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// A server that is to wait for a keyspace is told who has it, and gets it when that one ends.
func TestWaitsForKeyspace(t *testing.T) {
	c := tikvtest.New(t)
	first := c.Open(t, tikvkv.Options{Name: "one:1", Address: "one:27017", Term: 2 * time.Second})
	if err := put(first, "a", "1"); err != nil {
		t.Fatal(err)
	}
	told := make(chan tikvkv.Holder, 1)
	opened := make(chan *tikvkv.Engine, 1)
	go func() {
		e, err := tikvkv.OpenStore(t.Context(), c.Store(t), tikvkv.Options{Name: "two:2", Term: 2 * time.Second, Waiting: func(h tikvkv.Holder) {
			select {
			case told <- h:
			default:
			}
		}})
		if err != nil {
			t.Error(err)
		}
		opened <- e
	}()
	if who := <-told; who != first.Holder() || who.Address != "one:27017" {
		t.Errorf("it waits for %+v", who)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := <-opened
	have(t, second, "a", "1")
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

// Waiting ends with the context of who waits.
func TestWaitingEnds(t *testing.T) {
	c := tikvtest.New(t)
	first := c.Open(t, tikvkv.Options{})
	ctx, stop := context.WithCancel(t.Context())
	_, err := tikvkv.OpenStore(ctx, c.Store(t), tikvkv.Options{Waiting: func(tikvkv.Holder) { stop() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
}

// A read that the cluster does not answer ends with who reads, for the same reason.
func TestReadEndsWithReader(t *testing.T) {
	c, w := tikvtest.New(t), &wire{}
	e, still := stopped(t, c, w)
	if err := put(e, "a", "1"); err != nil {
		t.Fatal(err)
	}
	expired := mongoerr.New(mongoerr.MaxTimeMSExpired, "operation exceeded time limit")
	for name, read := range map[string]func(kv.Reader) error{
		"get":      func(r kv.Reader) error { _, err := r.Get([]byte("b")); return err },
		"get many": func(r kv.Reader) error { _, err := r.GetMany([][]byte{[]byte("b"), []byte("c")}); return err },
		"counter":  func(r kv.Reader) error { _, err := r.Counter([]byte("n")); return err },
		"scan": func(r kv.Reader) error {
			it, err := r.NewIter(kv.IterOptions{})
			if err != nil {
				return err
			}
			it.First()
			return errors.Join(it.Err(), it.Close())
		},
	} {
		for _, blind := range []bool{false, true} {
			reached, goOn := make(chan struct{}, 16), make(chan struct{})
			ctx, end := context.WithCancelCause(t.Context())
			hold := func(req *tikvrpc.Request, send func() (*tikvrpc.Response, error)) (*tikvrpc.Response, error) {
				switch req.Type {
				case tikvrpc.CmdGet, tikvrpc.CmdBatchGet:
					reached <- struct{}{}
					<-ctx.Done() // as a call ends, of which client-go knows the context
					return nil, ctx.Err()
				case tikvrpc.CmdScan: // of which it knows none
					reached <- struct{}{}
					<-goOn
				}
				return send()
			}
			var reader kv.Reader
			var done func()
			if blind {
				txn, err := e.BeginBlind()
				if err != nil {
					t.Fatal(err)
				}
				txn.Within(ctx)
				reader, done = txn, txn.Rollback
			} else {
				s, err := e.Snapshot()
				if err != nil {
					t.Fatal(err)
				}
				s.Within(ctx)
				reader, done = s, func() { s.Close() }
			}
			w.meet.Store(&hold)
			failed := make(chan error)
			go func() { failed <- read(reader) }()
			<-reached
			end(expired)
			if err := <-failed; !mongoerr.Is(err, mongoerr.MaxTimeMSExpired) {
				t.Errorf("%s: %v", name, err)
			}
			w.meet.Store(nil)
			close(goOn)
			done()
		}
	}
	closed := make(chan error, 1)
	go func() { closed <- e.Close() }()
	_ = tikvtest.TurnFor(t, still, tikvtest.FastStep, closed)
}

// A key that TiKV does not take is refused, and nobody else is disturbed. Who looks for one finds none.
func TestLongKeys(t *testing.T) {
	e := tikvtest.Open(t)
	longest, longer := strings.Repeat("k", 7000), strings.Repeat("k", 7001)
	for _, key := range []string{"a", longest, "z"} {
		if err := put(e, key, "1"); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{longer, strings.Repeat("k", 8<<20)} {
		if err := put(e, key, "1"); mongoerr.From(err).Code != 17280 {
			t.Errorf("a key of %d bytes: %v", len(key), err)
		}
	}
	have(t, e, longer, "nothing")
	haveCount(t, e, 3)
	s, err := e.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if values, err := s.GetMany([][]byte{[]byte(longer), []byte("z")}); err != nil || values[0] != nil || string(values[1]) != "1" {
		t.Errorf("among many: %q, %v", values, err)
	}
	for _, c := range []struct {
		bounds              kv.IterOptions
		first, last, ge, lt string
	}{
		{kv.IterOptions{}, "a", "z", "n", longest}, // n is the counter
		{kv.IterOptions{Lower: []byte(longer)}, "n", "z", "n", ""},
		{kv.IterOptions{Upper: []byte(longer)}, "a", longest, "", longest},
	} {
		it, err := s.NewIter(c.bounds)
		if err != nil {
			t.Fatal(err)
		}
		at := func(ok bool) string {
			if !ok {
				return ""
			}
			return string(it.Key())
		}
		if first, ge, lt, last := at(it.First()), at(it.SeekGE([]byte(longer))), at(it.SeekLT([]byte(longer))), at(it.Last()); first != c.first || last != c.last || ge != c.ge || lt != c.lt {
			t.Errorf("within %.1q and %.1q: first %.2q, last %.2q, from the longer key on %.2q, before it %.2q", c.bounds.Lower, c.bounds.Upper, first, last, ge, lt)
		}
		if err := errors.Join(it.Err(), it.Close()); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(s.Close(), e.Close()); err != nil {
		t.Error(err)
	}
}
