package backup_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/backup"
	"github.com/ebbdb/ebb/internal/backup/repository"
	"github.com/ebbdb/ebb/internal/clock"
)

// logged is a source with an oplog: entry n has the timestamp n, and says so in its eight bytes behind the length.
type logged struct {
	*source
	first, last int
	// forked has the entries from there on be others than before.
	forked int
	// stop ends a follower that has read all.
	stop context.CancelFunc
	// fails is asked before each call; or nil.
	fails func() error
}

func stamp(n int) repository.Timestamp {
	return repository.Timestamp{Seconds: uint32(1000 + n), Counter: 1}
}

func (l *logged) entry(n int) []byte {
	b := binary.LittleEndian.AppendUint32(nil, 14)
	b = binary.LittleEndian.AppendUint64(b, uint64(n))
	kind := byte(0)
	if l.forked > 0 && n >= l.forked {
		kind = 1
	}
	return append(b, kind, 0)
}

func numberOf(doc []byte) (repository.Timestamp, error) {
	if len(doc) != 14 {
		return repository.Timestamp{}, errors.New("it is no entry")
	}
	return stamp(int(binary.LittleEndian.Uint64(doc[4:]))), nil
}

func (l *logged) Begin(ctx context.Context) (*backup.Checkpoint, error) {
	c, err := l.source.Begin(ctx)
	if err == nil {
		c.Oplog = &repository.Oplog{From: stamp(l.last), To: stamp(l.last)}
	}
	return c, err
}

type loggedTail struct {
	*logged
	at int
}

func (l *logged) Tail(_ context.Context, behind repository.Timestamp) ([]byte, backup.Tail, error) {
	if err := l.trouble(); err != nil {
		return nil, nil, err
	}
	n := int(behind.Seconds) - 1000
	if n < l.first || n > l.last {
		return nil, nil, nil
	}
	return l.entry(n), &loggedTail{l, n}, nil
}

// trouble is what fails is asked for.
func (l *logged) trouble() error {
	if l.fails == nil {
		return nil
	}
	return l.fails()
}

func (t *loggedTail) Close() {}

func (t *loggedTail) Next(context.Context) (entries []backup.Entry, until repository.Timestamp, err error) {
	if err := t.trouble(); err != nil {
		return nil, until, err
	}
	for range 3 {
		if t.at < t.last {
			t.at++
			entries = append(entries, backup.Entry{At: stamp(t.at), Doc: t.entry(t.at)})
		}
	}
	t.clock.Advance(time.Minute)
	if len(entries) == 0 {
		until = repository.Timestamp{Seconds: stamp(t.last).Seconds + 50}
		t.stop()
	}
	return entries, until, nil
}

// follow ships what there is, and returns the backup that it goes on behind, and whether that was taken.
func (l *logged) follow(r *repository.Repository) (id string, taken bool) {
	l.t.Helper()
	ctx, stop := context.WithCancel(l.t.Context())
	defer stop()
	l.stop = func() {}
	idle := 0
	l.stop = func() {
		if idle++; idle == 2 { // once for the coverage
			stop()
		}
	}
	var last backup.Following
	if err := backup.Follow(ctx, l, r, l.clock, nil, func(f backup.Following) { last = f }); err != nil {
		l.t.Fatal(err)
	}
	return last.Backup, last.Taken != nil
}

// replayed are the numbers of the entries that lead from one to another.
func replayed(t *testing.T, r *repository.Repository, id string, behind, to repository.Timestamp) (string, error) {
	t.Helper()
	var all []string
	_, err := backup.Replay(t.Context(), r, id, behind, to, numberOf, func(e backup.Entry) error {
		all = append(all, fmt.Sprint(e.At.Seconds-1000))
		return nil
	})
	return strings.Join(all, " "), err
}

