package ttl

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/host"
)

// machine is a machine whose processors are busy as a script says, and a sweep on it.
type machine struct {
	clock      *clock.Fake
	pacer      pacer
	least      float64
	processors int
	clients    float64 // processors that clients' operations take, if there are so many
	others     float64 // and other programs
	silent     bool    // whether the load begins no operations
	blind      bool    // whether the machine does not tell what is idle
	used, idle time.Duration
	waiting    time.Duration // what clients wanted and did not have yet
	operations int64
	step       time.Duration
	lag        time.Duration
	longest    time.Duration
	rests      int
}

func newMachine() *machine {
	m := &machine{clock: clock.NewFake(time.Unix(1_700_000_000, 0)), least: 0.1, processors: 2, step: time.Millisecond}
	m.pacer = pacer{clock: m.clock, least: func() float64 { return m.least }, wait: m.wait, metrics: &metrics{},
		meter: &meter{look: func() reading {
			r := reading{host.Processors{Count: m.processors, Used: m.used, Idle: m.idle}, m.operations}
			if m.blind {
				r.Idle = -1
			}
			return r
		}}}
	return m
}

// pass lets time pass, in which background work wants own processors, and returns how much of them it had. When more is
// wanted than there is, each has its part, and clients ask for the rest later.
func (m *machine) pass(d time.Duration, own float64) (had time.Duration) {
	all, wanted := float64(m.processors), m.clients
	if m.waiting > 0 {
		wanted = max(wanted, float64(m.processors))
	}
	part := min(all/max(wanted+m.others+own, 1e-9), 1)
	span := func(processors float64) time.Duration { return time.Duration(processors * part * float64(d)) }
	served := min(span(wanted), m.waiting+time.Duration(m.clients*float64(d)))
	m.waiting = min(m.waiting+time.Duration(m.clients*float64(d))-served, time.Second)
	m.used += served + span(own)
	m.idle += max(time.Duration(all*float64(d))-served-span(own)-span(m.others), 0)
	if m.clients > 0 && !m.silent {
		m.operations++
	}
	m.clock.Advance(d)
	return span(own)
}

func (m *machine) wait(_ context.Context, d time.Duration) error {
	m.rests++
	m.longest = max(m.longest, d)
	m.pass(d, 0)
	return nil
}

// sweep works for so long, step by step, and says how much of a processor it had.
func (m *machine) sweep(for_ time.Duration) string {
	begun, worked := m.clock.Now(), time.Duration(0)
	m.longest, m.rests = 0, 0
	for clock.Since(m.clock, begun) < for_ {
		if err := m.pacer.rest(context.Background()); err != nil {
			return err.Error()
		}
		worked += m.pass(m.step, 1)
		m.pacer.did(m.step, m.lag)
	}
	had := 100 * float64(worked) / float64(clock.Since(m.clock, begun))
	if m.rests == 0 {
		return fmt.Sprintf("had %.0f%%, no rest", had)
	}
	return fmt.Sprintf("had %.0f%%, longest rest %v", had, m.longest.Round(time.Millisecond))
}

// tell tells of so many documents, a thousand a step, and says when it was through.
func (m *machine) tell(documents int64) string {
	begun, t := m.clock.Now(), telling{}
	m.longest, m.rests = 0, 0
	for documents > 0 {
		if err := m.pacer.rest(context.Background()); err != nil {
			return err.Error()
		}
		m.pass(m.step, 1)
		some := min(documents, 1000)
		documents -= some
		t.did(some, m.step, documents, m.lag+clock.Since(m.clock, begun))
		m.pacer.didTell(m.step, t)
	}
	took := clock.Since(m.clock, begun).Round(10 * time.Millisecond)
	if m.rests == 0 {
		return fmt.Sprintf("took %v, no rest", took)
	}
	return fmt.Sprintf("took %v, longest rest %v", took, m.longest.Round(time.Millisecond))
}

func (m *machine) line(text string) string {
	verb, arg, _ := strings.Cut(text, " ")
	number, _ := strconv.ParseFloat(arg, 64)
	span, _ := time.ParseDuration(arg)
	switch verb {
	case "processors":
		m.processors = int(number)
	case "clients":
		m.clients = number
	case "others":
		m.others = number
	case "least":
		m.least = number / 100
	case "silent":
		m.silent = true
	case "blind":
		m.blind = true
	case "step":
		m.step = span
	case "lag":
		m.lag = span
	case "quiet": // nothing to sweep
		m.pass(span, 0)
	case "turn": // the clock, and nothing happens
		m.clock.Advance(span)
	case "tell":
		return text + ": " + m.tell(int64(number)) + "\n"
	case "sweep":
		return text + ": " + m.sweep(span) + "\n"
	default:
		return "no such verb: " + verb + "\n"
	}
	return ""
}

// TestPace runs testdata/pace: what a sweep gets on a machine that is busy.
func TestPace(t *testing.T) {
	datadriven.Walk(t, "testdata/pace", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			m, out := newMachine(), ""
			for line := range strings.Lines(d.Input) {
				out += m.line(strings.TrimSpace(line))
			}
			return out
		})
	})
}

func TestNoRestOnAClockThatStandsStill(t *testing.T) {
	m := newMachine()
	m.clients = 2
	m.sweep(time.Second)
	m.pacer.wait = func(context.Context, time.Duration) error { return errors.New("rested") }
	m.pacer.owed = 0
	for range 1000 {
		m.pacer.did(0, 0)
		if err := m.pacer.rest(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

// A clock that jumps while something is done, and then stands still again, costs one rest.
func TestOneRestAfterAJump(t *testing.T) {
	m := newMachine()
	m.clients = 2
	m.sweep(time.Second)
	rests := 0
	m.pacer.wait = func(_ context.Context, d time.Duration) error {
		if rests++; d > longestRest {
			t.Errorf("rest of %v", d)
		}
		return nil
	}
	m.clock.Advance(time.Hour)
	m.pacer.did(time.Hour, 0)
	for range 10 {
		if err := m.pacer.rest(context.Background()); err != nil {
			t.Fatal(err)
		}
		m.pacer.did(0, 0)
	}
	if rests != 1 {
		t.Errorf("%d rests", rests)
	}
}

// A clock that is turned back makes nobody wait.
func TestNoRestWhenTimeGoesBack(t *testing.T) {
	m := newMachine()
	m.sweep(time.Second)
	m.clock.Advance(-10 * time.Millisecond)
	if got := m.sweep(time.Second); got != "had 100%, no rest" {
		t.Error(got)
	}
}

func TestRestEndsWithItsContext(t *testing.T) {
	why := errors.New("the server stops")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	if err := waitOutside(ctx, time.Hour); !errors.Is(err, why) {
		t.Error(err)
	}
	if err := waitOutside(context.Background(), time.Microsecond); err != nil {
		t.Error(err)
	}
}
