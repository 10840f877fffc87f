package yield

import (
	"os"
	"runtime"
	"sync"
	"testing"
)

// TestNowAsksTheNetwork: where one goroutine has the only processor, and yields again and again, another one hears soon of what has arrived for
// it. By runtime.Gosched it takes some ten thousand turns.
func TestNowAsksTheNetwork(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const enough = 20
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	defer in.Close()
	var l line
	if err := l.begin(); err != nil {
		t.Fatal(err)
	}
	heard := make(chan struct{}, 1)
	go func() {
		for buf := make([]byte, 1); ; {
			if _, err := out.Read(buf); err != nil {
				return
			}
			heard <- struct{}{}
		}
	}()
	l.wait()
	for range 100 {
		if _, err := in.Write([]byte{0}); err != nil {
			t.Fatal(err)
		}
		turns := 0
		for len(heard) == 0 {
			l.arrivals.Add(1) // or a pause of a slow machine is one in which nothing arrives
			l.wait()
			if turns++; turns > enough {
				t.Fatalf("not heard after %d turns", turns)
			}
		}
		<-heard
	}
}

// TestWithoutArrivals: where nothing has arrived for a while nobody asks. Nobody reads from this pipe, so who did would wait without end.
func TestWithoutArrivals(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	defer in.Close()
	l := line{in: in}
	l.works.Store(true)
	l.seenAt.Store(-int64(askedFor))
	l.wait()
}

// TestOfMany: all who yield at the same time go on.
func TestOfMany(t *testing.T) {
	var l line
	if err := l.begin(); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for i := range 200 {
				if i%2 == 0 {
					l.arrivals.Add(1)
					l.wait()
				} else {
					l.call(places.Get().(*place))
				}
			}
		})
	}
	all.Wait()
}

// TestWithoutPipe: where there is no pipe, or none any more, nobody waits for one.
func TestWithoutPipe(t *testing.T) {
	var never line
	never.wait()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	broken := line{in: in}
	broken.works.Store(true)
	_ = out.Close()
	ended := make(chan struct{})
	go func() { broken.run(out); close(ended) }()
	for range 100 {
		broken.call(places.Get().(*place))
	}
	<-ended
	broken.call(places.Get().(*place))
	broken.wait()
}

// TestBeginOfMany: a process has one pipe, however many servers are started in it.
func TestBeginOfMany(t *testing.T) {
	var l line
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if err := l.begin(); err != nil {
				t.Error(err)
			}
			l.call(places.Get().(*place))
		})
	}
	all.Wait()
	in := l.in
	if err := l.begin(); err != nil || l.in != in {
		t.Errorf("another pipe, %v", err)
	}
}