// TestFollowAndReplay: what is shipped leads to each moment, from wherever a backup ends; a follower goes on where the last one was; and a moment that
// may have more before it than is known is refused.
func TestFollowAndReplay(t *testing.T) {
	l := &logged{source: newSource(t), first: 1, last: 10}
	r, _ := newRepository(t, l.clock)
	id, taken := l.follow(r)
	if !taken {
		t.Fatal("no backup was taken")
	}
	l.last = 17
	if again, taken := l.follow(r); again != id || taken {
		t.Fatalf("it went on behind %s (taken: %v), not %s", again, taken, id)
	}
	for _, c := range []struct {
		behind, to repository.Timestamp
		want, err  string
	}{
		{stamp(10), stamp(17), "11 12 13 14 15 16 17", ""},
		{stamp(10), repository.Timestamp{}, "11 12 13 14 15 16 17", ""},
		{stamp(12), stamp(14), "13 14", ""},
		{stamp(15), stamp(15), "", ""},
		{stamp(16), backup.EndOf(time.Unix(1017, 0)), "17", ""},
		{stamp(16), stamp(60), "17", ""},                        // nothing came up to there
		{stamp(16), stamp(68), "17", "was shipped up to"},       // and nobody knows of later
		{stamp(15), stamp(14), "", "an older backup is needed"}, // it is in the backup already
		{stamp(9), stamp(14), "", "has a gap"},
	} {
		got, err := replayed(t, r, id, c.behind, c.to)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("from %s to %s: %q, %v; want %q, %q", c.behind, c.to, got, err, c.want, c.err)
		}
	}
	for to, want := range map[repository.Timestamp]bool{stamp(9): false, stamp(10): true, stamp(17): true, {}: true} {
		if m, err := backup.BackupFor(t.Context(), r, "", to); (err == nil) != want || err == nil && m.ID != id {
			t.Errorf("to %s: %v, %v", to, m, err)
		}
	}
	l.first, l.last = 20, 20 // a backup behind which nobody follows
	taken20, err := backup.Take(t.Context(), l, r, l.clock, nil)
	if err != nil {
		t.Fatal(err)
	}
	for to, want := range map[repository.Timestamp]string{{}: taken20.Manifest.ID, stamp(20): taken20.Manifest.ID, stamp(17): id, stamp(19): id, stamp(21): id} {
		if m, err := backup.BackupFor(t.Context(), r, "", to); err != nil || m.ID != want {
			t.Errorf("to %s, beside a newer backup: %v, %v; want %s", to, m, err, want)
		}
	}
	if got, err := replayed(t, r, taken20.Manifest.ID, stamp(20), repository.Timestamp{}); err != nil || got != "" {
		t.Errorf("to the latest moment of a backup: %q, %v", got, err)
	}
	if _, err := backup.Prune(t.Context(), r, backup.Keep{Last: 2, Now: l.clock.Now()}); err != nil {
		t.Fatal(err)
	}
	if got, err := replayed(t, r, id, stamp(10), stamp(17)); err != nil || got == "" {
		t.Errorf("after pruning: %q, %v", got, err)
	}
}

// TestFollowerThatCannotGoOn begins behind a new backup: where the oplog has lost what comes next, and where it is that of another history.
func TestFollowerThatCannotGoOn(t *testing.T) {
	for name, change := range map[string]func(*logged){
		"lost":   func(l *logged) { l.first, l.last = 30, 40 },
		"forked": func(l *logged) { l.forked, l.last = 12, 20 },
		"back":   func(l *logged) { l.last = 11 },
	} {
		t.Run(name, func(t *testing.T) {
			l := &logged{source: newSource(t), first: 1, last: 10}
			r, _ := newRepository(t, l.clock)
			if _, taken := l.follow(r); !taken {
				t.Fatal("no backup was taken")
			}
			l.last = 14
			id, _ := l.follow(r)
			change(l)
			if again, taken := l.follow(r); again == id || !taken {
				t.Errorf("it went on behind %s", again)
			}
		})
	}
}

// passing has the time pass that somebody waits for, until stop is called.
func passing(c *clock.Fake) (stop func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-over:
				return
			default:
			}
			if c.Waiting() > 0 {
				c.Advance(time.Second)
			}
			runtime.Gosched()
		}
	}()
	return func() { close(over); <-ended }
}

// TestFollowerGoesOn: a server that does not answer is asked again and again, and what it has then follows on what was shipped; a server that has another history
// then, or has lost the place, ends it with words.
func TestFollowerGoesOn(t *testing.T) {
	for name, x := range map[string]struct {
		change func(*logged) // while it does not answer
		err    string
	}{
		"as it was": {func(l *logged) { l.last = 40 }, ""},
		"lost":      {func(l *logged) { l.first, l.last = 90, 99 }, "any more: the server's oplog does not go on behind"},
		"forked":    {func(l *logged) { l.forked, l.last = 12, 40 }, "is another: the server's oplog does not go on behind"},
	} {
		t.Run(name, func(t *testing.T) {
			l := &logged{source: newSource(t), first: 1, last: 10, stop: func() {}}
			r, _ := newRepository(t, l.clock)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			calls, tries := 0, 0
			l.fails = func() error {
				switch calls++; {
				case calls == 4:
					l.last = 20
				case calls > 10 && calls < 20:
					if calls == 11 {
						x.change(l)
					}
					return errors.New("the server is gone")
				}
				return nil
			}
			idle := 0
			l.stop = func() {
				if idle++; l.last == 40 && idle > 5 {
					stop()
				}
			}
			var last backup.Following
			var longest time.Duration
			err := backup.Follow(ctx, l, r, l.clock, nil, func(f backup.Following) {
				if last = f; f.Trouble != nil {
					if tries++; tries == 1 {
						t.Cleanup(passing(l.clock))
					}
					longest = max(longest, f.Retry)
				}
			})
			if (err == nil) != (x.err == "") || err != nil && !strings.Contains(err.Error(), x.err) {
				t.Fatalf("%v", err)
			}
			if tries < 9 || longest != 30*time.Second {
				t.Errorf("it was tried %d times, and it waited for %v at most", tries, longest)
			}
			want := "11 12 13 14 15 16 17 18 19 20"
			if x.err == "" {
				for i := 21; i <= 40; i++ {
					want += fmt.Sprint(" ", i)
				}
			}
			if got, err := replayed(t, r, last.Backup, stamp(10), repository.Timestamp{}); err != nil || got != want {
				t.Errorf("shipped: %q, %v", got, err)
			}
		})
	}
}

