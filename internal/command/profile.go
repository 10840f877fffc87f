package command

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

// systemProfile is the collection of each database in which it is profiled.
const systemProfile = "system.profile"

// maxProfiled is how many databases may have profiling levels of their own.
const maxProfiled = 1000

// What the profiler and the slow log go by until they are told otherwise.
const (
	defaultSlowMillis = 100
	defaultSampleRate = 1.0
)

func profileCommands() []*Command {
	return []*Command{
		{Name: "profile", Needs: Needs{Also: needsProfile}, Doc: "Shows or changes what is profiled in a database, and what counts as slow.", Quiet: true, Run: profile},
	}
}

// Profiling is what is profiled in one database, and what counts as slow anywhere.
type Profiling struct {
	// Level is 0 for nothing, 1 for what is slow, 2 for everything.
	Level int32
	// Filter takes the place of slowness and sampling, when there is one.
	Filter     *match.Filter
	SlowMillis int32
	SampleRate float64
}

// Profiler keeps the profiling of all databases. The zero Profiler profiles nothing. Reading it takes no lock.
type Profiler struct {
	state  atomic.Pointer[profiles]
	change sync.Mutex // one change at a time
}

// profiles is one version of everything a Profiler knows; it is not changed.
type profiles struct {
	slowMillis int32
	sampleRate float64
	level      int32                // of databases that say nothing of it, but for local
	databases  map[string]Profiling // Level and Filter of each that has any
}

func (p *Profiler) load() *profiles {
	if s := p.state.Load(); s != nil {
		return s
	}
	return &profiles{slowMillis: defaultSlowMillis, sampleRate: defaultSampleRate}
}

// Of is what is profiled in db.
func (p *Profiler) Of(db string) Profiling {
	s := p.load()
	of, said := s.databases[db]
	if !said && db != "local" {
		of.Level = s.level
	}
	of.SlowMillis, of.SampleRate = s.slowMillis, s.sampleRate
	return of
}

// Set changes what is profiled in db and what counts as slow.
func (p *Profiler) Set(db string, f func(*Profiling)) error {
	p.change.Lock()
	defer p.change.Unlock()
	of := p.Of(db)
	f(&of)
	next := &profiles{of.SlowMillis, of.SampleRate, p.load().level, maps.Clone(p.load().databases)}
	if next.databases == nil {
		next.databases = map[string]Profiling{}
	}
	if of.Level == 0 && of.Filter == nil && next.level == 0 {
		delete(next.databases, db)
	} else {
		next.databases[strings.Clone(db)] = of
	}
	if len(next.databases) > maxProfiled {
		return mongoerr.New(mongoerr.OperationFailed, "cannot profile more than %d databases", maxProfiled)
	}
	p.state.Store(next)
	return nil
}

// Begin says what the profiler goes by until it is told otherwise. It comes before anything else.
func (p *Profiler) Begin(level, slowMillis int32, sampleRate float64) {
	p.state.Store(&profiles{slowMillis: slowMillis, sampleRate: sampleRate, level: level})
}

func profile(op *Op) (bson.Doc, error) {
	a := op.Args
	a.Required(op.Name())
	level, _ := a.Int(op.Name())
	slow, slowGiven := a.Int("slowms")
	rate, rateGiven := a.number("sampleRate")
	filterGiven := !a.Value("filter").IsMissing()
	filter, err := profileFilter(a.Value("filter"))
	if err != nil {
		a.Fail(err)
	}
	if rateGiven && !(rate >= 0 && rate <= 1) {
		a.Fail(mongoerr.New(mongoerr.BadValue, "'sampleRate' must be between 0.0 and 1.0 inclusive"))
	}
	if err := a.Done(); err != nil {
		return nil, err
	}
	if level == 1 || level == 2 {
		if op.follows() {
			return nil, mongoerr.New(mongoerr.IllegalOperation, "a secondary writes nothing of its own, and so has no %s", systemProfile)
		}
		if err := op.createCapped(op.Ctx, namespace.NS{DB: op.DB, Coll: systemProfile}, profileBytes, 0); err != nil {
			return nil, err
		}
	}
	was := op.Profile.Of(op.DB)
	err = op.Profile.Set(op.DB, func(p *Profiling) {
		if level >= 0 && level <= 2 { // any other only asks
			p.Level = int32(level)
			if filterGiven {
				p.Filter = filter
			}
		}
		if slowGiven {
			p.SlowMillis = clampInt32(slow)
		}
		if rateGiven {
			p.SampleRate = rate
		}
	})
	if err != nil {
		return nil, err
	}
	return was.reply(), nil
}

func (p Profiling) reply() bson.Doc {
	b := bson.Build().Int32("was", p.Level).Int32("slowms", p.SlowMillis).Double("sampleRate", p.SampleRate)
	if p.Filter != nil {
		b.Document("filter", p.Filter.Print()).
			String("note", "When a filter expression is set, slowms and sampleRate are not used for profiling and slow-query log lines.")
	}
	return b.Doc()
}

// profileFilter reads a document, or "unset" for none.
func profileFilter(v bson.Value) (*match.Filter, error) {
	switch {
	case v.IsMissing(), v.Type == bson.TypeString && v.Str() == "unset":
		return nil, nil
	case v.Type != bson.TypeObject:
		return nil, mongoerr.New(mongoerr.BadValue, "Expected an object, or the string 'unset'.")
	}
	return parseOperationFilter(v.Doc())
}

// parseOperationFilter reads a filter over descriptions of operations.
func parseOperationFilter(d bson.Doc) (*match.Filter, error) {
	return match.NewParser().Parse(d, match.Options{Exprs: expr.NewParser(expr.Options{}), Allow: match.AllowMatch})
}
