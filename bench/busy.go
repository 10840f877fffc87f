package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"
)

// busyVerb has this program be a process that computes, and has nothing to do with the server.
const busyVerb = "busy"

// busyPeriod is how long it computes and rests together.
const busyPeriod = 4 * time.Millisecond

// computing is what it is told.
type computing struct {
	Percent int // of one processor's time
}

func beBusy(ctx context.Context, in io.Reader, _ io.Writer) error {
	input := bufio.NewReader(in)
	var c computing
	if err := readTask(input, &c); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		defer stop()
		_, _ = io.Copy(io.Discard, input)
	}()
	runtime.LockOSThread()
	work := busyPeriod * time.Duration(c.Percent) / 100
	for ctx.Err() == nil {
		for begin := time.Now(); time.Since(begin) < work; {
		}
		pause(ctx, busyPeriod-work)
	}
	return nil
}

// besideBusy finds and inserts beside such a process. So it tells what the machine makes of it that somebody else computes for milliseconds in one
// piece, whoever that is: a yardstick for expiry-told.
type besideBusy struct{}

func (*besideBusy) prepare(context.Context, *bench) error { return nil }

func (w *besideBusy) measure(ctx context.Context, b *bench) error {
	alone, err := w.probe(ctx, b)
	if err != nil {
		return err
	}
	if err := b.tell("-0", alone); err != nil {
		return err
	}
	for _, percent := range []int{25, 50, 75} {
		busy, err := startOther(ctx, busyVerb, computing{percent})
		if err != nil {
			return err
		}
		beside, err := w.probe(ctx, b)
		if err = errors.Join(err, busy.end()); err != nil {
			return err
		}
		for _, kind := range []string{"find", "insert"} {
			beside[kind+"_p99_ratio"] = beside[kind+"_p99_ms"] / alone[kind+"_p99_ms"]
		}
		if err := b.tell(fmt.Sprint("-", percent), beside); err != nil {
			return err
		}
	}
	return nil
}

// probe finds and inserts for as long as -probe-for says.
func (*besideBusy) probe(ctx context.Context, b *bench) (metrics, error) {
	p, err := startProbes(ctx, b)
	if err != nil {
		return nil, err
	}
	from := p.begin.Add(probeWarm)
	to := from.Add(b.probeFor)
	pause(ctx, time.Until(to))
	if err := p.stop(); err != nil {
		return nil, err
	}
	out := metrics{"late": float64(p.mu.late)}
	for kind, samples := range p.mu.samples {
		between(samples, from, to).into(out, kind+"_")
	}
	return out, nil
}
