// Package establishment limits how many connections begin a second, so that a storm of them does not take the processor
// from those that are there. It is MongoDB's ingressConnectionEstablishmentRateLimiter: tokens come in at a rate, unused ones
// are saved up to the burst, and a connection without one waits for the next, if the queue has room, or is closed.
package establishment

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/netrange"
	"github.com/ebbdb/ebb/internal/parameter"
)

// Limiter admits connections. It admits all until AddParameters and its first parameter say otherwise.
type Limiter struct {
	clock clock.Clock

	enabled   *parameter.Bool
	perSecond *parameter.Int
	burst     *parameter.Double
	depth     *parameter.Int
	bypass    atomic.Pointer[bypass]

	mu struct {
		sync.Mutex
		bucket    *rate.Limiter // of the settings below; nil before the first connection
		perSecond int64
		burst     float64
		queued    int64
	}
	attempted, admitted, rejected, exempted, waited, interrupted, waits atomic.Int64
	waitedMicros                                                        atomic.Int64
}

// bypass is who is not limited, as it was asked for and as it is looked up.
type bypass struct {
	asked bson.Doc
	who   netrange.Set
}

// Stats are figures since the start, but for Queued and Tokens, which are of now.
type Stats struct {
	Queued, Tokens int64
	// Attempted are those who needed a token: Admitted got one, Rejected did not, Interrupted waited when the server stopped.
	Attempted, Admitted, Rejected, Interrupted int64
	// Exempted needed none. Waits are those who had to wait, Waited those of them whose turn came, WaitedMicros how long they did.
	Exempted, Waits, Waited, WaitedMicros int64
}

// New is a limiter that goes by c.
func New(c clock.Clock) *Limiter {
	l := &Limiter{clock: c}
	l.bypass.Store(&bypass{asked: bson.Build().Doc()})
	return l
}

const prefix = "ingressConnectionEstablishment"

// AddParameters enters the parameters by which l is set.
func (l *Limiter) AddParameters(r *parameter.Registry) {
	l.enabled = parameter.NewBool(r, prefix+"RateLimiterEnabled", parameter.Both, false)
	l.perSecond = parameter.NewInt(r, prefix+"RatePerSec", parameter.Both, math.MaxInt32, 1, math.MaxInt32, false)
	l.burst = parameter.NewDoubleAbove(r, prefix+"BurstCapacitySecs", parameter.Both, math.MaxFloat64, 0)
	l.depth = parameter.NewInt(r, prefix+"MaxQueueDepth", parameter.Both, 0, 0, math.MaxInt32, false)
	const name = prefix + "RateLimiterBypass"
	r.Add(&parameter.Parameter{Name: name, When: parameter.Both,
		Get: func() bson.Value { return l.bypass.Load().asked.Value() },
		Set: func(v bson.Value) error { return l.setBypass(name, v) },
		Parse: func(text string) error {
			d, err := bson.ParseJSON([]byte(text))
			if err != nil {
				return mongoerr.New(mongoerr.BadValue, "Invalid value for parameter %s: %s", name, err)
			}
			return l.setBypass(name, d.Value())
		}})
}

// setBypass takes {ranges: [address or range, …]}.
func (l *Limiter) setBypass(name string, v bson.Value) error {
	if v.Type != bson.TypeObject {
		return mongoerr.New(mongoerr.TypeMismatch, "BSON field '%s' is the wrong type '%s', expected type 'object'", name, v.Type)
	}
	var texts []string
	for it := v.Doc().Iter(); it.Next(); {
		ranges := it.Value()
		switch {
		case it.Key() != "ranges":
			return mongoerr.New(40415, "BSON field '%s.%s' is an unknown field.", name, it.Key())
		case ranges.Type != bson.TypeArray:
			return mongoerr.New(mongoerr.TypeMismatch, "BSON field '%s.ranges' is the wrong type '%s', expected type 'array'", name, ranges.Type)
		}
		for each := ranges.Doc().Iter(); each.Next(); {
			one := each.Value()
			if one.Type != bson.TypeString {
				return mongoerr.New(mongoerr.TypeMismatch, "BSON field '%s.ranges.%s' is the wrong type '%s', expected type 'string'", name, each.Key(), one.Type)
			}
			texts = append(texts, one.Str())
		}
	}
	l.bypass.Store(&bypass{asked: v.Doc().Clone(), who: netrange.New(texts)})
	return nil
}

// Admit returns when the connection may begin, and false where it may not: too many have, or stopping was closed meanwhile.
func (l *Limiter) Admit(socket netrange.Peer, stopping <-chan struct{}) bool {
	if l == nil || l.enabled == nil || !l.enabled.Get() {
		return true
	}
	if l.bypass.Load().who.Has(socket) {
		l.exempted.Add(1)
		return true
	}
	l.attempted.Add(1)
	wait, ok := l.take()
	if !ok {
		l.rejected.Add(1)
		return false
	}
	if wait > 0 && !l.queue(wait, stopping) {
		return false
	}
	l.admitted.Add(1)
	return true
}

// take takes a token, which is there after wait. It is false where too many wait already.
func (l *Limiter) take() (wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mend()
	now := l.clock.Now()
	token := l.mu.bucket.ReserveN(now, 1)
	if !token.OK() {
		return 0, false
	}
	if wait = token.DelayFrom(now); wait == 0 {
		return 0, true
	}
	if l.mu.queued >= l.depth.Get() {
		token.CancelAt(now)
		return 0, false
	}
	l.mu.queued++
	return wait, true
}

// mend has the bucket be that of the settings. A new one is full.
func (l *Limiter) mend() {
	perSecond, burst := l.perSecond.Get(), l.burst.Get()
	if l.mu.bucket != nil && l.mu.perSecond == perSecond && l.mu.burst == burst {
		return
	}
	saved := min(float64(perSecond)*burst, math.MaxInt32)
	l.mu.bucket, l.mu.perSecond, l.mu.burst = rate.NewLimiter(rate.Limit(perSecond), int(saved)), perSecond, burst
}

// queue waits for a token that was taken ahead.
func (l *Limiter) queue(wait time.Duration, stopping <-chan struct{}) bool {
	defer func() {
		l.mu.Lock()
		l.mu.queued--
		l.mu.Unlock()
	}()
	l.waits.Add(1)
	timer := l.clock.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C():
		l.waited.Add(1)
		l.waitedMicros.Add(wait.Microseconds())
		return true
	case <-stopping:
		l.interrupted.Add(1)
		return false
	}
}

// Stats is a look at the figures now.
func (l *Limiter) Stats() Stats {
	if l == nil || l.enabled == nil {
		return Stats{}
	}
	s := Stats{Attempted: l.attempted.Load(), Admitted: l.admitted.Load(), Rejected: l.rejected.Load(), Interrupted: l.interrupted.Load(),
		Exempted: l.exempted.Load(), Waits: l.waits.Load(), Waited: l.waited.Load(), WaitedMicros: l.waitedMicros.Load()}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mend()
	s.Queued, s.Tokens = l.mu.queued, max(int64(l.mu.bucket.TokensAt(l.clock.Now())), 0)
	return s
}
