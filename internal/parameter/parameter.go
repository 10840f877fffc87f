// Package parameter is the server's parameters: named values that setParameter changes and getParameter shows, with
// their types, bounds and defaults. It does not know what they are for.
package parameter

import (
	"math"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// When says when a parameter may be set.
type When uint8

// Parameters are set at start, while running, both, or never (they only show something).
const (
	Never   When = 0
	Startup When = 1 << iota
	Runtime
	Both = Startup | Runtime
)

// Parameter is one named value.
type Parameter struct {
	Name string
	When When
	// Get is the value as getParameter shows it.
	Get func() bson.Value
	// Set takes a value from setParameter; from a command line it comes as a string.
	Set func(bson.Value) error
}

// Registry is all parameters of a server. They are added before it serves.
type Registry struct {
	byName map[string]*Parameter
	// changed is told the name of each parameter that was set.
	changed func(name string)
	mu      sync.Mutex // one set at a time, so that "was" is right
}

// NewRegistry returns an empty registry; changed is called after each set, and may be nil.
func NewRegistry(changed func(name string)) *Registry {
	return &Registry{byName: map[string]*Parameter{}, changed: changed}
}

// Add enters p.
func (r *Registry) Add(p *Parameter) {
	if r.byName[p.Name] != nil {
		panic("parameter: two are named " + p.Name)
	}
	r.byName[p.Name] = p
}

// Lookup finds a parameter, or nil.
func (r *Registry) Lookup(name string) *Parameter { return r.byName[name] }

// All is every parameter by name.
func (r *Registry) All() []*Parameter {
	ps := make([]*Parameter, 0, len(r.byName))
	for _, p := range r.byName {
		ps = append(ps, p)
	}
	sort.Slice(ps, func(i, j int) bool { return ps[i].Name < ps[j].Name })
	return ps
}

// Set changes a parameter and returns what it was.
func (r *Registry) Set(name string, v bson.Value, when When) (was bson.Value, err error) {
	p := r.byName[name]
	switch {
	case p == nil:
		return was, mongoerr.New(mongoerr.InvalidOptions, "attempted to set unrecognized parameter [%s], use help:true to see options ", name)
	case p.When&when == 0 && when == Runtime:
		return was, mongoerr.New(mongoerr.IllegalOperation, "not allowed to change [%s] at runtime", name)
	case p.When&when == 0:
		return was, mongoerr.New(mongoerr.BadValue, "Cannot use --setParameter to set '%s' at startup", name)
	}
	r.mu.Lock()
	was = p.Get()
	err = p.Set(v)
	r.mu.Unlock()
	if err == nil && r.changed != nil {
		r.changed(name)
	}
	return was, err
}

// Bool is a yes or no.
type Bool struct{ v atomic.Bool }

// Get is the value.
func (b *Bool) Get() bool { return b.v.Load() }

// NewBool adds a yes or no and returns where it is kept.
func NewBool(r *Registry, name string, when When, def bool) *Bool {
	b := &Bool{}
	b.v.Store(def)
	r.Add(&Parameter{Name: name, When: when,
		Get: func() bson.Value { return bson.Bool(b.v.Load()) },
		Set: func(v bson.Value) error {
			on, err := asBool(name, v)
			if err == nil {
				b.v.Store(on)
			}
			return err
		}})
	return b
}

func asBool(name string, v bson.Value) (bool, error) {
	switch {
	case v.Type == bson.TypeBool:
		return v.Bool(), nil
	case v.IsNumber():
		return v.Truthy(), nil
	case v.Type == bson.TypeString:
		switch strings.ToLower(v.Str()) {
		case "true", "1", "yes", "on":
			return true, nil
		case "false", "0", "no", "off":
			return false, nil
		}
	}
	return false, mongoerr.New(mongoerr.BadValue, "Invalid value for parameter %s: %s is not a boolean", name, v)
}

// Int is a whole number.
type Int struct{ v atomic.Int64 }

// Get is the value.
func (i *Int) Get() int64 { return i.v.Load() }

// NewInt adds a whole number between low and high and returns where it is kept. It is shown as an int, or a long when
// wide.
func NewInt(r *Registry, name string, when When, def, low, high int64, wide bool) *Int {
	i := &Int{}
	i.v.Store(def)
	r.Add(&Parameter{Name: name, When: when,
		Get: func() bson.Value {
			if wide {
				return bson.Int64(i.v.Load())
			}
			return bson.Int32(int32(i.v.Load()))
		},
		Set: func(v bson.Value) error {
			n, err := asInt(name, v)
			if err != nil {
				return err
			}
			switch {
			case n < low:
				return mongoerr.New(mongoerr.BadValue, "Invalid value for parameter %s: %d is not greater than or equal to %d", name, n, low)
			case n > high:
				return mongoerr.New(mongoerr.BadValue, "Invalid value for parameter %s: %d is not less than or equal to %d", name, n, high)
			}
			i.v.Store(n)
			return nil
		}})
	return i
}

func asInt(name string, v bson.Value) (int64, error) {
	switch {
	case v.IsNumber():
		if f := v.AsDouble(); math.IsNaN(f) || math.IsInf(f, 0) {
			break
		}
		return v.TruncInt64(), nil
	case v.Type == bson.TypeBool:
		if v.Bool() {
			return 1, nil
		}
		return 0, nil
	case v.Type == bson.TypeString:
		if n, err := strconv.ParseInt(v.Str(), 10, 64); err == nil {
			return n, nil
		}
	}
	return 0, mongoerr.New(mongoerr.BadValue, "Invalid value for parameter %s: %s is not a number", name, v)
}

// NewFixed adds a parameter that only shows v.
func NewFixed(r *Registry, name string, v bson.Value) {
	r.Add(&Parameter{Name: name, When: Never, Get: func() bson.Value { return v },
		Set: func(bson.Value) error { return nil }})
}
