package memory

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

func TestSizesOfBuffers(t *testing.T) {
	before := -1
	for n := 1; n <= topLent; n += 1 + n/7 {
		size, class := sizeOf(n)
		again, same := sizeOf(size)
		if size < n || size > max(2*n, minLent) || class < before || again != size || same != class {
			t.Fatalf("%d: %d of class %d, then %d of %d", n, size, class, again, same)
		}
		before = class
	}
	if size, class := sizeOf(topLent); size != topLent || class != before && class != before+1 {
		t.Errorf("the largest is %d of class %d", size, class)
	}
	if size, class := sizeOf(topLent + 1); size != topLent+1 || class >= 0 {
		t.Errorf("%d of class %d", size, class)
	}
}

// What came back is lent again, without a byte more being counted.
func TestABufferIsUsedAgain(t *testing.T) {
	g := New(1<<30, clock.Wall(), nil)
	a, b := account(g, Replies), account(g, Replies)
	first := a.Enlarge([]byte("first"), 3*mib)
	if string(first) != "first" || cap(first) != 4*mib || g.Stats().Used < 4*mib-freeBytes {
		t.Fatalf("%q of %d, %+v", first, cap(first), g.Stats())
	}
	second := a.Enlarge(first, 5*mib)
	if string(second) != "first" || cap(second) != 8*mib {
		t.Fatalf("%q of %d", second, cap(second))
	}
	third := b.Enlarge(nil, 3*mib)
	if &third[:1][0] != &first[0] {
		t.Error("a new one was made")
	}
	if used := g.Stats().Used; used < 12*mib-freeBytes || used > 14*mib {
		t.Errorf("%d bytes are counted", used)
	}
	a.Close()
	b.Close()
	if s := g.Stats(); s.Used != 12*mib || s.By[Buffers] != 12*mib || g.buffers.kept != 12*mib {
		t.Errorf("%+v, of which %d is kept", s, g.buffers.kept)
	}
	g.trim() // all of it was in use since
	g.trim()
	if s := g.Stats(); s.Used != 0 {
		t.Errorf("%+v when nobody needed it for a while", s)
	}
}

// Who waits for memory has what buffers keep.
func TestBuffersGiveWay(t *testing.T) {
	g := New(64*mib, clock.Wall(), nil)
	defer g.Close()
	a, b := account(g, Replies), account(g, Operators)
	if a.Enlarge(nil, 8*mib) == nil {
		t.Fatal("there is no memory")
	}
	a.Close()
	if g.Stats().Used != 8*mib {
		t.Fatalf("%+v", g.Stats())
	}
	if err := b.Wait(t.Context(), 55*mib); err != nil {
		t.Error(err)
	}
}

// Who waits for a buffer has the first one that comes back, and who waits for memory not for ever.
func TestABufferIsHandedOver(t *testing.T) {
	g := New(40*mib, clock.Wall(), nil)
	defer g.Close()
	a, b := account(g, Replies), account(g, Replies)
	first := a.Enlarge(nil, 16*mib)
	c := account(g, Operators)
	if first == nil || !c.Take(18*mib) {
		t.Fatal("there is no memory")
	}
	got := make(chan []byte)
	go func() {
		piece, err := b.EnlargeWaiting(t.Context(), []byte("b"), 12*mib)
		if err != nil {
			t.Error(err)
		}
		got <- piece
	}()
	for g.Stats().Waiting == 0 {
		time.Sleep(time.Millisecond)
	}
	a.Close()
	if piece := <-got; string(piece) != "b" || &piece[0] != &first[:1][0] {
		t.Error("it had another one")
	}
	b.Close()
	c.Close()
	g.dropBuffers(g.total)
	if s := g.Stats(); s.Used != 0 || s.By != [kinds]int64{} {
		t.Errorf("%+v", s)
	}
}

// Many who enlarge and close at random never share a buffer, never have more than there is, and leave nothing behind.
func TestLending(t *testing.T) {
	g := New(64*mib, clock.Wall(), nil)
	defer g.Close()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			a := account(g, Kind(rand.IntN(int(Buffers))))
			mine, held := bytes.Repeat([]byte{byte(i + 1)}, 16), []byte(nil)
			for range 300 {
				var b []byte
				if n := rand.IntN(6 * mib); rand.IntN(2) == 0 {
					b = a.Enlarge(held, n+len(held))
				} else {
					b, _ = a.EnlargeWaiting(t.Context(), held, n+len(held))
				}
				if b != nil {
					held = append(b, mine...)
				}
				for at := 0; at < len(held); at += len(mine) {
					if !bytes.Equal(held[at:at+len(mine)], mine) {
						t.Errorf("another one's %v", held[at:at+len(mine)])
						return
					}
				}
				if used := g.Stats().Used; used > 65*mib {
					t.Errorf("%d bytes", used)
				}
				if rand.IntN(3) == 0 {
					a.Close()
					held = nil
				}
			}
			a.Close()
		})
	}
	all.Wait()
	g.dropBuffers(g.total)
	if s := g.Stats(); s.Used != 0 || s.By != [kinds]int64{} || g.buffers.kept != 0 {
		t.Errorf("%+v, %d kept", s, g.buffers.kept)
	}
}
