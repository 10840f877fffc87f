package kvtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ebbdb/ebb/internal/kv"
)

// recorder is an Observer that writes down what it is told.
type recorder struct {
	t       *testing.T
	now     int64
	groups  bool         // the engine writes groups
	ordered []*kv.Commit // that are not visible
	commits []*kv.Commit
	encoded [][]byte
	pairs   []kv.Pairs // of tables, opened when they became visible
	open    []kv.Pairs // those of them that nobody has closed
	stamps  bool       // it puts the number of a Commit behind the '#' of what is stamped
}

func observe(t *testing.T, e kv.Engine) *recorder {
	r := &recorder{t: t, now: 1000, groups: e.Capabilities().Groups}
	e.Observe(r)
	return r
}

func (r *recorder) Now() int64 { return r.now }

func (r *recorder) Ordered(c *kv.Commit) {
	if len(r.ordered) > 0 && !r.groups {
		r.t.Errorf("commit %d was ordered and commit %d is not visible yet", c.Number, r.ordered[0].Number)
	}
	r.ordered = append(r.ordered, c)
	if r.stamps {
		for _, op := range c.Stamped {
			stamp(op.Key, c.Number)
			stamp(op.Value, c.Number)
		}
	}
}

func stamp(b []byte, number uint64) {
	if i := bytes.IndexByte(b, '#'); i >= 0 {
		b[i+1] = '0' + byte(number)
	}
}

func (r *recorder) Appears(*kv.Commit) {}

func (r *recorder) Visible(c *kv.Commit) {
	if len(r.ordered) == 0 || r.ordered[0] != c {
		r.t.Errorf("commit %d is visible and was not the next", c.Number)
	} else {
		r.ordered = r.ordered[1:]
	}
	encoded, err := c.AppendBinary(nil)
	if err != nil {
		r.t.Error(err)
	}
	var pairs kv.Pairs
	if c.Table != nil {
		if pairs, err = c.Table.Open(); err != nil {
			r.t.Error(err)
		}
		r.open = append(r.open, pairs)
	}
	r.commits, r.encoded, r.pairs = append(r.commits, c), append(r.encoded, encoded), append(r.pairs, pairs)
}

// decoded is the i-th commit as somebody else gets it.
func (r *recorder) decoded(i int) *kv.Commit {
	r.t.Helper()
	c, err := kv.DecodeCommit(r.encoded[i])
	noError(r.t, err)
	if c.Table != nil {
		c.Table.Open = func() (kv.Pairs, error) { return unclosed{r.pairs[i]}, nil }
	}
	return c
}

// unclosed are pairs that the recorder closes.
type unclosed struct{ kv.Pairs }

func (unclosed) Close() error { return nil }

// close closes what was opened.
func (r *recorder) close() {
	for _, p := range r.open {
		noError(r.t, p.Close())
	}
	r.open = nil
}

// told is what the recorder was told since it was asked last, in words.
func (r *recorder) told() string {
	var out []string
	for _, c := range r.commits {
		out = append(out, describe(c))
	}
	r.commits = nil
	return strings.Join(out, "\n")
}

func describe(c *kv.Commit) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d at %d:", c.Number, c.Time)
	for _, d := range c.Ranges() {
		fmt.Fprintf(&b, " -[%s,%s)", d.Start, d.End)
	}
	c.Each(func(op kv.Op) {
		switch {
		case op.Delete:
			fmt.Fprintf(&b, " -%s", op.Key)
		case op.Cached:
			fmt.Fprintf(&b, " %s=%s!", op.Key, op.Value)
		default:
			fmt.Fprintf(&b, " %s=%s", op.Key, op.Value)
		}
	})
	for _, op := range c.Stamped {
		fmt.Fprintf(&b, " stamped %s=%s", op.Key, op.Value)
	}
	for _, added := range c.Counters() {
		fmt.Fprintf(&b, " %s%+d", added.Key, added.Delta)
	}
	for _, key := range c.Claims() {
		fmt.Fprintf(&b, " ^%s", key)
	}
	if c.Table != nil {
		fmt.Fprintf(&b, " table [%s,%q) %v", c.Table.Start, c.Table.End, c.Table.Replaces)
	}
	if c.Meaning != nil {
		text, _ := c.Meaning.AppendBinary(nil)
		fmt.Fprintf(&b, " means %s", text)
	}
	return b.String()
}

func same(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Fatalf("\n got %s\nwant %s", got, want)
	}
}

