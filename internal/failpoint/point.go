package failpoint

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// mode says when a Point is on. The numbers are those that getParameter shows.
type mode int32

const (
	off mode = iota
	alwaysOn
	random // with a probability
	times  // so many times, and off from then on
	skip   // after so many times
)

// Setting is what a Point is to do from now on.
type Setting struct {
	mode mode
	left int64
	// probability is that of random.
	probability float64
	data        bson.Doc
}

// Parse reads {mode, data}, as configureFailPoint has them.
func Parse(doc bson.Doc) (s Setting, err error) {
	if s, err = parseMode(doc.Lookup("mode")); err != nil {
		return s, err
	}
	s.data = bson.EmptyDoc
	switch data := doc.Lookup("data"); data.Type {
	case bson.TypeMissing:
	case bson.TypeObject, bson.TypeArray:
		s.data = data.Doc().Clone()
	default:
		return s, mongoerr.New(mongoerr.TypeMismatch, "the 'data' option must be a JSON object")
	}
	return s, nil
}

func parseMode(v bson.Value) (s Setting, err error) {
	switch {
	case v.IsMissing():
		return s, mongoerr.New(mongoerr.IllegalOperation, "When setting a failpoint, you must supply a 'mode'")
	case v.Type == bson.TypeObject:
		return parseCounted(v.Doc())
	case v.Type != bson.TypeString:
		return s, mongoerr.New(mongoerr.TypeMismatch, "'mode' must be a string or JSON object")
	case v.Str() == "off":
		return s, nil
	case v.Str() == "alwaysOn":
		return Setting{mode: alwaysOn}, nil
	}
	return s, mongoerr.New(mongoerr.BadValue, "unknown mode: %s", v.Str())
}

// parseCounted reads {times: n}, {skip: n} or {activationProbability: p}.
func parseCounted(d bson.Doc) (s Setting, err error) {
	for _, counted := range [...]struct {
		name string
		mode mode
	}{{"times", times}, {"skip", skip}} {
		if v := d.Lookup(counted.name); !v.IsMissing() {
			s.mode = counted.mode
			s.left, err = count(counted.name, v)
			return s, err
		}
	}
	p := d.Lookup("activationProbability")
	if p.IsMissing() {
		return s, mongoerr.New(mongoerr.BadValue, "'mode' must be one of 'off', 'alwaysOn', '{times:n}', '{skip:n}' or '{activationProbability:p}'")
	}
	if !p.IsNumber() {
		return s, mongoerr.New(mongoerr.TypeMismatch, "the 'activationProbability' option to 'mode' must be a double between 0 and 1")
	}
	s.mode, s.probability = random, p.AsDouble()
	if !(s.probability >= 0 && s.probability <= 1) {
		return s, mongoerr.New(mongoerr.BadValue, "activationProbability must be between 0.0 and 1.0; found %v", s.probability)
	}
	return s, nil
}

func count(name string, v bson.Value) (int64, error) {
	if !v.IsNumber() {
		return 0, mongoerr.New(mongoerr.TypeMismatch, "Expected field \"%s\" to have numeric type, but found %s", name, v.Type)
	}
	n, exact := v.AsInt64()
	switch {
	case !exact:
		return 0, mongoerr.New(mongoerr.BadValue, "Expected field \"%s\" to have a value exactly representable as a 64-bit integer, but found %s: %s", name, name, v)
	case n < 0:
		return 0, mongoerr.New(mongoerr.BadValue, "'%s' option to 'mode' must be positive", name)
	case n > math.MaxInt32:
		return 0, mongoerr.New(mongoerr.BadValue, "'%s' option to 'mode' is too large", name)
	}
	return n, nil
}

// Point is one place where something may be made to go wrong.
type Point struct {
	active atomic.Bool // what Enter looks at first: that the setting is not off
	mu     struct {
		sync.Mutex
		Setting
		entered int64
		more    chan struct{} // closed when entered grows; nil while nobody waits
	}
}

// Set changes what the point does, and returns how often it was entered so far.
func (p *Point) Set(s Setting) (entered int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.Setting = s
	p.active.Store(s.mode != off)
	return p.mu.entered
}

// IsOn says whether the point may do anything.
func (p *Point) IsOn() bool { return p.active.Load() }

// Enter says whether the point is on for one who is here, and with which data. Who applies says the data is not about is not counted.
// The data is only read.
func (p *Point) Enter(applies func(data bson.Doc) bool) (data bson.Doc, on bool) {
	if !p.active.Load() {
		return nil, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.mode == off || !applies(p.mu.data) {
		return nil, false
	}
	switch p.mu.mode {
	case random:
		on = rand.Float64() < p.mu.probability
	case times:
		on = true
		if p.mu.left--; p.mu.left <= 0 {
			p.mu.mode = off
			p.active.Store(false)
		}
	case skip:
		if on = p.mu.left <= 0; !on {
			p.mu.left--
		}
	default:
		on = true
	}
	if on {
		p.mu.entered++
		if p.mu.more != nil {
			close(p.mu.more)
			p.mu.more = nil
		}
	}
	return p.mu.data, on
}

// Await returns when the point was entered so often in all, or with the reason why ctx has ended.
func (p *Point) Await(ctx context.Context, entered int64) error {
	for {
		p.mu.Lock()
		if p.mu.entered >= entered {
			p.mu.Unlock()
			return nil
		}
		if p.mu.more == nil {
			p.mu.more = make(chan struct{})
		}
		more := p.mu.more
		p.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Describe is the point as getParameter shows it.
func (p *Point) Describe() bson.Doc {
	p.mu.Lock()
	defer p.mu.Unlock()
	data := p.mu.data
	if data == nil {
		data = bson.EmptyDoc
	}
	return bson.Build().Int32("mode", int32(p.mu.mode)).Document("data", data).Int64("timesEntered", p.mu.entered).Doc()
}
