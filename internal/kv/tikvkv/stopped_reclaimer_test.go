package tikvkv_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tikv/client-go/v2/tikvrpc"

	"github.com/ebbdb/ebb/internal/kv/tikvkv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv/tikvtest"
)

// A server that is stopped while it removes the keys of a deleted range, and wakes up when another one has taken over, removes nothing that the other has
// written there, be that in parts or not. The other one removes what is left.
func TestStoppedServerRemovesNothing(t *testing.T) {
	long := func(of string) string { return strings.Repeat(of, partBytes) + "end" }
	for _, before := range []bool{true, false} { // the other one has removed the rest when it wakes up, or has not
		c, w := tikvtest.New(t), &wire{}
		first, still := stopped(t, c, w)
		for key, value := range map[string]string{"a": long("1"), "b": "1", "c": long("1")} {
			if err := put(first, key, value); err != nil {
				t.Fatal(err)
			}
		}
		reached, goOn, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
		var met atomic.Int64
		hold := func(req *tikvrpc.Request, send func() (*tikvrpc.Response, error)) (*tikvrpc.Response, error) {
			if req.Type != tikvrpc.CmdPrewrite || met.Add(1) != 2 { // behind the deletion's
				return send()
			}
			close(reached)
			<-goOn
			defer close(over)
			return send()
		}
		w.meet.Store(&hold)
		if err := first.DeleteRange([]byte("a"), []byte("d")); err != nil {
			t.Fatal(err)
		}
		<-reached
		second := c.Open(t, tikvkv.Options{Name: "second:2", Term: time.Minute, Clock: tikvtest.ProcessClock(t)})
		for key, value := range map[string]string{"a": long("2"), "b": "2"} {
			if err := put(second, key, value); err != nil {
				t.Fatal(err)
			}
		}
		s := &longStore{T: t, Engine: second, clock: tikvtest.ProcessClock(t)}
		if before {
			s.reclaimed()
		}
		close(goOn)
		<-over
		closed := make(chan error, 1)
		go func() { closed <- first.Close() }()
		_ = tikvtest.TurnFor(t, still, tikvtest.FastStep, closed) // it may say that it could not end well
		s.reclaimed()
		have(t, second, "a", long("2"))
		have(t, second, "b", "2")
		have(t, second, "c", "nothing")
		s.haveParts(2)
		if err := second.Close(); err != nil {
			t.Error(err)
		}
	}
}