// checkCommitOrder: each commit is told once, in order, with all that it does; what fails or writes nothing is none.
func checkCommitOrder(t *testing.T, s *Store) {
	ctx := context.Background()
	r := observe(t, s)
	if number, at := s.Last(); number != 0 || at != 0 {
		t.Fatalf("the last commit of an empty store is %d at %d", number, at)
	}
	txn := begin(t, s)
	txn.DeleteRange([]byte("p"), []byte("q"))
	txn.SetCached([]byte("b"), []byte("2"))
	txn.Set([]byte("a"), []byte("1"))
	txn.Delete([]byte("c"))
	txn.Add([]byte("n"), 5)
	txn.Add([]byte("n"), -7)
	txn.Claim([]byte("a"))
	txn.Mean(kv.EncodedMeaning("it"))
	commit(t, txn)
	same(t, r.told(), "1 at 1000: -[p,q) a=1 b=2! -c n-2 ^a means it")

	r.now = 900
	put(t, s, "a=2")
	same(t, r.told(), "2 at 1000: a=2")
	r.now = 1100
	first, second := begin(t, s), begin(t, s)
	for _, txn := range []kv.Txn{first, second} {
		txn.Claim([]byte("a"))
		txn.Set([]byte("a"), []byte("3"))
	}
	commit(t, first)
	conflict(t, second)
	nothing := begin(t, s)
	nothing.Mean(kv.EncodedMeaning("nothing"))
	commit(t, nothing)
	begin(t, s).Rollback()
	blind, err := s.BeginBlind()
	noError(t, err)
	write(blind, "d=4")
	noError(t, blind.Commit(ctx, kv.Unsynced))
	noError(t, s.DeleteRange([]byte("b"), []byte("c")))
	noError(t, s.DeleteRange([]byte("c"), []byte("c")))
	same(t, r.told(), "3 at 1100: a=3 ^a\n4 at 1100: d=4\n5 at 1100: -[b,c)")

	defer r.close()
	noError(t, s.Load(ctx, pairs(nil)))
	noError(t, s.Load(ctx, pairs(nil, "m1=1", "m2=2", "m4=4")))
	noError(t, replacing(t, s, "m2", "m5", "m3=3").Commit(ctx))
	replacing(t, s, "m2", "m5").Discard()
	same(t, readPairs(t, r.open[0]), "m1=1 m2=2 m4=4")
	same(t, readPairs(t, r.open[1]), "m3=3")
	same(t, r.told(), "6 at 1100: table [m1,\"m4\\x00\") false\n7 at 1100: table [m2,\"m5\") true")
	if number, at := s.Last(); number != 7 || at != 1100 {
		t.Fatalf("the last commit is %d at %d", number, at)
	}
}

func readPairs(t *testing.T, p kv.Pairs) string {
	t.Helper()
	var out []string
	for {
		key, value, ok, err := p.Next()
		noError(t, err)
		if !ok {
			return strings.Join(out, " ")
		}
		out = append(out, fmt.Sprintf("%s=%s", key, value))
	}
}

// checkConcurrentOrder: numbers have no gap, and what somebody else sees is told before.
func checkConcurrentOrder(t *testing.T, s *Store) {
	const writers, each = 8, 50
	r := observe(t, s)
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				txn, err := s.Begin()
				if err != nil {
					t.Error(err)
					return
				}
				txn.Set(fmt.Appendf(nil, "%d-%d", w, i), nil)
				txn.Add([]byte("n"), 1)
				if err := txn.Commit(context.Background(), kv.Unsynced); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if len(r.commits) != writers*each {
		t.Fatalf("%d commits were told of %d", len(r.commits), writers*each)
	}
	for i, c := range r.commits {
		if c.Number != uint64(i+1) {
			t.Fatalf("commit %d has the number %d", i+1, c.Number)
		}
	}
}

// checkEncoding: the binary form says all of it, and one that is cut off is refused.
func checkEncoding(t *testing.T, s *Store) {
	r := observe(t, s)
	txn := begin(t, s)
	txn.DeleteRange([]byte("p"), []byte("q"))
	write(txn, "a=1", "-b", "c=")
	txn.SetCached([]byte("d"), []byte("4"))
	txn.Add([]byte("n"), -2)
	txn.Claim([]byte("a"))
	txn.Mean(kv.EncodedMeaning("it"))
	txn.Stamp(kv.Op{Key: []byte("s1"), Value: []byte("1")}, kv.Op{Key: []byte("s2")})
	commit(t, txn)
	noError(t, s.Load(context.Background(), pairs(nil, "m1=1")))
	defer r.close()
	for i, c := range r.commits {
		same(t, describe(r.decoded(i)), describe(c))
	}
	encoded := r.encoded[0]
	for n := range len(encoded) - len("it") {
		if c, err := kv.DecodeCommit(encoded[:n]); err == nil {
			t.Fatalf("%d of %d bytes are %s", n, len(encoded), describe(c))
		}
	}
	if _, err := kv.DecodeCommit(append([]byte{9}, encoded[1:]...)); err == nil {
		t.Fatal("another version was read")
	}
	if op, ok := r.decoded(0).Lookup([]byte("b")); !ok || !op.Delete {
		t.Fatalf("b is %v, %v", op, ok)
	}
	if _, ok := r.decoded(0).Lookup([]byte("e")); ok {
		t.Fatal("e was not written")
	}
}