// TestFollowerOfWhatWasRemoved ends, and ships nothing that no backup begins.
func TestFollowerOfWhatWasRemoved(t *testing.T) {
	l := &logged{source: newSource(t), first: 1, last: 10}
	r, dir := newRepository(t, l.clock)
	l.stop = func() {}
	err := backup.Follow(t.Context(), l, r, l.clock, nil, func(f backup.Following) {
		if f.Segments == 0 {
			l.last = 20
			if err := r.Forget(t.Context(), f.Backup); err != nil {
				t.Error(err)
			}
		}
	})
	if err == nil || !strings.Contains(err.Error(), "has been removed") {
		t.Errorf("%v", err)
	}
	if names, _ := filepath.Glob(filepath.Join(dir, "log", "*", "*.seg")); len(names) > 0 {
		t.Errorf("it has shipped %v", names)
	}
}

// TestHostileSegments: whatever somebody has made of the segments, a replay ends before what is wrong, in words that say what is.
func TestHostileSegments(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, names []string)
		says  string
	}{
		"a flipped bit in a body": {func(t *testing.T, names []string) { flip(t, names[1], func(b []byte) int { return len(b) - 3 }) }, "is damaged"},
		"a flipped bit in a head": {func(t *testing.T, names []string) { flip(t, names[1], func([]byte) int { return 20 }) }, "is damaged"},
		"half a segment": {func(t *testing.T, names []string) {
			b, err := os.ReadFile(names[1])
			if err == nil {
				err = os.WriteFile(names[1], b[:len(b)/2], 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, "is refused"},
		"an empty segment": {func(t *testing.T, names []string) {
			if err := os.WriteFile(names[1], nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "it has no head"},
		"a missing segment": {func(t *testing.T, names []string) {
			if err := os.Remove(names[1]); err != nil {
				t.Fatal(err)
			}
		}, "has a gap"},
		"the last segment is missing": {func(t *testing.T, names []string) {
			if err := os.Remove(names[len(names)-1]); err != nil {
				t.Fatal(err)
			}
		}, "the end of the oplog"},
		"all segments are missing": {func(t *testing.T, names []string) {
			for _, name := range names {
				if err := os.Remove(name); err != nil {
					t.Fatal(err)
				}
			}
		}, "what came behind entry 1010:1 and up to 1034:1"},
		"a flipped bit in what tells how far it goes": {func(t *testing.T, names []string) {
			flip(t, filepath.Join(filepath.Dir(names[0]), "covered.json"), func([]byte) int { return 12 })
		}, "up to which it can be replayed"},
		"a segment under another's name": {func(t *testing.T, names []string) {
			b, err := os.ReadFile(names[2])
			if err == nil {
				err = os.WriteFile(names[1], b, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, "says that it goes from"},
	} {
		t.Run(name, func(t *testing.T) {
			l := &logged{source: newSource(t), first: 1, last: 10}
			r, dir := newRepository(t, l.clock)
			id := ""
			for l.last = 10; l.last < 40; l.last += 6 {
				id, _ = l.follow(r)
			}
			names, err := filepath.Glob(filepath.Join(dir, "log", id, "*.seg"))
			if err != nil || len(names) < 4 {
				t.Fatalf("%v, %v", names, err)
			}
			whole, err := replayed(t, r, id, stamp(10), repository.Timestamp{})
			if err != nil {
				t.Fatal(err)
			}
			if v, err := backup.Verify(t.Context(), r, nil, nil); err != nil || v.FaultCount != 0 || v.Segments != len(names) {
				t.Fatalf("verified before: %+v, %v", v, err)
			}
			c.spoil(t, names)
			got, err := replayed(t, r, id, stamp(10), repository.Timestamp{})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want words like %q", err, c.says)
			}
			if v, err := backup.Verify(t.Context(), r, nil, nil); err != nil || v.FaultCount == 0 || len(v.Sound) != 1 {
				t.Errorf("verified: %+v, %v", v, err)
			}
			if got == whole && !strings.HasPrefix(name, "a flipped bit in what") || !strings.HasPrefix(whole, got) {
				t.Errorf("it has given %q of %q", got, whole)
			}
		})
	}
}

// TestCoveredWhileBusy: how far the oplog was shipped is known also where the server never rests.
func TestCoveredWhileBusy(t *testing.T) {
	l := &logged{source: newSource(t), first: 1, last: 10, stop: func() {}}
	r, _ := newRepository(t, l.clock)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	calls := 0
	l.fails = func() error {
		if calls++; calls == 6 {
			stop()
		}
		return nil
	}
	var last backup.Following
	err := backup.Follow(ctx, l, r, l.clock, nil, func(f backup.Following) {
		if last = f; f.Segments == 0 {
			l.last = 1000
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := r.Covered(t.Context(), last.Backup); err != nil || c.After.Compare(stamp(10)) <= 0 {
		t.Errorf("it was shipped up to %s, and covered is %+v, %v", last.Last, c, err)
	}
}

// TestVerifiedChains: a chain that does not begin where its backup ends is found out, and so is one without its backup, which a prune removes.
func TestVerifiedChains(t *testing.T) {
	l := &logged{source: newSource(t), first: 1, last: 10}
	r, dir := newRepository(t, l.clock)
	id := ""
	for l.last = 10; l.last < 40; l.last += 6 {
		id, _ = l.follow(r)
	}
	verified := func(want string) {
		t.Helper()
		v, err := backup.Verify(t.Context(), r, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(v.Faults, "\n"); want == "" && got != "" || !strings.Contains(got, want) || v.FaultCount > 1 {
			t.Errorf("%d faults: %q, want %q", v.FaultCount, got, want)
		}
	}
	verified("")
	names, err := filepath.Glob(filepath.Join(dir, "log", id, "*.seg"))
	if err != nil || len(names) < 2 {
		t.Fatalf("%v, %v", names, err)
	}
	if err := os.Remove(names[0]); err != nil {
		t.Fatal(err)
	}
	verified("what came behind entry 1010:1 and up to")
	if err := os.Rename(filepath.Join(dir, "backups", id+".json"), filepath.Join(dir, "aside")); err != nil {
		t.Fatal(err)
	}
	l.last = 100
	if _, err := backup.Take(t.Context(), l, r, l.clock, nil); err != nil {
		t.Fatal(err)
	}
	verified("the oplog behind backup " + id + " is there, and not the backup")
	if _, err := backup.Prune(t.Context(), r, backup.Keep{Last: 1, Now: l.clock.Now()}); err != nil {
		t.Fatal(err)
	}
	verified("")
}

// TestVerifiedOverlap: two have followed for a while, of which one is gone: nothing is missing, and a verify says so as a replay does.
func TestVerifiedOverlap(t *testing.T) {
	l := &logged{source: newSource(t), first: 1, last: 10}
	r, _ := newRepository(t, l.clock)
	taken, err := backup.Take(t.Context(), l, r, l.clock, nil)
	if err != nil {
		t.Fatal(err)
	}
	id := taken.Manifest.ID
	for _, s := range [][2]int{{11, 20}, {11, 13}, {14, 16}, {21, 25}} {
		var entries []byte
		for n := s[0]; n <= s[1]; n++ {
			entries = append(entries, l.entry(n)...)
		}
		segment := repository.Segment{Prev: stamp(s[0] - 1), First: stamp(s[0]), Last: stamp(s[1]), LastSHA256: strings.Repeat("0", 64), Entries: 1 + s[1] - s[0]}
		if err := r.PutSegment(t.Context(), id, segment, entries); err != nil {
			t.Fatal(err)
		}
	}
	if v, err := backup.Verify(t.Context(), r, nil, nil); err != nil || v.FaultCount > 0 || v.Segments != 4 {
		t.Errorf("%v: %+v", err, v)
	}
	if got, err := replayed(t, r, id, stamp(10), stamp(25)); err != nil {
		t.Errorf("%v: %s", err, got)
	}
}

func flip(t *testing.T, path string, where func([]byte) int) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[where(b)] ^= 4
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
