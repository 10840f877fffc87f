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
	heard := make(chan struct{}, 1)
	go func() {
		for buf := make([]byte, 1); ; {
			if _, err := out.Read(buf); err != nil {
				return
			}
			heard <- struct{}{}
		}
	}()
	Now()
	for range 100 {
		if _, err := in.Write([]byte{0}); err != nil {
			t.Fatal(err)
		}
		turns := 0
		for len(heard) == 0 {
			Now()
			if turns++; turns > enough {
				t.Fatalf("not heard after %d turns", turns)
			}
		}
		<-heard
	}
}

// TestNowOfMany: all who yield at the same time go on.
func TestNowOfMany(t *testing.T) {
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for range 200 {
				Now()
			}
		})
	}
	all.Wait()
}

// TestWithoutPipe: where there is no pipe, or none any more, nobody waits for one.
func TestWithoutPipe(t *testing.T) {
	var never line
	never.open.Do(func() {})
	never.wait()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	broken := line{in: in}
	broken.open.Do(func() {})
	broken.mu.works = true
	_ = out.Close()
	ended := make(chan struct{})
	go func() { broken.run(out); close(ended) }()
	broken.wait()
	<-ended
	broken.wait()
}