// checkApply: a store that gets another one's commits is as that is, and takes none twice, nor one too early.
func checkApply(t *testing.T, s *Store) {
	ctx := context.Background()
	source := observe(t, s)
	defer source.close()
	put(t, s, "a=1", "b=2", "m0=0", "p1=1")
	noError(t, s.Load(ctx, pairs(nil, "m1=1", "m2=2", "m4=4")))
	txn := begin(t, s)
	txn.DeleteRange([]byte("p"), []byte("q"))
	write(txn, "a=1x", "-b")
	txn.SetCached([]byte("p2"), []byte("2"))
	txn.Add([]byte("n"), 7)
	txn.Claim([]byte("a"))
	txn.Mean(kv.EncodedMeaning("it"))
	commit(t, txn)
	noError(t, replacing(t, s, "m2", "m5", "m3=3").Commit(ctx))
	noError(t, s.DeleteRange([]byte("m0"), []byte("m1")))
	txn = begin(t, s)
	txn.Add([]byte("n"), -3)
	commit(t, txn)
	want := "a=1x m1=1 m3=3 p2=2"
	haveWithoutCounters(t, s, want)
	var commits []*kv.Commit
	for i := range source.commits {
		commits = append(commits, source.decoded(i))
	}

	if s.Another == nil {
		t.Log("not looked at: the engine can be opened once")
		return
	}
	follower := s.Another(t)
	defer func() { noError(t, follower.Close()) }()
	copied := observe(t, follower)
	defer copied.close()
	copied.now = 9999
	noError(t, follower.Apply(ctx, commits[0], kv.Buffered))
	for _, wrong := range []int{0, 2} {
		if err := follower.Apply(ctx, commits[wrong], kv.Buffered); !errors.Is(err, kv.ErrOrder) {
			t.Fatalf("commit %d behind 1: %v", commits[wrong].Number, err)
		}
	}
	begun := begin(t, follower)
	begun.Claim([]byte("a"))
	write(begun, "a=mine")
	for _, c := range commits[1:] {
		noError(t, follower.Apply(ctx, c, kv.Synced))
	}
	conflict(t, begun)
	same(t, copied.told(), source.told())
	haveWithoutCounters(t, follower, want)
	view := snap(t, follower)
	haveCount(t, view, "n", 4)
	haveValue(t, view, "a", "1x")
	haveValue(t, view, "p2", "2")
	haveNothing(t, view, "m2")
	noError(t, view.Close())
	put(t, follower, "z=1") // who goes on does so behind them
	same(t, copied.told(), "7 at 9999: z=1")
}

// haveWithoutCounters is have without the counter n, whose form is the engine's affair.
func haveWithoutCounters(t *testing.T, e kv.Engine, want string) {
	t.Helper()
	view := snap(t, e)
	it, err := view.NewIter(kv.IterOptions{})
	noError(t, err)
	var out []string
	for it.Next() {
		if !bytes.Equal(it.Key(), []byte("n")) {
			out = append(out, at(t, it))
		}
	}
	noError(t, errors.Join(it.Err(), it.Close(), view.Close()))
	if got := strings.Join(slices.Clip(out), " "); got != want {
		t.Fatalf("\n got %s\nwant %s", got, want)
	}
}

// checkStamped: what is stamped has what the Observer fills in, in the store, in the Commit and in a store that gets it, where
// nobody fills in anything.
func checkStamped(t *testing.T, s *Store) {
	ctx := context.Background()
	r := observe(t, s)
	r.stamps = true
	stamped := func() kv.Op { return kv.Op{Key: []byte("log#?"), Value: []byte("entry #? of the log")} }
	first, second := begin(t, s), begin(t, s)
	for _, txn := range []kv.Txn{first, second} {
		txn.Claim([]byte("a"))
		txn.Stamp(stamped(), kv.Op{Key: []byte("log#?b")})
		haveNothing(t, txn, "log#?")
	}
	write(first, "a=1")
	commit(t, first)
	conflict(t, second)
	alone, err := s.BeginBlind()
	noError(t, err)
	alone.Stamp(stamped())
	noError(t, alone.Commit(ctx, kv.Synced))
	for _, value := range []string{"1", "2"} { // in the place of what was there, which has just been read
		again := begin(t, s)
		again.Stamp(kv.Op{Key: []byte("last"), Value: []byte(value)})
		commit(t, again)
		view := snap(t, s)
		haveValue(t, view, "last", value)
		noError(t, view.Close())
	}
	const want = "a=1 last=2 log#1=entry #1 of the log log#1b= log#2=entry #2 of the log"
	haveWithoutCounters(t, s, want)
	same(t, describe(r.commits[0]), "1 at 1000: a=1 stamped log#1=entry #1 of the log stamped log#1b= ^a")
	if s.Another == nil {
		t.Log("not looked at: the engine can be opened once")
		return
	}
	follower := s.Another(t)
	defer func() { noError(t, follower.Close()) }()
	copied := observe(t, follower)
	for i := range r.commits {
		noError(t, follower.Apply(ctx, r.decoded(i), kv.Synced))
	}
	same(t, copied.told(), r.told())
	haveWithoutCounters(t, follower, want)
}
