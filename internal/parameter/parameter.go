// Package parameter is the server's parameters: named values that setParameter changes and getParameter shows, with
// their types, bounds and defaults. It does not know what they are for.
package parameter

import (
	"cmp"
	"context"
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
	// Set takes a value from setParameter. SetWithin does so in its place where that may take long: the context is that of who sets.
	Set       func(bson.Value) error
	SetWithin func(context.Context, bson.Value) error
	// Parse takes a text from the command line or the configuration; nil hands it to Set as a string.
	Parse func(text string) error

	of string // the parameter that this is another name of, or ""
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

// Alias enters an older name of a parameter, by which it can still be set and shown.
func (r *Registry) Alias(older, name string) {
	p := *r.byName[name]
	p.Name, p.of = older, name
	r.Add(&p)
}

// Remove takes out what Add has entered, before the server serves.
func (r *Registry) Remove(name string) { delete(r.byName, name) }

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

// Settable says what is wrong with setting a parameter at that time, if anything.
func (r *Registry) Settable(name string, when When) error {
	p := r.byName[name]
	switch {
	case p == nil:
		return mongoerr.New(mongoerr.InvalidOptions, "attempted to set unrecognized parameter [%s], use help:true to see options ", name)
	case p.When&when == 0 && when == Runtime:
		return mongoerr.New(mongoerr.IllegalOperation, "not allowed to change [%s] at runtime", name)
	case p.When&when == 0:
		return mongoerr.New(mongoerr.BadValue, "Cannot use --setParameter to set '%s' at startup", name)
	}
	return nil
}

// Set changes a parameter and returns what it was.
func (r *Registry) Set(name string, v bson.Value, when When) (was bson.Value, err error) {
	return r.SetWithin(context.Background(), name, v, when)
}

// SetWithin is Set for an operation that lasts as long as ctx.
func (r *Registry) SetWithin(ctx context.Context, name string, v bson.Value, when When) (was bson.Value, err error) {
	if err := r.Settable(name, when); err != nil {
		return was, err
	}
	p := r.byName[name]
	if p.SetWithin != nil { // nobody waits for it
		was = p.Get()
		err = p.SetWithin(ctx, v)
	} else {
		was, err = r.setNow(p, v, when)
	}
	if err == nil && r.changed != nil {
		r.changed(cmp.Or(p.of, name))
	}
	return was, err
}

func (r *Registry) setNow(p *Parameter, v bson.Value, when When) (was bson.Value, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was = p.Get()
	if when == Startup && v.Type == bson.TypeString && p.Parse != nil {
		return was, p.Parse(v.Str())
	}
	return was, p.Set(v)
}

// Bool is a yes or no.
type Bool struct{ v atomic.Bool }

// Get is the value.
func (b *Bool) Get() bool { return b.v.Load() }

// NewBool adds a yes or no and returns where it is kept. As in MongoDB every value but false, 0, null and nothing is a
// yes; on the command line it is a word.
func NewBool(r *Registry, name string, when When, def bool) *Bool {
	b := &Bool{}
	b.v.Store(def)
	r.Add(&Parameter{Name: name, When: when,
		Get: func() bson.Value { return bson.Bool(b.v.Load()) },
		Set: func(v bson.Value) error {
			b.v.Store(v.Truthy())
			return nil
		},
		Parse: func(text string) error {
			switch strings.ToLower(text) {
			case "true", "1", "yes", "on":
				b.v.Store(true)
			case "false", "0", "no", "off":
				b.v.Store(false)
			default:
				return mongoerr.New(mongoerr.BadValue, "Invalid value for parameter %s: %s is not a boolean", name, text)
			}
			return nil
		}})
	return b
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
			n, err := AsInt(name, v)
			if err != nil {
				return err
			}
			return i.set(name, n, low, high)
		},
		Parse: func(text string) error {
			n, err := ParseInt(name, text)
			if err != nil {
				return err
			}
			return i.set(name, n, low, high)
		}})
	return i
}

func (i *Int) set(name string, n, low, high int64) error {
	switch {
	case n < low:
		return mongoerr.New(mongoerr.BadValue, "Invalid value for parameter %s: %d is not greater than or equal to %d", name, n, low)
	case n > high:
		return mongoerr.New(mongoerr.BadValue, "Invalid value for parameter %s: %d is not less than or equal to %d", name, n, high)
	}
	i.v.Store(n)
	return nil
}

// AsInt is v as a whole number, with an error about the parameter called name when it is none.
func AsInt(name string, v bson.Value) (int64, error) {
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
	}
	return 0, mongoerr.New(mongoerr.BadValue, "Invalid value for parameter %s: %s is not a number", name, v)
}

// ParseInt is text as a whole number, with an error about the parameter called name when it is none.
func ParseInt(name, text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, mongoerr.New(mongoerr.BadValue, "Invalid value for parameter %s: %s is not a number", name, text)
	}
	return n, nil
}

// String is a text.
type String struct{ v atomic.Pointer[string] }

// Get is the text.
func (s *String) Get() string { return *s.v.Load() }

// NewString adds a text of at most maxBytes and returns where it is kept.
func NewString(r *Registry, name string, when When, def string, maxBytes int) *String {
	s := &String{}
	s.v.Store(&def)
	r.Add(&Parameter{Name: name, When: when,
		Get: func() bson.Value { return bson.String(s.Get()) },
		Set: func(v bson.Value) error {
			if v.Type != bson.TypeString {
				return mongoerr.New(mongoerr.TypeMismatch, "Value for parameter %s must be a string, but it is of type %s", name, v.Type)
			}
			if len(v.Str()) > maxBytes {
				return mongoerr.New(mongoerr.Overflow, "Value for parameter %s must be no more than %d bytes", name, maxBytes)
			}
			text := strings.Clone(v.Str())
			s.v.Store(&text)
			return nil
		}})
	return s
}

// NewFixed adds a parameter that only shows v.
func NewFixed(r *Registry, name string, v bson.Value) {
	r.Add(&Parameter{Name: name, When: Never, Get: func() bson.Value { return v },
		Set: func(bson.Value) error { return nil }})
}
